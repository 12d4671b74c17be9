//! What `VaSE` and the original R-KV keep of stored keys, values and queries.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use epikv_eviction::{Amount, Choice, Limits, Protect, Recency, Reserve, ReserveBy, Select};
use epikv_model::backend::DeviceName;
use epikv_model::cache::HeadView;
use epikv_model::sampler::RandomStream;
use epikv_signals::{Pool, ValueSize, WindowAttention, redundancy};
use serde_json::Value;

use crate::check::{Check, Outcome, lacking};
use crate::kvpress::same_set;
use crate::read::{Heads, Tensors, count, ids, json, list, list_or_none, number, numbers, word};
use crate::window::{PROBABILITY, highest, scores};

/// Tolerance of a value range.
const RANGE: f64 = 1e-5;

/// Tokens that have the same neighbours above which two keys say the same.
const SIMILAR: f32 = 0.5;

const STREAM: RandomStream = RandomStream { seed: 0, problem: 0, sample: 0 };

/// Runs `vase.json.gz` of a folder.
pub(crate) fn run(folder: &Path, _device: DeviceName, outcome: &mut Outcome) -> Result<()> {
    let reference = json(&folder.join("vase.json.gz"))?;
    let inputs = Tensors::open(&folder.join("vase_inputs.safetensors"))?;
    for case in list_or_none(&reference, "cases") {
        for (flush, run) in list_or_none(case, "flushes").iter().enumerate() {
            let name = format!("{}, flush {}", word(&case["name"])?, flush + 1);
            outcome.case(name, |check| {
                if flush > 0 {
                    return lacking("a second flush, whose neighbours are those of its slots");
                }
                Flush::new(case, run, &inputs)?.check(check)
            });
        }
    }
    if let Some(inclusion) = reference.get("inclusion") {
        outcome.case("inclusion", |check| inclusions(&reference, inclusion, check));
    }
    for (at, run) in list_or_none(&reference, "rkv_original").iter().enumerate() {
        outcome.case(format_args!("original R-KV {at}: {}", run["params"]), |check| r_kv(run, &inputs, check));
    }
    Ok(())
}

/// Keys and values of one layer, with the queries of its window.
struct Stored {
    keys: Heads,
    values: Heads,
    queries: Heads,
    slots: Vec<u32>,
}

impl Stored {
    fn of(inputs: &Tensors, name: &str) -> Result<Self> {
        let tensor = |part: &str| inputs.heads(&format!("{name}.{part}"));
        let (keys, values, queries) = (tensor("key")?, tensor("value")?, tensor("query")?);
        ensure!(queries.n_heads().is_multiple_of(keys.n_heads()), "expected whole groups of query heads");
        let slots = (0..keys.rows as u32).collect();
        Ok(Self { keys, values, queries, slots })
    }

    fn held(&self, head: usize) -> HeadView<'_> {
        let (keys, values) = (self.keys.head(head), self.values.head(head));
        HeadView { keys, values, slots: &self.slots, head_dim: self.keys.d }
    }

    /// The scores of what a head holds.
    fn scores(&self, how: WindowAttention, head: usize) -> Result<Vec<f64>> {
        let group = self.queries.n_heads() / self.keys.n_heads();
        scores(how, self.held(head), &self.queries, head * group..(head + 1) * group)
    }

    /// Largest less smallest channel of each value of a head.
    fn ranges(&self, head: usize) -> Vec<f32> {
        let range = |value: &[f32]| {
            let (low, high) = value.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
            high - low
        };
        self.values.head(head).chunks_exact(self.values.d).map(range).collect()
    }
}

/// A cache that is full for the first time.
struct Flush<'a> {
    case: &'a Value,
    run: &'a Value,
    stored: Stored,
    exponential: Heads,
    /// Protected first tokens.
    sinks: usize,
    /// How the kept ones are chosen; `None` where by scores alone.
    select: Option<Select>,
}

