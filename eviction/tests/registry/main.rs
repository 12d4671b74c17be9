//! What every row of the policy table must keep, on a random model.

mod parts;

use std::sync::{Arc, Mutex};

use epikv_eviction::{
    COMMON, CacheNumbers, Decoded, Error, Generation, Labels, Limits, NamedPolicy, POLICIES, Policy, PolicyRow,
    PositionMode, Score, Times, Trigger, decode, decode_all, find,
};
use epikv_model::Device;
use epikv_model::cache::{RowCache, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_model::sampler::RandomStream;
use epikv_model::session::Finish;
use epikv_signals::{ScoreRow, ScoreSpec};

const N_PROMPT: usize = 12;
const N_NEW: usize = 40;

fn decoder() -> Decoder {
    let (config, weights, _) = open(&"random:3,layers=4,vocab=512".parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

fn prompt(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| 3 + (i * i * 31 + i * 7) % 500).collect()
}

/// Labels that differ from position to position, with holes.
fn labels() -> Labels {
    Arc::from((0..60).map(|pos| (pos % 7 != 3).then(|| (pos * 5 % 11) as f32 / 11.0)).collect::<Vec<_>>())
}

fn generation(prompt: &[u32], seed: u64) -> Generation<'_> {
    let stream = RandomStream { seed, problem: 5, sample: 0 };
    Generation { stream, labels: Some(labels()), ..Generation::greedy(prompt, N_NEW) }
}

fn limits(policy: &Policy, budget: usize, n_prompt: usize) -> Limits {
    if policy.evicts() {
        Limits::new(budget, n_prompt, policy.protect).expect("feasible")
    } else {
        Limits::unlimited(n_prompt)
    }
}

fn run_policy(decoder: &Decoder, policy: &Policy, budget: usize, seed: u64) -> Decoded {
    let prompt = prompt(N_PROMPT);
    decode(decoder, policy, limits(policy, budget, N_PROMPT), &generation(&prompt, seed)).expect("a generation")
}

fn run(decoder: &Decoder, row: &PolicyRow, budget: usize, seed: u64) -> Decoded {
    run_policy(decoder, &brisk(row.policy), budget, seed)
}

/// Tokens that a row which waits is made to wait for, so that it evicts within a short generation.
const WAITS: usize = 6;

/// The policy, with less patience.
fn brisk(policy: Policy) -> Policy {
    match policy.trigger {
        Trigger::Buffer(_) => Policy { trigger: Trigger::Buffer(WAITS), ..policy },
        _ => policy,
    }
}

/// Rows that evict while tokens are generated, with the tokens that they let in before they do.
fn evicting() -> impl Iterator<Item = (&'static PolicyRow, usize)> {
    POLICIES.iter().filter_map(|row| match brisk(row.policy).trigger {
        Trigger::Each => Some((row, 1)),
        Trigger::Buffer(tokens) => Some((row, tokens)),
        _ => None,
    })
}

/// Everything but the time.
fn timeless(decoded: &Decoded) -> Decoded {
    Decoded { times: Times::default(), ..decoded.clone() }
}

#[test]
fn names_are_unique_and_well_formed_and_everything_is_documented() {
    let mut names: Vec<&str> = POLICIES.iter().map(|row| row.name).collect();
    for name in &names {
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), POLICIES.len());
    assert!(POLICIES.iter().all(|row| row.doc.len() > 20 && !row.doc.ends_with('.') && !row.source.is_empty()));
    let mut parts: Vec<String> = POLICIES.iter().map(|row| row.policy.to_string()).collect();
    parts.sort_unstable();
    parts.dedup();
    assert_eq!(parts.len(), POLICIES.len(), "two rows are the same policy");
}

