//! Where a model came from: what goes into provenance, and where its tokenizer is to be looked for.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::random_spec::RandomSpec;
use crate::error::{Error, Result};

/// The three places that weights come from; tokenizer and chat template are read from the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginKind {
    /// Made up from a seed: there is no file.
    Random(RandomSpec),
    /// A Hugging Face folder: `tokenizer.json` and `tokenizer_config.json` lie beside the weights.
    Folder(PathBuf),
    /// A GGUF file: the tokenizer is in its metadata ([`GgufHeader`](super::GgufHeader)).
    Gguf(PathBuf),
}

/// Identity of a loaded model.
#[derive(Debug)]
pub struct Origin {
    id: String,
    kind: OriginKind,
    files: Vec<PathBuf>,
    /// Those of `files` that hold weights.
    weight_files: Vec<PathBuf>,
    /// What is hashed where there are no files.
    spelled: String,
    sha256: OnceLock<String>,
}

impl Origin {
    pub(super) fn random(spec: RandomSpec, spelled: String) -> Self {
        Self::new(spec.to_string(), OriginKind::Random(spec), Vec::new(), Vec::new(), spelled)
    }

    pub(super) fn folder(folder: &Path, config_files: Vec<PathBuf>, weight_files: Vec<PathBuf>) -> Self {
        let files = config_files.into_iter().chain(weight_files.iter().cloned()).collect();
        Self::new(last_name(folder), OriginKind::Folder(folder.to_owned()), files, weight_files, String::new())
    }

    pub(super) fn gguf(file: &Path) -> Self {
        let files = vec![file.to_owned()];
        Self::new(last_name(file), OriginKind::Gguf(file.to_owned()), files.clone(), files, String::new())
    }

    fn new(id: String, kind: OriginKind, files: Vec<PathBuf>, weight_files: Vec<PathBuf>, spelled: String) -> Self {
        Self { id, kind, files, weight_files, spelled, sha256: OnceLock::new() }
    }

    /// Name for tables and provenance: the spec, or the last part of the path. Never a whole path, which would make
    /// files differ between machines.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Which kind of place it is, with the path where there is one.
    pub fn kind(&self) -> &OriginKind {
        &self.kind
    }

    /// Every file that configuration and weights were read from.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// SHA-256 of the weights in hexadecimal, computed when first asked for.
    ///
    /// One file: the hash of the file, as `sha256sum` prints it. Shards: the hash of the lines `HASH  NAME` of all shards
    /// sorted by name, i.e. of what `sha256sum *.safetensors` prints. Random weights: the hash of the spec written out.
    pub fn weights_sha256(&self) -> Result<&str> {
        if let Some(known) = self.sha256.get() {
            return Ok(known);
        }
        let computed = match self.weight_files.as_slice() {
            [] => hex(Sha256::digest(&self.spelled).as_slice()),
            [file] => file_sha256(file)?,
            shards => {
                let mut list = Sha256::new();
                for shard in shards {
                    list.update(format!("{}  {}\n", file_sha256(shard)?, last_name(shard)));
                }
                hex(list.finalize().as_slice())
            }
        };
        Ok(self.sha256.get_or_init(|| computed))
    }
}

/// The last part of a path; for `.` and the like, of the folder that it stands for.
fn last_name(path: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    name(path).or_else(|| name(&path.canonicalize().ok()?)).unwrap_or_else(|| "model".to_owned())
}

fn file_sha256(path: &Path) -> Result<String> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block).map_err(Error::io(path))? {
            0 => return Ok(hex(hash.finalize().as_slice())),
            read => hash.update(&block[..read]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn one_file_has_the_hash_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        std::fs::write(&path, "abc").unwrap();
        let origin = Origin::gguf(&path);
        assert_eq!(origin.weights_sha256().unwrap(), ABC);
        assert_eq!(origin.id(), "m.gguf");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(origin.weights_sha256().unwrap(), ABC, "computed once");
    }

    #[test]
    fn shards_have_the_hash_of_their_list() {
        let folder = tempfile::tempdir().unwrap();
        let shards: Vec<PathBuf> = ["a", "b"].iter().map(|name| folder.path().join(name)).collect();
        for path in &shards {
            std::fs::write(path, "abc").unwrap();
        }
        let origin = Origin::folder(folder.path(), vec![folder.path().join("config.json")], shards);
        let list = format!("{ABC}  a\n{ABC}  b\n");
        assert_eq!(origin.weights_sha256().unwrap(), hex(Sha256::digest(list).as_slice()));
        assert_eq!(origin.files().len(), 3);
    }

    #[test]
    fn ids_are_names_not_paths() {
        assert_eq!(last_name(Path::new("/some/where/model/")), "model");
        assert!(!last_name(Path::new(".")).is_empty());
        assert_eq!(last_name(Path::new("/")), "model");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Origin::gguf(Path::new("no/such.gguf")).weights_sha256().unwrap_err();
        assert!(error.to_string().contains("no/such.gguf"));
    }
}