impl<'a> Flush<'a> {
    fn new(case: &'a Value, run: &'a Value, inputs: &Tensors) -> Result<Self> {
        let params = &case["params"];
        let parameter = |name: &str| count(&params[name]).with_context(|| name.to_owned());
        let draw = match case["sampler"].as_str() {
            None | Some("hard") => false,
            Some("exponential") => true,
            Some(other) => return lacking(format!("sampler {other}")),
        };
        let large = parameter("n_large")?;
        let by_range = |sinks: usize| -> Result<(usize, Option<Select>)> {
            let amount = Amount::Tokens(u16::try_from(large.saturating_sub(sinks))?);
            let reserve = Reserve { by: ReserveBy::Value(ValueSize::Range), amount };
            Ok((sinks, Some(Select { draw, reserve: Some(reserve) })))
        };
        let (sinks, select) = match word(&case["mode"])? {
            "attn" => (0, None),
            "range_attn" | "range_sample_attn" => by_range(0)?,
            "range_sink_sample_attn" => by_range(parameter("n_sink")?)?,
            other => return lacking(format!("mode {other}")),
        };
        if number(&params["temperature"])? < 1.0 || number(&params["temperature"])? > 1.0 {
            return lacking("a temperature");
        }
        let exponential = inputs.heads("exp1")?;
        Ok(Self { case, run, stored: Stored::of(inputs, "flush1")?, exponential, sinks, select })
    }

    fn check(&self, check: &mut Check) -> Result<()> {
        let params = &self.case["params"];
        let (budget, recent) = (count(&params["token_budget"])?, count(&params["residual_length"])?);
        let n = self.stored.keys.rows;
        check.equal("count before", &n, &count(&self.run["n_before"])?);
        let pool = if params["smooth"] == true { WindowAttention::VASE.pool } else { Pool::None };
        let how = WindowAttention { rows: recent, pool, ..WindowAttention::VASE };
        let calls = list(&self.run["topk_inputs"])?;
        for head in 0..self.stored.keys.n_heads() {
            let own = self.stored.scores(how, head)?;
            let (weights, ranges) = match (self.run.get("sampler_input"), calls) {
                (Some(weights), [ranges, ..]) => (weights, Some(ranges)),
                (None, [ranges, weights]) => (&weights["scores"], Some(ranges)),
                (None, [weights]) => (&weights["scores"], None),
                _ => return lacking("calls of top-k as these"),
            };
            for (place, want) in numbers(&weights[head])?.into_iter().enumerate() {
                // What is reserved has no weight left.
                if want.is_finite() && want != 0.0 {
                    check.near(format_args!("head {head}, score of {place}"), own[place], want, PROBABILITY);
                }
            }
            let own_ranges = self.stored.ranges(head);
            let counts = calls.iter().map(|call| count(&call["k"])).collect::<Result<Vec<_>>>()?;
            let large = count(&params["n_large"])?;
            let expected = match calls {
                [_] if self.select.is_none() => vec![budget - recent],
                [_] => vec![large],
                _ => vec![large, budget - recent - large],
            };
            check.equal("counts of top-k", &counts, &expected);
            if let Some(ranges) = ranges {
                for (place, want) in numbers(&ranges["scores"][head])?.into_iter().enumerate() {
                    if want.is_finite() {
                        let got = f64::from(own_ranges[place]);
                        check.near(format_args!("head {head}, value range of {place}"), got, want, RANGE);
                    }
                }
            }
            let kept = self.kept(&own, &own_ranges, head, budget, recent)?;
            let want = ids(&self.run["kept_sorted"][head])?;
            check.equal(format_args!("head {head}, kept set"), &kept, &want);
            let mut by_slot = ids(&self.run["slot_positions_after"][head])?;
            by_slot.sort_unstable();
            check.equal(format_args!("head {head}, kept slots"), &kept, &by_slot);
        }
        Ok(())
    }

    /// What a head keeps: of all but the recent tokens as many as leave room for these.
    fn kept(&self, own: &[f64], ranges: &[f32], head: usize, budget: usize, recent: usize) -> Result<Vec<u32>> {
        let n = own.len() - recent;
        let mut ranks: Vec<f32> = own[..n].iter().map(|&score| score as f32).collect();
        if let Some(select) = self.select {
            let protect = Protect { prompt: false, sinks: self.sinks, recency: Recency::Tokens(recent) };
            let limits = Limits::new(budget, own.len(), protect)?;
            let choice = Choice::new(select, STREAM);
            let reserve = choice.reserve(&limits, 0);
            let drawn = self.exponential.rows_of(head);
            ranks[..self.sinks].fill(f32::INFINITY);
            choice.rank_set(&mut ranks, ranges, reserve, self.sinks..n, |place| f64::from(drawn[place]));
        }
        let kept = highest(&ranks, budget - recent).into_iter();
        Ok(kept.chain(n as u32..own.len() as u32).collect())
    }
}