#[test]
fn the_budget_holds_after_each_step_and_nothing_protected_is_lost() {
    let decoder = decoder();
    // At 15 and 16 prompt and recent tokens fill the budget; at 20 and 33 some are selected.
    for (row, more) in evicting() {
        for budget in [15, 16, 20, 33] {
            let decoded = run(&decoder, row, budget, 0);
            let certificate = decoded.certificate;
            assert!(certificate.holds(), "{} at {budget}: {certificate:?}", row.name);
            assert_eq!(certificate.max_after_eviction, budget, "{} at {budget}", row.name);
            assert_eq!((certificate.max_held, certificate.peak_held), (budget + more - 1, budget + more));
            // The last new token is never fed.
            let n_evictions = (N_PROMPT + N_NEW - 1 - budget) / more;
            assert_eq!(certificate.n_evictions, n_evictions, "{} at {budget}", row.name);
            assert_eq!(certificate.n_evicted, n_evictions * more, "{} at {budget}", row.name);
            assert_eq!((decoded.generated.len(), decoded.finish), (N_NEW, Finish::Length));
            assert_eq!(certificate.peak_kv_bytes, certificate.allocated_kv_bytes, "no slot too many");
        }
    }
}

#[test]
fn a_small_budget_changes_the_logits_and_a_large_one_is_full() {
    let decoder = decoder();
    let length = N_PROMPT + N_NEW;
    let full = run(&decoder, find("full").expect("a row"), length, 0);
    assert_eq!((full.certificate.n_evictions, full.certificate.budget), (0, None));
    assert_eq!(full.certificate.max_held, length - 1);
    for row in POLICIES {
        for budget in [length - 1, length, 10 * length] {
            let decoded = run(&decoder, row, budget, 0);
            assert_eq!(decoded.generated, full.generated, "{} at {budget}", row.name);
            // Noise is all that full-jitter is.
            let exact = row.policy.cache == CacheNumbers::F32;
            assert_eq!(decoded.margins == full.margins, exact, "{} at {budget}", row.name);
            assert_eq!(decoded.certificate.n_evictions, 0);
        }
    }
    for (row, _) in evicting() {
        let decoded = run(&decoder, row, 16, 0);
        // Nothing is evicted before the budget is full: until then it is the same generation.
        assert_eq!(decoded.margins[..5], full.margins[..5], "{}", row.name);
        assert_ne!(decoded.margins, full.margins, "{}", row.name);
        assert!(decoded.certificate.peak_kv_bytes < full.certificate.peak_kv_bytes, "{}", row.name);
    }
}

#[test]
fn the_same_run_gives_the_same_bits() {
    let decoder = decoder();
    for row in POLICIES {
        let (a, b) = (run(&decoder, row, 20, 1), run(&decoder, row, 20, 1));
        assert_eq!(timeless(&a), timeless(&b), "{}", row.name);
    }
    let random = find("random").expect("a row");
    assert_ne!(run(&decoder, random, 20, 1).margins, run(&decoder, random, 20, 2).margins, "its seed counts");
    let window = find("window").expect("a row");
    let (a, b) = (run(&decoder, window, 20, 1), run(&decoder, window, 20, 2));
    assert_eq!(timeless(&a), timeless(&b), "draws nothing");
}

#[test]
fn batch_and_threads_change_no_bit() {
    let decoder = decoder();
    let prompts: Vec<Vec<u32>> = (0..7).map(|i| prompt(6 + 3 * i)).collect();
    let more = [
        "h2o;scope=global;trigger=every(5)",
        "h2o;scope=per-head;position=compacted",
        "h2o;scope=per-layer",
        "epikv;position=rewound",
        "random;scope=per-layer",
        "epikv;select=top-k+l2(5);scope=per-head",
        "snapkv;trigger=every(5)",
        "vase;scope=global;protect=prompt+recency",
        "raas;scope=per-head",
    ];
    let more = more.map(|text| text.parse::<NamedPolicy>().expect("a policy").policy);
    for policy in POLICIES.iter().map(|row| brisk(row.policy)).chain(more) {
        let jobs: Vec<_> =
            prompts.iter().map(|prompt| (limits(&policy, 40, prompt.len()), generation(prompt, 3))).collect();
        let all = |batch: usize, threads: usize| {
            let results = Mutex::new(vec![None; jobs.len()]);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
            let done = |job: usize, decoded: Decoded| results.lock().expect("no panic")[job] = Some(timeless(&decoded));
            pool.install(|| decode_all(&decoder, &policy, &jobs, batch, &done).map(drop).expect("generations"));
            results.into_inner().expect("no panic")
        };
        let one = all(1, 1);
        assert!(one.iter().all(|decoded| decoded.as_ref().is_some_and(|d| d.certificate.holds())), "{policy}");
        for (batch, threads) in [(3, 1), (8, 1), (2, 2), (8, 3)] {
            assert_eq!(all(batch, threads), one, "{policy} with batch {batch} and {threads} threads");
        }
    }
}

