//! The table of all scores. A new one is its file and its row here.

use super::row::ScoreRow;

/// All scores.
pub static SCORES: &[ScoreRow] = &[
    super::recency::ROW,
    super::random::ROW,
    super::random::ANEW_ROW,
    super::epikv::ROW,
    super::epikv::RAW_ROW,
    super::layer::ROW,
    super::kv_key::ROW,
    super::key_score::NORM_ROW,
    super::key_score::DIFFERENCE_ROW,
    super::attention_sum::H2O_ROW,
    super::attention_sum::TOVA_ROW,
    super::stamps::ROW,
    super::window::SNAPKV_ROW,
    super::window::SNAPKV_DECODE_ROW,
    super::window::R_KV_ROW,
    super::window::VASE_ROW,
    super::lag_held::LAG_KV_ROW,
    super::lag_held::EPIKV_LAG_ROW,
    super::lag_held::EPIKV_LAG_KEY_ROW,
    super::value_size::ROW,
    super::labels::ROW,
];
