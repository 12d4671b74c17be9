//! What the selection of `VaSE` keeps, beside its code: a reserve by value range, the rest by score or drawn.
//!
//! The numbers are in `tests/golden/vase_choices.json`, the script that took them over is beside it.

use epikv_model::sampler::RandomStream;
use epikv_stats::{Ties, top_k};
use serde_json::Value;

use crate::engine::choice::Choice;
use crate::policy::limits::Limits;
use crate::policy::{Protect, Recency, Select};

fn numbers(value: &Value) -> Vec<f32> {
    let number = |x: &Value| x.as_f64().map_or(f32::INFINITY, |x| x as f32);
    value.as_array().expect("a list").iter().map(number).collect()
}

#[test]
fn the_same_tokens_are_reserved_and_drawn() {
    let reference: Value = serde_json::from_str(include_str!("../../tests/golden/vase_choices.json")).expect("JSON");
    let protect = Protect { prompt: false, sinks: 4, recency: Recency::Tokens(16) };
    let limits = Limits::new(128, 200, protect).expect("feasible");
    let stream = RandomStream { seed: 0, problem: 0, sample: 0 };
    for run in reference["runs"].as_array().expect("runs") {
        let draw = run["draw"] == true;
        let choice = Choice::new(Select { draw, values: 25 }, stream);
        for head in 0..2 {
            let (mut scores, exponential) = (numbers(&run["scores"][head]), numbers(&reference["exponential"][head]));
            let n = scores.len();
            scores[..4].fill(f32::INFINITY);
            let (ranges, reserve) = (numbers(&reference["ranges"][head]), choice.reserve(&limits, 0));
            choice.rank_set(&mut scores, &ranges, reserve, 4..n, |at| f64::from(exponential[at]));
            let stay = top_k(&scores, 112, Ties::Newer).expect("numbers").into_iter().chain(n..n + 16);
            let want =
                run["kept"][head].as_array().expect("places").iter().map(|x| x.as_u64().expect("a place") as usize);
            assert_eq!(stay.collect::<Vec<_>>(), want.collect::<Vec<_>>(), "draw {draw}, head {head}");
        }
    }
}