#[test]
fn a_trigger_holds_more_between_evictions_and_the_budget_after_them() {
    let decoder = decoder();
    for text in ["window;trigger=buffer(6)", "h2o;trigger=buffer(6)", "random;trigger=buffer(6);scope=per-layer"] {
        let policy = text.parse::<NamedPolicy>().expect("a policy").policy;
        let certificate = run_policy(&decoder, &policy, 20, 0).certificate;
        assert!(certificate.holds(), "{text}: {certificate:?}");
        assert_eq!((certificate.max_after_eviction, certificate.max_held, certificate.peak_held), (20, 25, 26));
        assert_eq!((certificate.n_evicted, certificate.n_evictions), (30, 5), "51 tokens fed");
    }
    // After the 12th, 18th, .. generated token: 20 tokens are held after the 8th.
    let policy = "h2o;trigger=every(6)".parse::<NamedPolicy>().expect("a policy").policy;
    let certificate = run_policy(&decoder, &policy, 20, 0).certificate;
    assert!(certificate.holds(), "{certificate:?}");
    assert_eq!((certificate.max_after_eviction, certificate.max_held, certificate.peak_held), (20, 25, 26));
    assert_eq!((certificate.n_evicted, certificate.n_evictions, certificate.last_held), (28, 5, 23));
}

#[test]
fn resident_bytes_are_those_of_the_budget_the_buffer_and_one_token() {
    let decoder = decoder();
    let config = decoder.config();
    let bytes_a_token = 2 * 4 * config.n_layers * config.n_kv_heads * config.head_dim;
    // `buffer(6)` and `every(6)` hold up to five tokens over the budget after a step.
    for (text, buffer) in [("", 0), (";trigger=buffer(6)", 5), (";trigger=every(6)", 5)] {
        for row in ["window", "random", "h2o", "key-diff", "epikv"] {
            let policy = format!("{row}{text}").parse::<NamedPolicy>().expect("a policy").policy;
            let certificate = run_policy(&decoder, &policy, 20, 0).certificate;
            assert_eq!(certificate.allocated_kv_bytes, (20 + buffer + 1) * bytes_a_token, "{row}{text}");
            assert_eq!(certificate.peak_kv_bytes, certificate.allocated_kv_bytes, "{row}{text}");
        }
    }
    // The originals of compacted keys are counted too: half as much again.
    let compacted = "window;position=compacted".parse::<NamedPolicy>().expect("a policy").policy;
    assert_eq!(run_policy(&decoder, &compacted, 20, 0).certificate.allocated_kv_bytes, 21 * bytes_a_token * 3 / 2);
}

#[test]
fn noise_alone_changes_margins_a_little_and_few_tokens() {
    let decoder = decoder();
    let full = run(&decoder, find("full").expect("a row"), 0, 0);
    let jitter = run(&decoder, find("full-jitter").expect("a row"), 0, 0);
    assert_ne!(jitter.margins, full.margins);
    let far = jitter.margins.iter().zip(&full.margins).take(4).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < 1e-3, "{far}");
    assert_eq!((jitter.certificate.n_evictions, jitter.certificate.budget), (0, None));
    let named = "full-jitter;seed=1".parse::<NamedPolicy>().expect("a policy").policy;
    assert_ne!(run_policy(&decoder, &named, 0, 0).margins, jitter.margins, "other draws");
    for (text, largest) in [("full;cache=bf16", 0.5), ("full;cache=f16", 0.1)] {
        let policy = text.parse::<NamedPolicy>().expect("a policy").policy;
        let rounded = run_policy(&decoder, &policy, 0, 0);
        let far = (rounded.margins[0] - full.margins[0]).abs();
        assert!(rounded.margins != full.margins && far < largest, "{text}: {far}");
    }
    let both = "window;position=compacted;cache=bf16".parse::<NamedPolicy>().expect("a policy").policy;
    let prompt = prompt(N_PROMPT);
    let error = decode(&decoder, &both, limits(&both, 20, N_PROMPT), &generation(&prompt, 0));
    assert!(matches!(error, Err(Error::Model(_))), "keys that are made from originals in f32");
}

