//! Weights of a Hugging Face folder: one safetensors file or the shards that an index names.
//!
//! Nothing is mapped: each tensor is read from its place when it is asked for, block by block, so that the only large
//! allocation is the result.

use std::collections::BTreeMap;
use std::io::SeekFrom;
use std::path::{Component, Path};

use candle_core::{Device, Tensor};
use half::{bf16, f16};

use super::files::ModelFiles;
use super::json_fields::{Fields, read_object};
use super::safetensors_header::{self, Entry, Stored};
use crate::error::{Error, Result, WEIGHTS};
use crate::source::TensorSource;

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// The tensors of a folder, under names with the `model.` prefix.
#[derive(Debug)]
pub(super) struct HfWeights {
    files: ModelFiles,
    /// Names of the safetensors files, sorted.
    shards: Vec<String>,
    /// Name as the decoder asks for it, index into `shards`, place in that file.
    tensors: BTreeMap<String, (usize, Entry)>,
}

impl HfWeights {
    /// Finds the weight files and checks all their headers.
    pub(super) fn open(files: &ModelFiles) -> Result<Self> {
        let mut named: Vec<(String, String)> = Vec::new();
        let shards = if files.has(SINGLE) {
            vec![SINGLE.to_owned()]
        } else if files.has(INDEX) {
            named = read_index(files)?;
            let mut shards: Vec<String> = named.iter().map(|(_, shard)| shard.clone()).collect();
            shards.sort_unstable();
            shards.dedup();
            shards
        } else {
            return Err(no_weights(files));
        };
        let mut weights = Self { files: files.clone(), shards, tensors: BTreeMap::new() };
        for shard in 0..weights.shards.len() {
            weights.add(shard)?;
        }
        weights.check_index(&named)?;
        Ok(weights)
    }

    /// Names of the safetensors files, sorted.
    pub(super) fn shards(&self) -> &[String] {
        &self.shards
    }

    fn add(&mut self, shard: usize) -> Result<()> {
        let path = self.files.path(&self.shards[shard]);
        let (mut file, bytes) = self.files.open(&self.shards[shard])?;
        for entry in safetensors_header::read(&path, &mut *file, bytes)? {
            let name = with_prefix(&entry.name);
            if let Some((other, _)) = self.tensors.insert(name.clone(), (shard, entry)) {
                let got = format!("another one in {}", self.shards[other]);
                return Err(damaged(&path, format!("tensor {name}"), "one tensor of this name".to_owned(), got));
            }
        }
        Ok(())
    }

    /// Every tensor must be in the shard that the index says.
    fn check_index(&self, named: &[(String, String)]) -> Result<()> {
        for (name, shard) in named {
            let found = self.tensors.get(&with_prefix(name)).map(|&(i, _)| &self.shards[i]);
            if found != Some(shard) {
                let got = found.map_or("no tensor of this name", String::as_str).to_owned();
                let index = self.files.path(INDEX);
                return Err(damaged(&index, format!("tensor {name}"), format!("in {shard}"), got));
            }
        }
        Ok(())
    }
}

impl TensorSource for HfWeights {
    fn place(&self) -> &Path {
        self.files.place()
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        self.tensors.iter().map(|(name, (_, entry))| (name.clone(), entry.shape.clone())).collect()
    }

    fn load(&self, name: &str) -> Result<Tensor> {
        let Some((shard, entry)) = self.tensors.get(name) else {
            return Err(Error::Request {
                what: "tensor name",
                expected: "one of the source".to_owned(),
                got: name.to_owned(),
            });
        };
        let (shard, shape) = (&self.shards[*shard], entry.shape.as_slice());
        let pair = |b: &[u8]| [b[0], b[1]];
        Ok(match entry.stored {
            Stored::F32 => {
                let of = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
                Tensor::from_vec(self.read(shard, entry, of)?, shape, &Device::Cpu)?
            }
            Stored::F16 => {
                Tensor::from_vec(self.read(shard, entry, |b| f16::from_le_bytes(pair(b)))?, shape, &Device::Cpu)?
            }
            Stored::Bf16 => {
                Tensor::from_vec(self.read(shard, entry, |b| bf16::from_le_bytes(pair(b)))?, shape, &Device::Cpu)?
            }
        })
    }
}

