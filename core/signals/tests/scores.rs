//! What every row of the table of scores must keep: names, documentation, declared needs, one number a token held.

use epikv_model::Device;
use epikv_model::batch::{LogitsOf, RowInput};
use epikv_model::cache::{Capacity, Pos, RowCache, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::open;
use epikv_signals::{Chunk, Frozen, Need, SCORES, Score, ScoreRef, Setup, Step};

const N_LAYERS: usize = 4;
const N_PROMPT: usize = 9;

fn decoder() -> Decoder {
    let (config, weights, _) =
        open(&format!("random:3,layers={N_LAYERS},vocab=512").parse().expect("a spec")).expect("a model");
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).expect("weights that fit")
}

/// Every score of the table, with an argument where it needs one.
fn scores() -> impl Iterator<Item = ScoreRef> {
    SCORES.iter().map(|row| {
        let name = row.spec.name;
        name.parse().or_else(|_| format!("{name}(1)").parse()).expect("by its name, or with a number")
    })
}

fn setup() -> Setup {
    Setup { recency: 3, labels: Some([Some(0.25), None].into()), ..Setup::new(N_LAYERS) }
}

/// Feeds tokens with exactly the score's own plan; the first are the prompt.
fn feed(decoder: &Decoder, score: &mut dyn Score, cache: &mut RowCache, n: u32) {
    let tokens: Vec<u32> = (0..n).map(|i| 3 + (i * i * 7 + i * 13) % 500).collect();
    let (prompt, rest) = tokens.split_at(N_PROMPT);
    for (part, is_prompt) in std::iter::once((prompt, true)).chain(rest.chunks(1).map(|one| (one, false))) {
        let input = RowInput::next(cache, part.to_vec(), LogitsOf::None);
        let output = decoder.forward(&[input], &mut [&mut *cache], &score.plan()).expect("a pass");
        let chunk = Chunk::new(&output.taps, 0..part.len());
        score.observe(&Step { chunk: &chunk, cache, prompt: is_prompt }).expect("what the plan asks for");
    }
}

#[test]
fn names_are_unique_and_well_formed_and_everything_is_documented() {
    let mut names: Vec<&str> = SCORES.iter().map(|row| row.spec.name).collect();
    for name in &names {
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SCORES.len());
    for spec in SCORES.iter().map(|row| row.spec) {
        assert!(spec.doc.len() > 20 && !spec.doc.ends_with('.') && !spec.source.is_empty(), "{}", spec.name);
        assert!(!(spec.frozen && spec.weight), "{}: tokens are drawn by what is held", spec.name);
    }
}

#[test]
fn what_a_score_needs_is_what_its_plan_records() {
    for score in scores() {
        let started = score.start(&setup()).expect("deep enough");
        assert_eq!(started.spec(), score.spec(), "{score}");
        assert_eq!(started.frozen().is_some(), !score.is_live(), "{score}");
        let plan = started.plan();
        assert_eq!(plan.needs_attention(), score.needs(Need::Attention), "{score}");
        assert_eq!(plan.needs_logits(), score.needs(Need::Logits), "{score}");
        let recorded = [Need::Attention, Need::Logits, Need::Residual, Need::Queries];
        let recorded =
            recorded.into_iter().any(|need| score.needs(need)) || !score.is_live() && score.needs(Need::Keys);
        assert_eq!(!plan.is_empty(), recorded, "{score}");
        assert_eq!(score.plan(N_LAYERS).expect("deep enough"), plan);
    }
}

#[test]
fn each_token_held_has_one_number_in_each_kept_set() {
    let decoder = decoder();
    for score in scores() {
        for scope in [Scope::Global, Scope::PerLayer, Scope::PerHead] {
            let mut cache = decoder.cache(scope, Capacity::Growing).expect("a cache");
            let mut started = score.start(&setup()).expect("deep enough");
            feed(&decoder, &mut *started, &mut cache, 30);
            let before = started.scores(&cache).expect("on the CPU");
            for set in 0..cache.sets().len() {
                cache.remove(set, Pos(11));
                started.evicted(set, Pos(11));
            }
            let after = started.scores(&cache).expect("on the CPU");
            assert_eq!((before.len(), after.len()), (cache.sets().len(), cache.sets().len()), "{score}");
            for ((before, after), held) in before.iter().zip(&after).zip(cache.sets()) {
                assert_eq!((before.len(), after.len()), (held.len() + 1, held.len()), "{score}, {scope:?}");
                assert!(after.iter().all(|s| !s.is_nan()), "{score}, {scope:?}");
                assert!(!score.is_weight() || after.iter().all(|s| *s >= 0.0), "{score}, {scope:?}");
                if !score.is_live() || score.needs(Need::Attention) {
                    let kept = before[..11].iter().chain(&before[12..]);
                    assert!(kept.eq(after), "{score}, {scope:?}: the numbers of the others stay");
                }
            }
            let numbers = started.frozen().map(Frozen::is_shared);
            let own = score.needs(Need::RandomNumbers) && scope != Scope::Global;
            assert_eq!(numbers, (!score.is_live()).then_some(!own), "{score}, {scope:?}");
        }
    }
}
