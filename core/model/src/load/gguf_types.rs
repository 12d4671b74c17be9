//! Number formats of GGUF tensors: those that are read, and the names of the others for errors.

use candle_core::quantized::GgmlDType;

/// What is read, as errors list it.
pub(super) const READABLE: &str = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K or Q6_K";

/// The format of a code, or its name where it is known but not read.
pub(super) fn format(code: u32) -> Result<GgmlDType, String> {
    Ok(match code {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        other => return Err(unread_name(other)),
    })
}

fn unread_name(code: u32) -> String {
    let name = match code {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        20 => "IQ4_NL",
        21 => "IQ3_S",
        22 => "IQ2_S",
        23 => "IQ4_XS",
        24..=27 => "an integer type",
        28 => "F64",
        29 => "IQ1_M",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        _ => return format!("type code {code}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_map_to_formats_or_names() {
        assert_eq!(format(8), Ok(GgmlDType::Q8_0));
        assert_eq!(format(30), Ok(GgmlDType::BF16));
        assert_eq!(format(23), Err("IQ4_XS".to_owned()));
        assert_eq!(format(1000), Err("type code 1000".to_owned()));
    }
}
