//! Advisory locks on the files that a run is going to write. They end with the process, however it ends.

use std::{
    fs::{self as std_fs, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    fs::{create_folder, failed},
};

/// A lock file that this process holds. Dropping it removes the file, and its folder where nothing else lies there, and lets
/// go of the lock.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    /// Holds the lock as long as it is open.
    file: File,
}

impl Lock {
    /// Takes the lock at once, or says that another process holds it.
    ///
    /// # Errors
    /// [`Error::InUse`] naming `what`, the file that is about to be written, or an I/O failure.
    pub fn take(path: &Path, what: &Path) -> Result<Self> {
        Self::acquire(path, |file| match file.try_lock() {
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: what.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed("lock", path)(source)),
        })
    }

    /// Waits until the lock is free.
    pub fn wait(path: &Path) -> Result<Self> {
        Self::acquire(path, |file| file.lock().map_err(failed("lock", path)))
    }

    fn acquire(path: &Path, lock: impl Fn(&File) -> Result<()>) -> Result<Self> {
        let mut tries = 0;
        loop {
            tries += 1;
            let file = match open(path) {
                // Another process may remove the folder, once it is empty, after it was made.
                Err(_) if tries < MOST_TRIES => continue,
                opened => opened?,
            };
            lock(&file)?;
            // The holder before may have removed the file while this process waited: then another can lock a new one.
            if stands_at(&file, path) {
                return Ok(Self { path: path.to_owned(), file });
            }
        }
    }
}

/// Enough to get past other processes that come and go; a folder that cannot be written fails as often.
const MOST_TRIES: usize = 100;

fn open(path: &Path) -> Result<File> {
    create_folder(crate::fs::folder_of(path))?;
    let opened = OpenOptions::new().create(true).truncate(false).write(true).open(path);
    opened.map_err(failed("create", path))
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is held, so that no other process has it; what stays is taken by the next run.
        if cfg!(unix) {
            let _ = std_fs::remove_file(&self.path);
            let _ = std_fs::remove_dir(crate::fs::folder_of(&self.path));
        }
        let _ = self.file.unlock();
    }
}

#[cfg(unix)]
fn stands_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |a: std_fs::Metadata, b: std_fs::Metadata| a.dev() == b.dev() && a.ino() == b.ino();
    file.metadata().is_ok_and(|a| std_fs::metadata(path).is_ok_and(|b| same(a, b)))
}

#[cfg(not(unix))]
fn stands_at(_: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (path, what) = (folder.path().join("locks/traces.lock"), folder.path().join("traces.parquet"));
        let first = Lock::take(&path, &what).unwrap();
        assert!(matches!(Lock::take(&path, &what), Err(Error::InUse { path }) if path == what));
        drop(first);
        assert!(!path.exists());
        drop(Lock::take(&path, &what).unwrap());
    }

    #[test]
    fn two_threads_never_hold_a_lock_together() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let holders = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = Lock::wait(&path).unwrap();
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        holders.fetch_sub(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
    }
}