/// How often each token is among those drawn: frequencies of real draws without replacement.
fn inclusions(reference: &Value, inclusion: &Value, check: &mut Check) -> Result<()> {
    let named = word(&inclusion["weights"])?;
    let case = list(&reference["cases"])?.iter().find(|case| {
        case["name"].as_str().is_some_and(|name| named == format!("sampler_input of case {name}, flush 1"))
    });
    let weights = &case.with_context(|| format!("no {named}"))?["flushes"][0]["sampler_input"];
    let (k, draws) = (count(&inclusion["k"])?, count(&inclusion["draws"])?);
    let choice = Choice::new(Select { draw: true, reserve: None }, STREAM);
    for (head, want) in list(&inclusion["frequency"])?.iter().enumerate() {
        let weights: Vec<f32> = numbers(&weights[head])?.into_iter().map(|weight| weight as f32).collect();
        let mut drawn = vec![0_usize; weights.len()];
        for draw in 0..draws {
            let mut ranks = weights.clone();
            let exponential = |place: usize| -(1.0 - STREAM.uniform(((head * draws + draw) << 32) | place)).ln();
            choice.rank_set(&mut ranks, &[], 0, 0..weights.len(), exponential);
            for place in highest(&ranks, k) {
                drawn[place as usize] += 1;
            }
        }
        let shares: Vec<f32> = drawn.into_iter().map(|n| n as f32 / draws as f32).collect();
        // Both are frequencies.
        let tolerance = 5.0 * number(&inclusion["sd_bound"])? * f64::sqrt(2.0);
        check.all_near(format_args!("head {head}, frequency"), &shares, &numbers(want)?, tolerance);
    }
    Ok(())
}

/// The scores of the original R-KV and what it keeps.
fn r_kv(run: &Value, inputs: &Tensors, check: &mut Check) -> Result<()> {
    let params = &run["params"];
    if word(&params["retain_direction"])? != "last" {
        return lacking("a direction of redundancy that is not last");
    }
    if list_or_none(run, "rows_without_match").iter().any(|n| n.as_u64() != Some(0)) {
        return lacking("a bonus for the first slot where a key has no match");
    }
    check.near("threshold", f64::from(SIMILAR), number(&params["threshold"])?, 0.0);
    let stored = Stored::of(inputs, word(&run["inputs"])?)?;
    let (rows, width) = (count(&params["window_size"])?, count(&params["kernel_size"])?);
    let (lambda, budget) = (number(&params["mix_lambda"])?, count(&params["budget"])?);
    check.equal("count", &stored.keys.rows, &count(&run["n"])?);
    let attention = WindowAttention { rows, pool: Pool::Largest(width), lambda: None, ..WindowAttention::R_KV };
    let mixed = WindowAttention { lambda: Some((1000.0 * lambda).round() as u16), ..attention };
    for head in 0..stored.keys.n_heads() {
        let near = |what: &str, got: &[f64], want: &Value, check: &mut Check| -> Result<()> {
            for (place, (got, want)) in got.iter().zip(numbers(want)?).enumerate() {
                check.near(format_args!("head {head}, {what} of {place}"), *got, want, PROBABILITY);
            }
            Ok(())
        };
        near("redundancy", &redundancy(stored.held(head), SIMILAR), &run["redundancy_all_positions"][head], check)?;
        near("attention", &stored.scores(attention, head)?, &run["attention_term_pooled"][head], check)?;
        let scores = stored.scores(mixed, head)?;
        near("score", &scores, &run["final_score"][head], check)?;
        let ranks: Vec<f32> = scores.iter().map(|&score| score as f32).collect();
        let (got, want) = (highest(&ranks, budget), ids(&run["kept_sorted"][head])?);
        let mut reference = numbers(&run["final_score"][head])?;
        reference.resize(ranks.len(), f64::INFINITY);
        same_set(&format!("head {head}"), &got, &want, Some(&reference), Some(PROBABILITY), check);
        let mut by_slot = ids(&run["slot_positions_after"][head])?;
        by_slot.sort_unstable();
        check.equal(format_args!("head {head}, kept slots"), &by_slot, &want);
    }
    Ok(())
}
