//! Weights of a GGUF file under Hugging Face names and in Hugging Face row order.
//!
//! Only one thing besides names differs: for `llama` the rows of q and k are stored so that RoPE turns neighbours, while
//! the decoder turns halves. Rows are put back before anything is dequantised, so quantised weights can be kept as they
//! are by a caller that wants them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use candle_core::quantized::{GgmlDType, QTensor, ggml_file};
use candle_core::{DType, Device, Tensor};

use super::gguf_header::{GgufHeader, GgufTensor};
use super::gguf_names::hugging_face_name;
use super::{gguf_config, gguf_rope};
use crate::config::{Architecture, ModelConfig, RopeScaling};
use crate::error::{Error, Result, TensorProblem};
use crate::source::TensorSource;

const ROPE_DIVISORS: &str = "rope_freqs.weight";

/// The tensors of a GGUF file.
#[derive(Debug)]
pub(super) struct GgufWeights {
    path: PathBuf,
    tensors: BTreeMap<String, Stored>,
}

#[derive(Debug)]
struct Stored {
    tensor: GgufTensor,
    /// Rows of each head are interleaved: `(heads, head size)`.
    interleaved: Option<(usize, usize)>,
}

/// The configuration and the tensors of a file.
pub(super) fn open(header: &GgufHeader) -> Result<(ModelConfig, GgufWeights)> {
    let path = header.path();
    let mut config = gguf_config::read(header)?;
    let llama = config.architecture == Architecture::Llama;
    let mut tensors = BTreeMap::new();
    for (name, tensor) in header.tensors().iter().filter(|(name, _)| *name != ROPE_DIVISORS) {
        let name = hugging_face_name(name);
        let heads = match name.rsplit_once("self_attn.") {
            Some((_, "q_proj.weight" | "q_proj.bias")) if llama => Some(config.n_heads),
            Some((_, "k_proj.weight" | "k_proj.bias")) if llama => Some(config.n_kv_heads),
            _ => None,
        };
        let interleaved = heads.map(|heads| (heads, config.head_dim));
        tensors.insert(name, Stored { tensor: tensor.clone(), interleaved });
    }
    if let Some(divisors) = header.tensors().get(ROPE_DIVISORS) {
        config.rope_scaling = llama3_scaling(path, divisors, &config)?;
    }
    Ok((config, GgufWeights { path: path.to_owned(), tensors }))
}

fn llama3_scaling(path: &Path, divisors: &GgufTensor, config: &ModelConfig) -> Result<RopeScaling> {
    let values: Vec<f32> = if divisors.shape == [config.head_dim / 2] && config.rope_scaling == RopeScaling::Default {
        quantised(path, divisors, None)?.dequantize(&Device::Cpu)?.to_vec1()?
    } else {
        Vec::new()
    };
    gguf_rope::scaling_of(&values, config.rope_theta).ok_or_else(|| Error::Config {
        path: path.to_owned(),
        field: ROPE_DIVISORS.to_owned(),
        expected: format!("{} divisors as Llama 3's rule gives them, and no other scaling", config.head_dim / 2),
        got: format!("shape {:?}, values {values:?}, scaling {:?}", divisors.shape, config.rope_scaling),
    })
}

impl TensorSource for GgufWeights {
    fn place(&self) -> &Path {
        &self.path
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        self.tensors.iter().map(|(name, stored)| (name.clone(), stored.tensor.shape.clone())).collect()
    }

    fn load(&self, name: &str) -> Result<Tensor> {
        let quantised = self.quantised(name)?;
        let stored = match quantised.dtype() {
            GgmlDType::F16 => DType::F16,
            GgmlDType::BF16 => DType::BF16,
            _ => DType::F32,
        };
        Ok(quantised.dequantize(&Device::Cpu)?.to_dtype(stored)?)
    }
}