impl HfWeights {
    /// The numbers of a tensor, each made of its bytes.
    fn read<T>(&self, shard: &str, entry: &Entry, of: impl Fn(&[u8]) -> T) -> Result<Vec<T>> {
        const BLOCK_BYTES: usize = 1 << 20;
        let path = self.files.path(shard);
        let (mut file, _) = self.files.open(shard)?;
        file.seek(SeekFrom::Start(entry.bytes.start)).map_err(Error::io(&path))?;
        let mut left = (entry.bytes.end - entry.bytes.start) as usize;
        let mut values = Vec::with_capacity(left / entry.stored.bytes());
        let mut block = vec![0; left.min(BLOCK_BYTES)];
        while left > 0 {
            let block = &mut block[..left.min(BLOCK_BYTES)];
            file.read_exact(block).map_err(Error::io(&path))?;
            values.extend(block.chunks_exact(entry.stored.bytes()).map(&of));
            left -= block.len();
        }
        Ok(values)
    }
}

/// Files saved from the trunk alone (`LlamaModel`) lack the prefix.
fn with_prefix(name: &str) -> String {
    let bare = ["layers.", "embed_tokens.", "norm."].iter().any(|start| name.starts_with(start));
    if bare { format!("model.{name}") } else { name.to_owned() }
}

/// `(tensor, shard)` of an index, each shard a plain name of a file that is there.
fn read_index(files: &ModelFiles) -> Result<Vec<(String, String)>> {
    let (index, object) = (&files.path(INDEX), read_object(files, INDEX)?);
    let fields = Fields::new(index, "", &object);
    let map = fields.object("weight_map")?.filter(|map| !map.is_empty());
    let map = map.ok_or_else(|| fields.error("weight_map", "an object that names a shard for each tensor"))?;
    let fields = Fields::new(index, "weight_map", map);
    let mut named = Vec::with_capacity(map.len());
    for name in map.keys() {
        // A path that leaves the folder would read files that nobody pointed at.
        let shard = fields.text(name)?.filter(|shard| is_plain_name(shard));
        let shard = shard.ok_or_else(|| fields.error(name, "the name of a file in this folder"))?;
        named.push((name.clone(), shard.to_owned()));
    }
    if let Some((_, missing)) = named.iter().find(|(_, shard)| !files.has(shard)) {
        let what = format!("shard {missing}");
        return Err(damaged(index, what, "a file in this folder".to_owned(), "no such file".to_owned()));
    }
    Ok(named)
}

fn is_plain_name(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let plain = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    plain && parts.next().is_none() && !name.contains('\\')
}

/// What a folder without safetensors gets: pickles are named, since they are the usual reason.
fn no_weights(files: &ModelFiles) -> Error {
    let pickle = ["pytorch_model.bin", "pytorch_model.bin.index.json"].iter().find(|name| files.has(name));
    Error::Config {
        path: files.place().to_owned(),
        field: WEIGHTS.to_owned(),
        expected: format!("{SINGLE} or {INDEX}"),
        got: match pickle {
            Some(name) => format!("{name}: a pickle, which is not read since it can run code; save it as safetensors"),
            None => "neither".to_owned(),
        },
    }
}

