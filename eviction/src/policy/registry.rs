//! The table of all policies. A new policy is a row here. If it needs a new part, the part is a file of its own.

use epikv_model::cache::Scope;
use epikv_signals::{ScoreRef, ValueSize};

use crate::error::{Error, Result};
use crate::policy::select::{Amount, Reserve, ReserveBy};
use crate::policy::{Allocate, CacheNumbers, Policy, PositionMode, Protect, Read, Recency, Select, Trigger};

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct PolicyRow {
    /// Name on the command line and in files.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Where it comes from, and where it differs from there.
    pub source: &'static str,
    /// Its parts.
    pub policy: Policy,
}

/// Prompt and recent tokens.
const USUAL: Protect = Protect { prompt: true, sinks: 0, recency: Recency::Budget };

/// The row of [`SCORES`](epikv_signals::SCORES) of a name, looked up while this crate is compiled.
const fn score(name: &str) -> ScoreRef {
    ScoreRef::named(name).expect("a row of the table of scores")
}

/// What rows share, so that they differ only in what is special to them: equal protection, one kept set, logical positions.
pub const COMMON: Policy = Policy {
    score: score("recency"),
    protect: USUAL,
    allocate: Allocate::EVEN,
    select: Select::TOP_K,
    trigger: Trigger::Each,
    read: Read::ALL,
    scope: Scope::Global,
    position: PositionMode::Logical,
    cache: CacheNumbers::F32,
    seed: 0,
};

/// The reserve of `VaSE`.
const VALUE_QUARTER: Reserve = Reserve { by: ReserveBy::Value(ValueSize::Range), amount: Amount::Percent(25) };

/// 4 sinks and the recent tokens.
const SINKS: Protect = Protect { prompt: false, sinks: 4, recency: Recency::Budget };

/// Name of the row that every other is compared with.
pub const FULL: &str = "full";

/// Name of the row that keeps a random sample.
pub const RANDOM: &str = "random";

