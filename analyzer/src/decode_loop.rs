//! Test: a decode loop records the same signals of its own tokens as a teacher-forced pass afterwards.

use epikv_model::cache::{Capacity, Scope};
use epikv_model::sampler::Sampling;
use epikv_model::session::{RowSpec, Session};
use epikv_model::taps::ProbePlan;
use epikv_signals::{Chunk, SIGNALS, SignalRow};

use crate::record::{RecordOptions, record};
use crate::shared::{decoder, trace};

/// Of the value, or absolute below 1: attention is summed in another order.
const TOLERANCE: f32 = 1e-4;

const N_PROMPT: usize = 30;
const N_NEW: usize = 90;

#[test]
fn a_decode_loop_records_what_a_teacher_forced_pass_does() {
    let decoder = decoder();
    let rows: Vec<&SignalRow> = SIGNALS.iter().collect();
    let mut late: Vec<_> = rows.iter().filter_map(|row| row.late(4).expect("layers")).collect();
    let mut running: Vec<_> = rows.iter().flat_map(|row| row.all(4).expect("deep enough")).collect();
    let plan = running.iter().fold(ProbePlan::default(), |plan, (_, signal)| plan.union(&signal.plan()));
    let plan = late.iter().fold(plan, |plan, signal| plan.union(&signal.plan()));

    let mut session = Session::new(&decoder);
    let prompt = trace(N_PROMPT, N_PROMPT as i32).token_ids;
    let spec = RowSpec {
        key: 0,
        context: prompt.iter().map(|&id| id as u32).collect(),
        cache: decoder.cache(Scope::Global, Capacity::Growing).expect("a cache"),
        max_new: N_NEW,
        stop_ids: Vec::new(),
        sampling: Sampling::Greedy,
        draft: [].into(),
    };
    session.add(spec).expect("a prompt");
    let mut columns = vec![Vec::new(); running.len()];
    let (mut n_fed, mut passes) = (0, 0);
    let generated = loop {
        if let Some(row) = session.take_finished().pop() {
            break row.generated;
        }
        let step = session.step(&plan).expect("room");
        let chunk = Chunk::new(&step.taps, 0..step.fed[0].1);
        if n_fed == N_PROMPT {
            for (_, signal) in &mut running {
                signal.reset();
            }
        }
        for (column, (_, signal)) in columns.iter_mut().zip(&mut running) {
            column.extend(signal.push(&chunk).expect("recorded"));
        }
        for signal in &mut late {
            signal.push(&chunk).expect("recorded");
        }
        n_fed += chunk.len();
        passes += 1;
    };
    columns.extend(late.iter_mut().map(|signal| signal.finish()));
    // The last new token is chosen and never fed.
    assert_eq!((n_fed, passes), (N_PROMPT + N_NEW - 1, N_NEW), "one pass for the prompt, one for each token after it");

    let mut trace = trace(N_PROMPT, N_PROMPT as i32);
    trace.token_ids.extend(generated[..N_NEW - 1].iter().map(|&id| id as i32));
    let forced = record(&decoder, &trace, &rows, RecordOptions::default()).expect("fits");
    assert_eq!(columns.len(), forced.columns.len());
    for (decoded, forced) in columns.iter().zip(&forced.columns) {
        assert_eq!(decoded.len(), forced.values.len());
        for (pos, pair) in decoded.iter().zip(&forced.values).enumerate() {
            let is_near = match pair {
                (Some(a), Some(b)) => (a - b).abs() <= TOLERANCE * b.abs().max(1.0),
                (a, b) => a == b,
            };
            assert!(is_near, "{}, layer {:?}, position {pos}: {pair:?}", forced.signal, forced.layer);
        }
    }
}