fn damaged(path: &Path, what: String, expected: String, got: String) -> Error {
    Error::Damaged { path: path.to_owned(), what, expected, got }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;
    use safetensors::Dtype;
    use safetensors::tensor::{TensorView, serialize};

    use super::*;

    fn write(path: &Path, tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) {
        let views = tensors
            .iter()
            .map(|(name, dtype, shape, bytes)| (*name, TensorView::new(*dtype, shape.to_vec(), bytes).unwrap()));
        std::fs::write(path, serialize(views, None).unwrap()).unwrap();
    }

    fn floats(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn values(weights: &HfWeights, name: &str) -> Vec<f32> {
        weights.load(name).unwrap().to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    fn message(folder: &Path) -> String {
        HfWeights::open(&folder.into()).unwrap_err().to_string()
    }

    #[test]
    fn three_types_stay_what_they_are_and_bare_names_get_the_prefix() {
        let folder = tempfile::tempdir().unwrap();
        let half: Vec<u8> = [1.5, -2.0].iter().flat_map(|&v| f16::from_f32(v).to_le_bytes()).collect();
        let brain: Vec<u8> = [3.0, 0.25].iter().flat_map(|&v| bf16::from_f32(v).to_le_bytes()).collect();
        write(
            &folder.path().join(SINGLE),
            &[
                ("norm.weight", Dtype::F32, &[2], floats(&[0.1, 7.0])),
                ("model.layers.0.x", Dtype::F16, &[2, 1], half),
                ("lm_head.weight", Dtype::BF16, &[1, 2], brain),
            ],
        );
        let weights = HfWeights::open(&folder.path().into()).unwrap();
        let stored =
            ["model.norm.weight", "model.layers.0.x", "lm_head.weight"].map(|name| weights.load(name).unwrap());
        assert_eq!(stored.map(|tensor| tensor.dtype()), [DType::F32, DType::F16, DType::BF16]);
        assert_eq!(values(&weights, "model.norm.weight"), [0.1, 7.0]);
        assert_eq!(values(&weights, "model.layers.0.x"), [1.5, -2.0]);
        assert_eq!(values(&weights, "lm_head.weight"), [3.0, 0.25]);
        assert_eq!(weights.load("model.layers.0.x").unwrap().dims(), [2, 1]);
        assert!(weights.load("x").is_err());
    }

    #[test]
    fn long_tensors_cross_block_borders_unharmed() {
        let folder = tempfile::tempdir().unwrap();
        let long: Vec<f32> = (0..600_001).map(|i| i as f32).collect();
        write(&folder.path().join(SINGLE), &[("norm.weight", Dtype::F32, &[long.len()], floats(&long))]);
        assert_eq!(values(&HfWeights::open(&folder.path().into()).unwrap(), "model.norm.weight"), long);
    }

    fn sharded(map: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("a.safetensors"), &[("layers.0.w", Dtype::F32, &[1], floats(&[1.0]))]);
        write(&folder.path().join("b.safetensors"), &[("layers.1.w", Dtype::F32, &[1], floats(&[2.0]))]);
        std::fs::write(folder.path().join(INDEX), format!(r#"{{"weight_map": {{{map}}}}}"#)).unwrap();
        folder
    }

    #[test]
    fn shards_are_found_through_the_index() {
        let folder = sharded(r#""layers.0.w": "a.safetensors", "layers.1.w": "b.safetensors""#);
        let weights = HfWeights::open(&folder.path().into()).unwrap();
        assert_eq!(values(&weights, "model.layers.1.w"), [2.0]);
        assert_eq!(weights.shards().len(), 2);
    }

    #[test]
    fn a_broken_index_names_tensor_and_shard() {
        let missing = sharded(r#""layers.0.w": "a.safetensors", "layers.1.w": "c.safetensors""#);
        assert!(message(missing.path()).contains("shard c.safetensors: expected a file in this folder"));
        let swapped = sharded(r#""layers.0.w": "b.safetensors", "layers.1.w": "a.safetensors""#);
        assert!(message(swapped.path()).contains("tensor layers.0.w: expected in b.safetensors"));
        let unknown = sharded(r#""layers.7.w": "a.safetensors""#);
        assert!(message(unknown.path()).contains("got no tensor of this name"));
        assert!(message(sharded("").path()).contains("weight_map"));
    }

    #[test]
    fn shard_names_cannot_leave_the_folder() {
        for path in ["../a.safetensors", "/etc/passwd", "x/../a.safetensors", "./a.safetensors", "", "..", "a\\\\b"] {
            let folder = sharded(&format!(r#""layers.0.w": "{path}""#));
            assert!(message(folder.path()).contains("the name of a file in this folder"), "{path}");
        }
    }

    #[test]
    fn one_name_in_two_shards_is_damage() {
        let folder = sharded(r#""layers.0.w": "a.safetensors", "layers.1.w": "b.safetensors""#);
        write(&folder.path().join("b.safetensors"), &[("model.layers.0.w", Dtype::F32, &[1], floats(&[2.0]))]);
        assert!(message(folder.path()).contains("expected one tensor of this name"));
    }

    #[test]
    fn pickles_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        assert!(message(folder.path()).ends_with("got neither"));
        std::fs::create_dir(folder.path().join(SINGLE)).unwrap();
        assert!(message(folder.path()).ends_with("model.safetensors: expected a file, got a folder"));
        std::fs::remove_dir(folder.path().join(SINGLE)).unwrap();
        std::fs::write(folder.path().join("pytorch_model.bin"), "x").unwrap();
        assert!(message(folder.path()).contains("a pickle, which is not read"));
    }

    #[test]
    fn any_cut_or_flipped_byte_is_an_error_or_a_tensor_but_no_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(SINGLE);
        write(
            &path,
            &[
                ("norm.weight", Dtype::F32, &[3], floats(&[1.0, 2.0, 3.0])),
                ("layers.0.w", Dtype::F16, &[2], vec![0; 4]),
            ],
        );
        let good = std::fs::read(&path).unwrap();
        let try_it = |bytes: &[u8]| {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
            let weights = HfWeights::open(&folder.path().into())?;
            weights.shapes().iter().try_for_each(|(name, _)| weights.load(name).map(|_| ()))
        };
        for length in (0..good.len()).step_by(7) {
            assert!(try_it(&good[..length]).is_err(), "cut at {length}");
        }
        for at in (0..good.len()).step_by(5) {
            let mut bytes = good.clone();
            bytes[at] ^= 0x11;
            let _ = try_it(&bytes);
        }
    }
}