/// A score from outside that gives one number too few.
#[derive(Debug)]
struct Short;

static SHORT: ScoreSpec = ScoreSpec { name: "short", ..ScoreSpec::BLANK };
static SHORT_ROW: ScoreRow = ScoreRow::plain(&SHORT, |_| Ok(Box::new(Short)));

impl epikv_signals::Score for Short {
    fn spec(&self) -> &'static ScoreSpec {
        &SHORT
    }

    fn scores(&self, cache: &RowCache) -> epikv_signals::Result<Vec<Vec<f32>>> {
        Ok(cache.sets().iter().map(|set| vec![0.0; set.len() - 1]).collect())
    }
}

#[test]
fn a_score_from_outside_runs_like_one_of_the_table() {
    static NORM: ScoreSpec = ScoreSpec { name: "own-norm", ..ScoreSpec::BLANK };
    static NORM_ROW: ScoreRow = ScoreRow::plain(&NORM, |_| Ok(Box::new(epikv_signals::KeyScore::Norm)));
    static EPIKV: ScoreSpec = ScoreSpec { name: "own-epikv", frozen: true, ..ScoreSpec::BLANK };
    static EPIKV_ROW: ScoreRow = ScoreRow::plain(&EPIKV, |setup| {
        let signal = epikv_signals::Epikv::of_depth(setup.n_layers)?;
        Ok(Box::new(epikv_signals::SignalScore::new(&EPIKV, Box::new(signal))))
    });
    let decoder = decoder();
    for (own, name) in [(&NORM_ROW, "k-norm"), (&EPIKV_ROW, "epikv")] {
        let row = find(name).expect("a row").policy;
        let policy = Policy { score: Score::of(own), ..row };
        assert_eq!(
            timeless(&run_policy(&decoder, &policy, 20, 0)),
            timeless(&run_policy(&decoder, &row, 20, 0)),
            "{name}"
        );
    }
    let policy = Policy { score: Score::of(&SHORT_ROW), ..COMMON };
    let prompt = prompt(N_PROMPT);
    let error = decode(&decoder, &policy, limits(&policy, 20, N_PROMPT), &generation(&prompt, 0));
    assert!(matches!(error, Err(Error::ScoreShape { .. })));
    assert_eq!(policy.to_string().split(';').next(), Some("score=short"));
}

#[test]
fn random_numbers_are_those_of_the_kept_set() {
    let decoder = decoder();
    let random = |scope| {
        let policy = Policy { scope, ..find("random").expect("a row").policy };
        run_policy(&decoder, &policy, 20, 0)
    };
    let (global, layers, heads) = (random(Scope::Global), random(Scope::PerLayer), random(Scope::PerHead));
    assert!(global.margins != layers.margins && layers.margins != heads.margins && global.margins != heads.margins);
    assert!([&layers, &heads].iter().all(|decoded| decoded.certificate.holds()));
    assert_eq!(layers.certificate.n_evicted, global.certificate.n_evicted);
}

#[test]
fn the_prompt_alone_is_cut_by_prefill() {
    let (decoder, prompt) = (decoder(), prompt(30));
    for text in ["h2o;protect=recency(4);trigger=prefill", "streaming-llm;trigger=prefill", "snapkv"] {
        let policy = text.parse::<NamedPolicy>().expect("a policy").policy;
        let limits = Limits::new(10, prompt.len(), policy.protect).expect("feasible");
        let decoded = decode(&decoder, &policy, limits, &generation(&prompt, 0)).expect("a generation");
        let certificate = decoded.certificate;
        assert!(certificate.holds(), "{text}: {certificate:?}");
        assert_eq!((certificate.n_evictions, certificate.n_evicted, certificate.max_after_eviction), (1, 20, 10));
        assert_eq!((certificate.peak_held, certificate.last_held), (10 + N_NEW - 1, 10 + N_NEW - 1), "the rest stays");
    }
}

