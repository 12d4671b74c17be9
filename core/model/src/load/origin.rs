//! Origin of a model: what goes into provenance, and where its tokenizer lies.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use sha2::{Digest, Sha256};

use super::files::ModelFiles;
use super::random_spec::RandomSpec;
use crate::error::{Error, Result};

/// The three places that weights come from; tokenizer and chat template are read from the same place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginKind {
    /// Made up from a seed: there is no file.
    Random(RandomSpec),
    /// A Hugging Face folder, on the disk or in the program: `tokenizer.json` and `tokenizer_config.json` lie beside the
    /// weights.
    Folder(ModelFiles),
    /// A GGUF file: the tokenizer is in its metadata ([`GgufHeader`](super::GgufHeader)).
    Gguf(PathBuf),
}

/// Identity of a loaded model.
#[derive(Debug)]
pub struct Origin {
    id: String,
    kind: OriginKind,
    /// Names of the weight files of a folder.
    weight_files: Vec<String>,
    /// What is hashed where there are no files.
    spelled: String,
    sha256: OnceLock<String>,
}

impl Origin {
    pub(super) fn random(spec: RandomSpec, spelled: String) -> Self {
        Self::new(spec.to_string(), OriginKind::Random(spec), Vec::new(), spelled)
    }

    pub(super) fn hugging_face(files: ModelFiles, weight_files: Vec<String>) -> Self {
        Self::new(last_name(files.place()), OriginKind::Folder(files), weight_files, String::new())
    }

    pub(super) fn gguf(file: &Path) -> Self {
        Self::new(last_name(file), OriginKind::Gguf(file.to_owned()), Vec::new(), String::new())
    }

    fn new(id: String, kind: OriginKind, weight_files: Vec<String>, spelled: String) -> Self {
        Self { id, kind, weight_files, spelled, sha256: OnceLock::new() }
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

    /// SHA-256 of the weights in hexadecimal, computed when first asked for.
    ///
    /// One file: the hash of the file, as `sha256sum` prints it. Shards: the hash of the lines `HASH  NAME` of all shards
    /// sorted by name, i.e. of what `sha256sum *.safetensors` prints. Random weights: the hash of the spec written out.
    pub fn weights_sha256(&self) -> Result<&str> {
        if let Some(known) = self.sha256.get() {
            return Ok(known);
        }
        let computed = match (&self.kind, self.weight_files.as_slice()) {
            (OriginKind::Random(_), _) => hex(Sha256::digest(&self.spelled).as_slice()),
            (OriginKind::Gguf(file), _) => sha256(file, File::open(file).map_err(Error::io(file))?)?,
            (OriginKind::Folder(files), [file]) => sha256(&files.path(file), files.open(file)?.0)?,
            (OriginKind::Folder(files), shards) => {
                let mut list = Sha256::new();
                for shard in shards {
                    list.update(format!("{}  {shard}\n", sha256(&files.path(shard), files.open(shard)?.0)?));
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

fn sha256(path: &Path, mut file: impl Read) -> Result<String> {
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
        let shards = ["a", "b"].map(str::to_owned);
        for name in &shards {
            std::fs::write(folder.path().join(name), "abc").unwrap();
        }
        let origin = Origin::hugging_face(folder.path().into(), shards.to_vec());
        let list = format!("{ABC}  a\n{ABC}  b\n");
        assert_eq!(origin.weights_sha256().unwrap(), hex(Sha256::digest(list).as_slice()));
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