/// All policies.
pub static POLICIES: &[PolicyRow] = &[
    PolicyRow {
        name: FULL,
        doc: "Keeps every token; all other policies are compared with it",
        source: "baseline",
        policy: Policy { trigger: Trigger::Never, ..COMMON },
    },
    PolicyRow {
        name: "full-jitter",
        doc: "Keeps every token, with keys and values moved by up to 16 units in the last place: shows the effect of \
              rounding alone",
        source: "baseline; f32 noise as another kernel or another order of sums makes it",
        policy: Policy { trigger: Trigger::Never, cache: CacheNumbers::Jitter(16), ..COMMON },
    },
    PolicyRow {
        name: "window",
        doc: "Keeps the prompt and the newest tokens",
        source: "baseline; StreamingLLM (arXiv 2309.17453) with the prompt in place of its sinks",
        policy: COMMON,
    },
    PolicyRow {
        name: "streaming-llm-absolute",
        doc: "Keeps the first 4 tokens and the newest tokens; the rest of the prompt may be evicted",
        source: "StreamingLLM (arXiv 2309.17453). Differs from the published code in: positions are those of the whole \
                 sequence, not of the cache",
        policy: Policy { protect: SINKS, ..COMMON },
    },
    PolicyRow {
        name: "streaming-llm",
        doc: "Keeps the first 4 tokens and the newest tokens, with positions counted inside the cache",
        source: "StreamingLLM (arXiv 2309.17453), as published: 4 sinks, a window of K - 4, keys rotated by their place in \
                 the cache",
        policy: Policy {
            protect: Protect { prompt: false, sinks: 4, recency: Recency::None },
            position: PositionMode::Compacted,
            ..COMMON
        },
    },
    PolicyRow {
        name: RANDOM,
        doc: "Keeps the prompt, the recent tokens and a uniform random sample of the tokens between them",
        source: "baseline",
        policy: Policy { score: score("random"), ..COMMON },
    },
    PolicyRow {
        name: "h2o",
        doc: "Keeps the tokens that have received the most attention since the start, for each layer and KV head",
        source: "H2O (arXiv 2306.14048). Differs from the published code in: the prompt is protected, query heads of a \
                 group share a kept set by their mean, sums are f32, recency is min(128, K/4) and not K/2",
        policy: Policy { score: score("h2o"), scope: Scope::PerHead, ..COMMON },
    },
    PolicyRow {
        name: "h2o-global",
        doc: "Keeps the 4 first tokens, the recent ones and those that generated tokens attended to most, by one choice for \
              all layers and heads",
        source: "H2O as EpiKV's authors run it (arXiv 2606.26472): rows of generated tokens alone, mean over layers and \
                 heads. Differs from the published runs in: positions, which are logical; theirs are `position=rewound`. \
                 H2O itself (arXiv 2306.14048) keeps K/2 recent tokens: `protect=recency(50%)`",
        policy: Policy { score: score("h2o").with("decode"), protect: SINKS, ..COMMON },
    },
    PolicyRow {
        name: "tova",
        doc: "Keeps the tokens that the newest token attends to most, for each layer",
        source: "TOVA (arXiv 2401.06104), score as kvpress `TOVAPress`: the mean over heads. Differs from there in: \
                 prompt and recent tokens are protected, not the newest alone",
        policy: Policy { score: score("tova"), scope: Scope::PerLayer, ..COMMON },
    },
    PolicyRow {
        name: "raas",
        doc: "Keeps the prompt and the most recently attended tokens: each step renews the time stamps of the half \
              with more attention",
        source: "RaaS (arXiv 2502.11147) by tokens, the rule of `RaaSEviction` of EpiKV's authors. Differs from there \
                 in: among tokens with equal time stamps the older is evicted, and the newest is protected; from the \
                 published code in: tokens, not pages of 16",
        policy: Policy {
            score: score("raas"),
            protect: Protect { prompt: true, sinks: 0, recency: Recency::Tokens(1) },
            ..COMMON
        },
    },
    PolicyRow {
        name: "snapkv",
        doc: "Evicts from the prompt once and keeps the tokens that its last tokens attend to, for each layer and KV \
              head; generated tokens stay",
        source: "SnapKV (arXiv 2404.14469), with the settings of its evaluation: attention of the last 32 tokens, largest \
                 score of 7 neighbours. Differs from the published code in: query heads of a group share a kept set by \
                 their mean, and the window is no longer than the recency of the budget",
        policy: Policy {
            score: score("snapkv"),
            protect: Protect { prompt: false, ..USUAL },
            trigger: Trigger::Prefill,
            scope: Scope::PerHead,
            ..COMMON
        },
    },
    PolicyRow {
        name: "snapkv-decode",
        doc: "Keeps the tokens that the last 8 tokens attend to, every 128 tokens, for each layer and KV head",
        source: "SnapKV (arXiv 2404.14469) while decoding, as in the baseline of R-KV (arXiv 2505.24133). Differs from \
                 there in: prompt and recent tokens are protected, and neighbours are by position",
        policy: Policy {
            score: score("snapkv-decode"),
            trigger: Trigger::Buffer(128),
            scope: Scope::PerHead,
            ..COMMON
        },
    },
    PolicyRow {
        name: "r-kv",
        doc: "Keeps the tokens that the last 8 tokens attend to and whose keys are not redundant, every 128 tokens, \
              for each layer and KV head",
        source: "R-KV (arXiv 2505.24133), lambda 0.1. Differs from the published code in: prompt and recent tokens are \
                 protected, neighbours are by position, and the similarity matrix is left unchanged for a key that no \
                 other key resembles",
        policy: Policy { score: score("r-kv"), trigger: Trigger::Buffer(128), scope: Scope::PerHead, ..COMMON },
    },
    PolicyRow {
        name: "vase",
        doc: "Keeps the tokens with the largest value ranges and draws the rest by the attention of the last 64 \
              tokens, for each layer and KV head",
        source: "VaSE-AttnV (arXiv 2606.03928): 4 sinks, a quarter of the budget by value range, a buffer of 64. Differs \
                 from the published code in: the number of recent tokens follows from the budget (64 at K = 256), and \
                 neighbours are by position",
        policy: Policy {
            score: score("vase"),
            protect: SINKS,
            select: Select { draw: true, reserve: Some(VALUE_QUARTER) },
            trigger: Trigger::Buffer(64),
            scope: Scope::PerHead,
            ..COMMON
        },
    },
    PolicyRow {
        name: "vase-random",
        doc: "Keeps the 4 first tokens, the recent ones and a random sample drawn anew at each eviction, for each layer and \
              KV head",
        source: "VaSE (arXiv 2606.03928), section 3, its random eviction: a buffer of 64",
        policy: Policy {
            score: score("random-anew"),
            protect: SINKS,
            trigger: Trigger::Buffer(64),
            scope: Scope::PerHead,
            ..COMMON
        },
    },
    PolicyRow {
        name: "evict-largest-value",
        doc: "Evicts the tokens with the largest value ranges, for each layer and KV head: a check that values matter",
        source: "VaSE (arXiv 2606.03928), section 3: 4 sinks, a buffer of 64",
        policy: Policy {
            score: score("small-values"),
            protect: SINKS,
            trigger: Trigger::Buffer(64),
            scope: Scope::PerHead,
            ..COMMON
        },
    },
    PolicyRow {
        name: "lag-kv",
        doc: "Keeps tokens whose channels vary most on the scale of the next 128 tokens, for each layer and KV head",
        source: "LagKV (arXiv 2504.04704), score as kvpress `LagKVPress`. Differs from there in: prompt and recent tokens \
                 are protected, and it evicts when a chunk is over the budget",
        policy: Policy { score: score("lag-kv"), trigger: Trigger::Buffer(128), scope: Scope::PerHead, ..COMMON },
    },
    PolicyRow {
        name: "epikv-lag",
        doc: "Keeps tokens whose channels, of keys and values, vary most on the scale of the previous 128 tokens",
        source: "`lag_kv` of EpiKV's authors (arXiv 2606.26472), their Lag-KV, another score than LagKV. Differs from \
                 the published runs in: positions, which are logical and not rewound",
        policy: Policy { score: score("epikv-lag"), ..COMMON },
    },
    PolicyRow {
        name: "kv-key",
        doc: "Keeps tokens with the largest variance of keys over channels (rolling mean of 64 tokens)",
        source: "EpiKV (arXiv 2606.26472), `kv_key`",
        policy: Policy { score: score("kv-key"), ..COMMON },
    },
    PolicyRow {
        name: "k-norm",
        doc: "Keeps tokens whose keys have the smallest L2 norm, for each layer and KV head",
        source: "K-norm (arXiv 2406.11430), score as kvpress `KnormPress`. Differs from there in: prompt and recent \
                 tokens are protected, and it evicts after each step",
        policy: Policy { score: score("k-norm"), scope: Scope::PerHead, ..COMMON },
    },
    PolicyRow {
        name: "key-diff",
        doc: "Keeps tokens whose keys differ most from the mean direction of the keys, for each layer and KV head",
        source: "KeyDiff (arXiv 2504.15364), score as kvpress `KeyDiffPress`. Differs from there in: prompt and recent \
                 tokens are protected, and it evicts after each step",
        policy: Policy { score: score("key-diff"), scope: Scope::PerHead, ..COMMON },
    },
    PolicyRow {
        name: "epikv",
        doc: "Keeps tokens at which the residual stream changes unusually much at layer 10 and not at layer 21: z10 - \
              z21",
        source: "EpiKV (arXiv 2606.26472), `hs_variance_detrend`. Differs from the published runs in: positions, which \
                 are logical and not rewound",
        policy: Policy { score: score("epikv"), ..COMMON },
    },
    PolicyRow {
        name: "epikv-raw",
        doc: "Keeps tokens around which the residual stream changes more at layer 10 than at layer 21: mean64(g10) - \
              mean64(g21)",
        source: "EpiKV (arXiv 2606.26472), `hs_variance`. Differs from the published runs in: positions, which are \
                 logical and not rewound",
        policy: Policy { score: score("epikv-raw"), ..COMMON },
    },
    PolicyRow {
        name: "oracle-labels",
        doc: "Keeps the tokens that are important by the occlusion labels of the same problem; unlabelled tokens count as \
              important",
        source: "meant as an upper bound, though not a strict one: the labels themselves as scores. Labels are those of \
                 `epikv label`, by position; after the first token that differs from the labelled trace they belong to \
                 other tokens",
        policy: Policy { score: score("labels"), ..COMMON },
    },
];

/// The row of a name.
///
/// # Errors
/// If there is none; the error lists the names.
pub fn find(name: &str) -> Result<&'static PolicyRow> {
    POLICIES.iter().find(|row| row.name == name).ok_or_else(|| Error::UnknownPolicy {
        given: name.to_owned(),
        known: POLICIES.iter().map(|row| row.name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use epikv_words::Hint;

    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = find("h3o").expect_err("no such row");
        assert!(
            error
                .to_string()
                .starts_with("unknown policy \"h3o\": expected one of full, full-jitter, window, streaming-llm")
        );
        assert!(error.hint().is_some());
    }

    #[test]
    fn a_row_can_be_written_out() {
        assert_eq!(
            find("random").expect("a row").policy.to_string(),
            "score=random;protect=prompt+recency;select=top-k;trigger=each;scope=global;position=logical;cache=f32;seed=0"
        );
        assert!(find("full").expect("a row").policy.to_string().contains("trigger=never"));
        let sinks = find("streaming-llm-absolute").expect("a row").policy.to_string();
        assert!(sinks.contains("protect=sinks(4)+recency"), "{sinks}");
    }
}
