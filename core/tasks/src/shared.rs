//! Test only: the folder of shared inputs, which is not part of the repository.

use std::path::{Path, PathBuf};

/// `../shared/<name>` beside the repository; says so and gives `None` where it is absent.
#[expect(clippy::print_stderr, reason = "a skipped test says why")]
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if !path.is_dir() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}
