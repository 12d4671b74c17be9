//! Scores by an observation window beside those of `VaSE`, R-KV and `SnapKV` on the same keys and queries.
//!
//! The numbers are in `tests/golden/window_scores.json`, the script that took them over is beside it.

use epikv_stats::{Ties, top_k};
use serde_json::Value;

use super::attention::{Group, Pool, Seen, WindowAttention};
use super::redundancy::redundancy;
use crate::taps::held::Held;

/// Tolerance of scores that are probabilities, several times the noise that the makers of the reference measured.
const SCORE: f64 = 5e-6;

fn reference() -> Value {
    serde_json::from_str(include_str!("../../../tests/golden/window_scores.json")).expect("JSON")
}

/// A tensor `[heads, rows, D]`.
struct Heads {
    rows: usize,
    d: usize,
    all: Vec<f32>,
}

impl Heads {
    fn of(value: &Value) -> Self {
        let size = |axis: usize| value["shape"][axis].as_u64().expect("a size") as usize;
        let bits = value["bits"].as_str().expect("bits");
        let number = |at: usize| u32::from_str_radix(&bits[8 * at..8 * at + 8], 16).expect("hexadecimal");
        let all = (0..bits.len() / 8).map(|at| f32::from_bits(number(at))).collect();
        Self { rows: size(1), d: size(2), all }
    }

    fn head(&self, head: usize) -> &[f32] {
        &self.all[head * self.rows * self.d..(head + 1) * self.rows * self.d]
    }

    /// The last rows of some heads side by side, `[n][heads D]`.
    fn last(&self, n: usize, heads: std::ops::Range<usize>) -> Vec<Vec<f32>> {
        let row = |row: usize| {
            heads.clone().flat_map(|head| self.head(head)[row * self.d..(row + 1) * self.d].to_vec()).collect()
        };
        (self.rows - n..self.rows).map(row).collect()
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn places(value: &Value) -> Vec<usize> {
    value.as_array().expect("a list").iter().map(|x| x.as_u64().expect("a place") as usize).collect()
}

fn near(got: &[f64], want: &Value, what: &str) {
    for (at, (got, want)) in got.iter().zip(numbers(want)).enumerate() {
        assert!((got - want).abs() < SCORE, "{what} at {at}: got {got}, want {want}");
    }
}

/// The places that stay when so many do.
fn kept(scores: &[f64], n: usize) -> Vec<usize> {
    let scores: Vec<f32> = scores.iter().map(|&s| s as f32).collect();
    top_k(&scores, n, Ties::Newer).expect("numbers")
}

#[test]
fn vase_and_r_kv() {
    let reference = reference();
    let tensor = |name: &str| Heads::of(&reference[name]);
    let (keys, values, queries) = (tensor("key"), tensor("value"), tensor("query"));
    let slots: Vec<u32> = (0..keys.rows as u32).collect();
    for head in 0..2 {
        let held = Held { keys: keys.head(head), values: values.head(head), slots: &slots, head_dim: keys.d };
        let score = |how: WindowAttention, rows: usize| {
            let own = queries.last(rows, 2 * head..2 * head + 2);
            how.of_head(&own.iter().map(Vec::as_slice).collect::<Vec<_>>(), held)
        };
        for (name, pool) in [("plain", Pool::None), ("mean5", Pool::Mean(5))] {
            let scores = score(WindowAttention { pool, ..WindowAttention::VASE }, 16);
            near(&scores, &reference["vase"][name][head], &format!("VaSE {name}, head {head}"));
        }
        for run in reference["rkv"].as_array().expect("runs") {
            let number = |name: &str| run["params"][name].as_u64().expect("a count") as usize;
            let lambda = run["params"]["mix_lambda"].as_f64().expect("a share");
            let what = format!("R-KV with lambda {lambda}, head {head}");
            let rows = number("window_size");
            near(&redundancy(held, 0.5), &run["redundancy"][head], &format!("{what}, redundancy"));
            near(&score(WindowAttention::SNAPKV_DECODE, rows), &run["attention"][head], &format!("{what}, attention"));
            let how = WindowAttention { lambda: Some((1000.0 * lambda) as u16), ..WindowAttention::R_KV };
            let scores = score(how, rows);
            near(&scores, &run["final_score"][head], &what);
            // At 0.07 the cut is closer than the noise.
            if lambda > 0.07 {
                assert_eq!(kept(&scores, number("budget")), places(&run["kept"][head]), "{what}");
            }
        }
    }
}

/// Its sets are for each query head, which is a group of one.
#[test]
fn snapkv() {
    let reference = reference();
    let (keys, queries) = (Heads::of(&reference["snapkv_key"]), Heads::of(&reference["snapkv_query"]));
    let slots: Vec<u32> = (0..keys.rows as u32).collect();
    for run in reference["snapkv"].as_array().expect("runs") {
        let number = |name: &str| run["params"][name].as_u64().expect("a count") as usize;
        let (rows, width) = (number("window_size"), number("kernel_size"));
        let pool = if run["params"]["pooling"] == "avgpool" { Pool::Mean(width) } else { Pool::Largest(width) };
        let how = WindowAttention { rows, seen: Seen::Held, group: Group::Mean, pool, lambda: None };
        for head in 0..4 {
            let what = format!("SnapKV {}, head {head}", run["params"]);
            let held = Held { keys: keys.head(head / 2), values: &[], slots: &slots, head_dim: keys.d };
            let own = queries.last(rows, head..head + 1);
            let scores = how.of_head(&own.iter().map(Vec::as_slice).collect::<Vec<_>>(), held);
            // It sums over rows.
            let sums: Vec<f64> = scores[..keys.rows - rows].iter().map(|score| score * rows as f64).collect();
            for (got, want) in sums.iter().zip(numbers(&run["pooled"][head])) {
                assert!((got - want).abs() < rows as f64 * SCORE, "{what}: got {got}, want {want}");
            }
            let kept = kept(&scores, number("max_capacity_prompt"));
            let (certain, tied) = (places(&run["certain"][head]), places(&run["tied"][head]));
            assert!(certain.iter().all(|place| kept.contains(place)), "{what}");
            let window = keys.rows - rows;
            let allowed = |place: &usize| *place >= window || certain.contains(place) || tied.contains(place);
            assert!(kept.iter().all(allowed), "{what}");
        }
    }
}