#[test]
fn a_prompt_that_is_not_protected_may_be_longer_than_the_budget() {
    let decoder = decoder();
    let prompt = prompt(30);
    for text in
        ["streaming-llm-absolute", "h2o;protect=sinks(4)+recency", "epikv;protect=recency(3)", "random;protect=nothing"]
    {
        let policy = text.parse::<NamedPolicy>().expect("a policy").policy;
        let limits = Limits::new(10, prompt.len(), policy.protect).expect("feasible");
        let decoded = decode(&decoder, &policy, limits, &generation(&prompt, 0)).expect("a generation");
        let certificate = decoded.certificate;
        assert!(certificate.holds(), "{text}: {certificate:?}");
        assert_eq!((certificate.max_held, certificate.peak_held, certificate.last_held), (10, 30, 10), "{text}");
        assert_eq!(certificate.n_evicted, 30 + N_NEW - 1 - 10, "{text}");
    }
}

#[test]
fn heads_of_their_own_keep_sets_of_their_own() {
    let decoder = decoder();
    let h2o = find("h2o").expect("a row").policy;
    assert_eq!(h2o.scope, Scope::PerHead);
    let margins = |policy: Policy| run_policy(&decoder, &policy, 20, 0).margins;
    let own = margins(h2o);
    for scope in [Scope::Global, Scope::PerLayer] {
        assert_ne!(margins(Policy { scope, ..h2o }), own, "{scope:?}");
    }
}

#[test]
fn other_positions_are_logical_until_the_first_eviction() {
    let decoder = decoder();
    let margins = |position: PositionMode| {
        let policy = Policy { position, ..find("epikv").expect("a row").policy };
        run_policy(&decoder, &policy, 20, 0).margins
    };
    let logical = margins(PositionMode::Logical);
    for position in [PositionMode::Rewound, PositionMode::Compacted] {
        let own = margins(position);
        assert_eq!(own[..8], logical[..8], "{position}");
        assert_ne!(own, logical, "{position}");
    }
}

#[test]
fn limits_belong_to_one_prompt() {
    let (decoder, prompt) = (decoder(), prompt(N_PROMPT));
    let policy = find("window").expect("a row").policy;
    let error = decode(&decoder, &policy, limits(&policy, 40, N_PROMPT - 1), &Generation::greedy(&prompt, 3));
    assert!(matches!(error, Err(Error::OtherPrompt { n_prompt: N_PROMPT, limits_for: 11 })));
}

#[test]
fn a_policy_must_fit_the_model() {
    let (config, weights, _) = open(&"random:3,layers=1".parse().expect("a spec")).expect("a model");
    let shallow = Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit");
    let (policy, prompt) = (find("epikv").expect("a row").policy, prompt(N_PROMPT));
    let error = decode(&shallow, &policy, limits(&policy, 40, N_PROMPT), &Generation::greedy(&prompt, 3));
    assert!(matches!(error, Err(Error::Signals(_))));
}

#[test]
fn a_stop_id_ends_the_generation() {
    let (decoder, prompt) = (decoder(), prompt(N_PROMPT));
    let policy = find("window").expect("a row").policy;
    let limits = limits(&policy, 20, N_PROMPT);
    let free = decode(&decoder, &policy, limits.clone(), &Generation::greedy(&prompt, N_NEW)).expect("a generation");
    let stop = [free.generated[3]];
    let first = free.generated.iter().position(|id| *id == stop[0]).expect("it was chosen");
    let stopped = Generation { stop_ids: &stop, ..Generation::greedy(&prompt, N_NEW) };
    let decoded = decode(&decoder, &policy, limits, &stopped).expect("a generation");
    assert_eq!((decoded.finish, &decoded.generated[..]), (Finish::Eos, &free.generated[..=first]));
}
