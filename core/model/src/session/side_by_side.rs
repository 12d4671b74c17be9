//! How many sessions share the cores.

use crate::decoder::Decoder;

/// A model up to this size stays in the caches of a core.
const SMALL_MODEL_BYTES: usize = 32 << 20;

/// Runs `work` in as many sessions side by side as pay, at most `n_rows`, and returns what each gave.
///
/// A large model gets one session, whose products the threads share. At the sizes of a small one, handing parts of a
/// product to other threads costs more than it saves, so each thread has a session of its own. `work` takes rows from a
/// common source until there are none; what a row gives does not depend on the session that it ran in.
pub fn side_by_side<R: Send>(decoder: &Decoder, n_rows: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    let small = decoder.bytes() <= SMALL_MODEL_BYTES && decoder.backend().facts().takes_threads;
    let sessions = if small { rayon::current_num_threads().min(n_rows).max(1) } else { 1 };
    if sessions == 1 {
        return vec![work()];
    }
    let alone = || match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
        // Inside a pool of one thread nothing is handed to another.
        Ok(pool) => pool.install(&work),
        Err(_) => work(),
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..sessions).map(|_| scope.spawn(alone)).collect();
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}
