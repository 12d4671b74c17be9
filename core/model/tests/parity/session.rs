//! The generation loop: packing, refill, drafts and stops change no token.

use epikv_model::Device;
use epikv_model::cache::{Capacity, Scope};
use epikv_model::decoder::Decoder;
use epikv_model::linear::WeightFormat;
use epikv_model::load::{ModelRef, open};
use epikv_model::sampler::{RandomStream, Sampling};
use epikv_model::session::{Finish, FinishedRow, Ledger, RowSpec, Session};
use epikv_model::{Error, Result};

fn decoder() -> Decoder {
    let (config, weights, _) = open(&"random:5,layers=2,vocab=120,context=200".parse::<ModelRef>().unwrap()).unwrap();
    Decoder::load(config, &*weights, &Device::Cpu, WeightFormat::F32).unwrap()
}

fn sampled(key: usize) -> Sampling {
    let stream = RandomStream { seed: 3, problem: key as u64, sample: 0 };
    Sampling::TopP { temperature: 1.0, top_p: 0.95, stream }
}

fn spec(decoder: &Decoder, key: usize, max_new: usize, sampling: Sampling) -> RowSpec {
    RowSpec {
        key,
        context: (0..10 + key * 7).map(|i| ((i * 31 + key * 17) % 120) as u32).collect(),
        cache: decoder.cache(Scope::Global, Capacity::Growing).unwrap(),
        max_new,
        stop_ids: vec![2],
        sampling,
        draft: [].into(),
    }
}

fn run(decoder: &Decoder, n: usize, batch: usize) -> Vec<FinishedRow> {
    let specs = (0..n).map(|key| Ok(spec(decoder, key, 12 + key % 5, sampled(key))));
    let mut rows = Vec::new();
    let mut session = Session::new(decoder);
    session
        .run(specs, batch, |row| -> Result<()> {
            rows.push(row);
            Ok(())
        })
        .unwrap();
    rows.sort_by_key(|r| r.key);
    rows
}

#[test]
fn batch_and_refill_change_no_token() {
    let decoder = decoder();
    let one = run(&decoder, 9, 1);
    assert!(one.iter().any(|r| r.generated.iter().collect::<std::collections::BTreeSet<_>>().len() > 5));
    for batch in [2, 4, 16] {
        for (a, b) in one.iter().zip(run(&decoder, 9, batch)) {
            assert_eq!((&a.generated, a.finish), (&b.generated, b.finish), "batch {batch}");
            let bits = |m: &[f32]| m.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&a.margins), bits(&b.margins));
        }
    }
}

/// Finishes a row that has a draft.
fn with_draft(decoder: &Decoder, key: usize, sampling: Sampling, draft: &[u32]) -> (FinishedRow, Ledger) {
    let mut session = Session::new(decoder);
    session.add(RowSpec { draft: draft.into(), ..spec(decoder, key, 30, sampling) }).unwrap();
    loop {
        if let Some(row) = session.take_finished().pop() {
            return (row, session.ledger());
        }
        session.step(&epikv_model::taps::ProbePlan::default()).unwrap();
    }
}

#[test]
fn drafts_change_no_token_right_or_wrong() {
    let decoder = decoder();
    for key in 0..4 {
        for sampling in [Sampling::Greedy, sampled(key)] {
            let (plain, _) = with_draft(&decoder, key, sampling, &[]);
            let right = plain.generated.clone();
            let half: Vec<u32> =
                right.iter().enumerate().map(|(i, &t)| if i < right.len() / 2 { t } else { (t + 1) % 120 }).collect();
            let wrong: Vec<u32> = right.iter().map(|t| (t + 1) % 120).collect();
            let left_and_found: Vec<u32> = right[..9].iter().chain(&wrong[9..12]).chain(&right[9..]).copied().collect();
            let longer: Vec<u32> = right.iter().chain(&wrong).copied().collect();
            for draft in [&right, &half, &wrong, &left_and_found, &longer, &right[..1].to_vec()] {
                let (got, ledger) = with_draft(&decoder, key, sampling, draft);
                assert_eq!(got.generated, right, "key {key}, {draft:?}");
                assert_eq!(got.n_forwarded as u64, ledger.prefill + ledger.draft + ledger.decode);
                assert_eq!(got.finish, plain.finish);
                let bits = |m: &[f32]| m.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&got.margins), bits(&plain.margins));
            }
        }
    }
}

#[test]
fn a_right_draft_needs_no_decoding() {
    let decoder = decoder();
    let (plain, _) = with_draft(&decoder, 1, Sampling::Greedy, &[]);
    let (row, ledger) = with_draft(&decoder, 1, Sampling::Greedy, &plain.generated);
    assert_eq!(row.generated, plain.generated);
    assert_eq!((ledger.decode, ledger.draft), (0, plain.generated.len() as u64 - 1));
}

#[test]
fn rows_with_and_without_drafts_run_together() {
    let decoder = decoder();
    let plain = run(&decoder, 6, 1);
    let specs = (0..6).map(|key| {
        let draft = if key % 2 == 0 { plain[key].generated.as_slice().into() } else { [].into() };
        Ok(RowSpec { draft, ..spec(&decoder, key, 12 + key % 5, sampled(key)) })
    });
    let mut n = 0;
    Session::new(&decoder)
        .run(specs, 4, |row| -> Result<()> {
            n += 1;
            assert_eq!(row.generated, plain[row.key].generated, "row {}", row.key);
            Ok(())
        })
        .unwrap();
    assert_eq!(n, 6);
}

#[test]
fn the_context_and_the_stop_id_end_a_row() {
    let decoder = decoder();
    let mut session = Session::new(&decoder);
    let long = RowSpec { max_new: 500, stop_ids: Vec::new(), ..spec(&decoder, 3, 500, Sampling::Greedy) };
    let n_context = long.context.len();
    session.add(long).unwrap();
    let row = loop {
        session.step(&epikv_model::taps::ProbePlan::default()).unwrap();
        if let Some(row) = session.take_finished().pop() {
            break row;
        }
    };
    assert_eq!((row.finish, n_context + row.generated.len()), (Finish::Context, 200), "the context is full");

    let first = with_draft(&decoder, 3, Sampling::Greedy, &[]).0.generated[0];
    let mut session = Session::new(&decoder);
    session.add(RowSpec { stop_ids: vec![first], ..spec(&decoder, 3, 9, Sampling::Greedy) }).unwrap();
    session.step(&epikv_model::taps::ProbePlan::default()).unwrap();
    let row = session.take_finished().pop().unwrap();
    assert_eq!((row.finish, row.generated), (Finish::Eos, vec![first]));
}

#[test]
fn mistaken_requests_are_errors() {
    let decoder = decoder();
    let mut session = Session::new(&decoder);
    session.add(spec(&decoder, 0, 3, Sampling::Greedy)).unwrap();
    assert!(
        matches!(session.add(spec(&decoder, 0, 3, Sampling::Greedy)), Err(Error::Request { .. })),
        "the key is taken"
    );
    let outside = RowSpec { context: vec![500], ..spec(&decoder, 1, 3, Sampling::Greedy) };
    session.add(outside).unwrap();
    assert!(matches!(
        session.step(&epikv_model::taps::ProbePlan::default()),
        Err(Error::TokenOutOfRange { id: 500, .. })
    ));
}