impl GgufWeights {
    /// One tensor in the format of the file, rows in Hugging Face order.
    fn quantised(&self, name: &str) -> Result<QTensor> {
        let Some(stored) = self.tensors.get(name) else {
            return Err(Error::Request {
                what: "tensor name",
                expected: "one of the source".to_owned(),
                got: name.to_owned(),
            });
        };
        let shape = &stored.tensor.shape;
        if let Some((heads, head_dim)) = stored.interleaved
            && shape[0] != heads * head_dim
        {
            let expected = [&[heads * head_dim], &shape[1..]].concat();
            let problem = TensorProblem::Shape { name: name.to_owned(), expected, got: shape.clone() };
            return Err(Error::Tensors { path: self.path.clone(), problems: vec![problem] });
        }
        quantised(&self.path, &stored.tensor, stored.interleaved)
    }
}

fn quantised(path: &Path, tensor: &GgufTensor, interleaved: Option<(usize, usize)>) -> Result<QTensor> {
    let mut file = File::open(path).map_err(Error::io(path))?;
    file.seek(SeekFrom::Start(tensor.bytes.start)).map_err(Error::io(path))?;
    let mut bytes = vec![0; (tensor.bytes.end - tensor.bytes.start) as usize];
    file.read_exact(&mut bytes).map_err(Error::io(path))?;
    if let Some((heads, head_dim)) = interleaved {
        bytes = halves_from_neighbours(&bytes, heads, head_dim);
    }
    // Candle reads as many blocks as the shape has, whatever it is given.
    let needed = tensor.shape.iter().product::<usize>() / tensor.format.block_size() * tensor.format.type_size();
    if bytes.len() != needed {
        return Err(Error::Damaged {
            path: path.to_owned(),
            what: format!("a tensor of shape {:?}", tensor.shape),
            expected: format!("{needed} bytes of {:?}", tensor.format),
            got: format!("{} bytes", bytes.len()),
        });
    }
    Ok(ggml_file::qtensor_from_ggml(tensor.format, &bytes, tensor.shape.clone(), &Device::Cpu)?)
}

