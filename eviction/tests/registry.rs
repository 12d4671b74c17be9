//! What every row of the policy table must keep, on a random model.

use epikv_eviction::{Decoded, Error, Generation, Limits, POLICIES, PolicyRow, Trigger, decode, find};
use epikv_model::Device;
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_model::sampler::RandomStream;
use epikv_model::session::Finish;

const N_PROMPT: usize = 12;
const N_NEW: usize = 40;

fn decoder() -> Decoder {
    let (config, weights, _) = open(&"random:3,layers=4,vocab=512".parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

fn prompt() -> Vec<u32> {
    (0..N_PROMPT as u32).map(|i| 3 + (i * i * 31 + i * 7) % 500).collect()
}

fn run(decoder: &Decoder, row: &PolicyRow, budget: usize, seed: u64) -> Decoded {
    let prompt = prompt();
    let limits = Limits::new(budget, N_PROMPT).expect("feasible");
    let stream = RandomStream { seed, problem: 5, sample: 0 };
    let generation = Generation { stream, ..Generation::greedy(&prompt, N_NEW) };
    decode(decoder, row.policy, limits, &generation).expect("a generation")
}

/// Everything but the time.
fn same(a: &Decoded, b: &Decoded) -> bool {
    a.generated == b.generated && a.margins == b.margins && a.finish == b.finish && a.certificate == b.certificate
}

fn evicting() -> impl Iterator<Item = &'static PolicyRow> {
    POLICIES.iter().filter(|row| row.policy.trigger != Trigger::Never)
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
    for row in evicting() {
        for budget in [15, 16, 20, 33] {
            let decoded = run(&decoder, row, budget, 0);
            let certificate = decoded.certificate;
            assert!(certificate.holds(), "{} at {budget}: {certificate:?}", row.name);
            assert_eq!((certificate.max_held, certificate.peak_held), (budget, budget + 1));
            // The last new token is never fed.
            assert_eq!(certificate.n_evicted, N_PROMPT + N_NEW - 1 - budget, "{} at {budget}", row.name);
            assert_eq!(certificate.n_evictions, certificate.n_evicted, "one a step");
            assert_eq!((decoded.generated.len(), decoded.finish), (N_NEW, Finish::Length));
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
            assert_eq!(decoded.margins, full.margins, "{} at {budget}", row.name);
            assert_eq!(decoded.certificate.n_evictions, 0);
        }
    }
    for row in evicting() {
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
        assert!(same(&run(&decoder, row, 20, 1), &run(&decoder, row, 20, 1)), "{}", row.name);
    }
    let random = find("random").expect("a row");
    assert_ne!(run(&decoder, random, 20, 1).margins, run(&decoder, random, 20, 2).margins, "its seed counts");
    let window = find("window").expect("a row");
    assert!(same(&run(&decoder, window, 20, 1), &run(&decoder, window, 20, 2)), "draws nothing");
}

#[test]
fn limits_belong_to_one_prompt() {
    let (decoder, prompt) = (decoder(), prompt());
    let limits = Limits::new(40, N_PROMPT - 1).expect("feasible");
    let error = decode(&decoder, find("window").expect("a row").policy, limits, &Generation::greedy(&prompt, 3));
    assert!(matches!(error, Err(Error::OtherPrompt { n_prompt: N_PROMPT, limits_for: 11 })));
}

#[test]
fn a_stop_id_ends_the_generation() {
    let (decoder, prompt) = (decoder(), prompt());
    let limits = Limits::new(20, N_PROMPT).expect("feasible");
    let policy = find("window").expect("a row").policy;
    let free = decode(&decoder, policy, limits, &Generation::greedy(&prompt, N_NEW)).expect("a generation");
    let stop = [free.generated[3]];
    let first = free.generated.iter().position(|id| *id == stop[0]).expect("it was chosen");
    let stopped = Generation { stop_ids: &stop, ..Generation::greedy(&prompt, N_NEW) };
    let decoded = decode(&decoder, policy, limits, &stopped).expect("a generation");
    assert_eq!((decoded.finish, &decoded.generated[..]), (Finish::Eos, &free.generated[..=first]));
}