/// Row `h D + 2 j + p` of the file is row `h D + p D / 2 + j` of the result (`p` = 0, 1). Whole rows move, in any format.
fn halves_from_neighbours(bytes: &[u8], heads: usize, head_dim: usize) -> Vec<u8> {
    let row_bytes = bytes.len() / (heads * head_dim);
    let mut result = Vec::with_capacity(bytes.len());
    for head in bytes.chunks_exact(row_bytes * head_dim) {
        for half in 0..2 {
            let rows = head.chunks_exact(row_bytes).skip(half).step_by(2);
            rows.for_each(|row| result.extend_from_slice(row));
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use candle_core::quantized::gguf_file::Value;

    use super::super::gguf_config::tests::metadata;
    use super::super::gguf_header::tests::write;
    use super::super::random::RandomWeights;
    use super::*;

    const FORMATS: [GgmlDType; 13] = [
        GgmlDType::F32,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ];

    fn gguf_name(name: &str) -> String {
        let pairs = [
            ("model.embed_tokens", "token_embd"),
            ("model.layers.", "blk."),
            ("model.norm", "output_norm"),
            ("lm_head", "output"),
            ("input_layernorm", "attn_norm"),
            ("post_attention_layernorm", "ffn_norm"),
            ("self_attn.q_proj", "attn_q"),
            ("self_attn.k_proj", "attn_k"),
            ("self_attn.v_proj", "attn_v"),
            ("self_attn.o_proj", "attn_output"),
            ("self_attn.q_norm", "attn_q_norm"),
            ("self_attn.k_norm", "attn_k_norm"),
            ("mlp.gate_proj", "ffn_gate"),
            ("mlp.up_proj", "ffn_up"),
            ("mlp.down_proj", "ffn_down"),
        ];
        pairs.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
    }

    /// As the converter stores q and k of Llama: `(heads, 2, D / 2, ...)` with the middle axes swapped.
    fn neighbours_from_halves(tensor: &Tensor, heads: usize) -> Tensor {
        let dims = tensor.dims().to_vec();
        let columns = tensor.elem_count() / dims[0];
        let split = tensor.reshape((heads, 2, dims[0] / heads / 2, columns)).unwrap();
        split.transpose(1, 2).unwrap().contiguous().unwrap().reshape(dims).unwrap()
    }

    /// A file made from a random model, its matrices in `format`, and that model.
    fn converted(arch: &'static str, format: GgmlDType) -> (tempfile::NamedTempFile, RandomWeights) {
        let spec = format!("random:3,arch={arch},layers=1,hidden=256,heads=4,kv_heads=2,ffn=512,vocab=40");
        let source = RandomWeights::new(&spec.parse().unwrap());
        let tensors: Vec<(String, QTensor)> = source
            .shapes()
            .into_iter()
            .map(|(name, shape)| {
                let tensor = source.load(&name).unwrap();
                let tensor = match name.as_str() {
                    name if arch == "llama" && name.contains("q_proj") => neighbours_from_halves(&tensor, 4),
                    name if arch == "llama" && name.contains("k_proj") => neighbours_from_halves(&tensor, 2),
                    _ => tensor,
                };
                let format = if shape.len() == 1 { GgmlDType::F32 } else { format };
                (gguf_name(&name), QTensor::quantize(&tensor, format).unwrap())
            })
            .collect();
        let metadata: Vec<(String, Value)> =
            metadata(&[]).into_iter().map(|(key, value)| (key.replace("llama.", &format!("{arch}.")), value)).collect();
        let mut metadata: Vec<(&str, Value)> =
            metadata.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        metadata[0].1 = Value::String(arch.to_owned());
        let file = tempfile::NamedTempFile::new().unwrap();
        write(file.path(), &metadata, &tensors);
        (file, source)
    }

    fn open(path: &Path) -> Result<(ModelConfig, GgufWeights)> {
        super::open(&GgufHeader::read(path)?)
    }

    fn values(source: &dyn TensorSource, name: &str) -> Vec<f32> {
        source.load(name).unwrap().to_dtype(DType::F32).unwrap().flatten_all().unwrap().to_vec1().unwrap()
    }

    #[test]
    fn every_family_comes_back_bit_for_bit_in_f32() {
        for arch in ["llama", "qwen2", "qwen3"] {
            let (file, original) = converted(arch, GgmlDType::F32);
            let (config, weights) = open(file.path()).unwrap();
            crate::source::check(&weights, &config).unwrap();
            assert!(!config.tie_word_embeddings);
            assert_eq!((config.qkv_bias, config.qk_norm), (arch == "qwen2", arch == "qwen3"));
            for (name, shape) in original.shapes() {
                assert_eq!(weights.load(&name).unwrap().dims(), shape);
                assert_eq!(values(&weights, &name), values(&original, &name), "{arch} {name}");
            }
        }
    }

    /// Rows move as stored: dequantised, they equal the rows of the original quantised in its own order.
    #[test]
    fn every_format_is_read_in_the_right_order() {
        for format in FORMATS {
            let (file, original) = converted("llama", format);
            let (_, weights) = open(file.path()).unwrap();
            for part in ["self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj"] {
                let name = format!("model.layers.0.{part}.weight");
                let expected = QTensor::quantize(&original.load(&name).unwrap(), format).unwrap();
                let expected = expected.dequantize(&Device::Cpu).unwrap().flatten_all().unwrap();
                assert_eq!(values(&weights, &name), expected.to_vec1::<f32>().unwrap(), "{format:?} {part}");
            }
        }
    }

    #[test]
    fn rows_of_a_head_go_from_pairs_to_halves() {
        let rows: Vec<u8> = (0..8).flat_map(|row| [row, 10 + row]).collect();
        let moved: Vec<u8> = halves_from_neighbours(&rows, 2, 4).chunks(2).map(|row| row[0]).collect();
        assert_eq!(moved, [0, 2, 1, 3, 4, 6, 5, 7]);
    }

    /// Blocks of a bias cross the rows that are moved, and candle would read behind the end.
    #[test]
    fn a_bias_in_blocks_is_refused() {
        for format in [GgmlDType::Q4_0, GgmlDType::Q8_0] {
            let file = tempfile::NamedTempFile::new().unwrap();
            let bias = QTensor::quantize(&Tensor::ones(256, DType::F32, &Device::Cpu).unwrap(), format).unwrap();
            write(file.path(), &metadata(&[]), &[("blk.0.attn_q.bias".to_owned(), bias)]);
            let text = open(file.path()).unwrap_err().to_string();
            let expected = "tensor blk.0.attn_q.bias, type: expected F32, F16 or BF16 for a tensor of one dimension";
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn candle_gets_the_bytes_that_it_reads() {
        let (file, _) = converted("llama", GgmlDType::Q4_0);
        let header = GgufHeader::read(file.path()).unwrap();
        let mut tensor = header.tensors()["blk.0.attn_q.weight"].clone();
        tensor.bytes.end -= 18;
        let text = quantised(file.path(), &tensor, None).unwrap_err().to_string();
        assert!(text.contains("expected 36864 bytes of Q4_0, got 36846 bytes"), "{text}");
    }

    #[test]
    fn llama3_divisors_become_a_configuration_and_others_an_error() {
        let file = |divisors: &[f32]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            let tensor = Tensor::from_slice(divisors, divisors.len(), &Device::Cpu).unwrap();
            let tensor = QTensor::quantize(&tensor, GgmlDType::F32).unwrap();
            write(file.path(), &metadata(&[]), &[(ROPE_DIVISORS.to_owned(), tensor)]);
            file
        };
        let mut divisors = [1.0; 32];
        divisors[24..].fill(8.0);
        let text = open(file(&divisors).path()).unwrap_err().to_string();
        assert!(text.contains("rope_freqs.weight: expected 32 divisors"), "{text}");
        let plain = file(&[1.0; 32]);
        assert_eq!(open(plain.path()).unwrap().0.rope_scaling, RopeScaling::Default);
        assert!(open(file(&[1.0; 31]).path()).is_err());
    }

    #[test]
    fn tensors_are_asked_for_by_their_hugging_face_name() {
        let (file, _) = converted("llama", GgmlDType::F32);
        let (_, weights) = open(file.path()).unwrap();
        weights.load("model.layers.0.self_attn.q_proj.weight").unwrap();
        assert!(weights.load("blk.0.attn_q.weight").is_err());
    }

    #[test]
    fn any_cut_or_flipped_byte_is_an_error_or_a_tensor_but_no_panic() {
        let (file, _) = converted("llama", GgmlDType::Q4_0);
        let good = std::fs::read(file.path()).unwrap();
        let first = |header: &GgufHeader| header.tensors().values().map(|tensor| tensor.bytes.start).min();
        let header_bytes = first(&GgufHeader::read(file.path()).unwrap()).unwrap();
        let try_it = || -> Result<()> {
            let (config, weights) = open(file.path())?;
            crate::source::check(&weights, &config)?;
            config.tensors().iter().try_for_each(|(name, _)| weights.load(name).map(|_| ()))
        };
        let mut handle = file.reopen().unwrap();
        let mut put = |at: u64, byte: u8| {
            handle.seek(SeekFrom::Start(at)).unwrap();
            handle.write_all(&[byte]).unwrap();
        };
        for at in (0..header_bytes).step_by(5) {
            put(at, good[at as usize] ^ 0xff);
            let _ = try_it();
            put(at, good[at as usize]);
        }
        try_it().unwrap();
        let handle = file.reopen().unwrap();
        let ends = [good.len() as u64 - 33, good.len() as u64 / 2];
        for length in ends.into_iter().chain((0..header_bytes).rev().step_by(7)) {
            handle.set_len(length).unwrap();
            assert!(try_it().is_err(), "cut at {length}");
        }
    }
}
