//! Temporary folders for copies. Each folder is locked during copying, which distinguishes active
//! copies from leftovers of a killed process.
//!
//! The copy itself is not locked, because on network file systems this locks out SQLite, which
//! writes the copy.

use std::fs::{self, DirEntry, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::{NamedTempFile, TempDir};

use super::file;

const PREFIX: &str = ".planscope-copy-";
const LOCK: &str = "lock";
/// Minimum age at which an unlocked file is treated as a leftover. Earlier versions used no locks.
/// A file in progress changes continuously.
const YOUNG: Duration = Duration::from_hours(1);

/// A copy in a temporary folder. Both are deleted on drop.
#[derive(Debug)]
pub(super) struct TemporaryCopy {
    // Fields are dropped in this order.
    copy: NamedTempFile,
    _lock: File,
    _folder: TempDir,
}

impl TemporaryCopy {
    /// Creates an empty file for a copy, in the same file system as the target.
    pub(super) fn begin(parent: &Path) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(parent)?;
        let lock = locked(folder.path())?;
        let copy = NamedTempFile::new_in(folder.path())?;
        Ok(Self { copy, _lock: lock, _folder: folder })
    }

    pub(super) fn path(&self) -> &Path {
        self.copy.path()
    }

    pub(super) fn file(&self) -> &File {
        self.copy.as_file()
    }

    /// Renames the copy. Fails if the target exists.
    pub(super) fn named(self, to: &Path) -> io::Result<File> {
        let Self { copy, _lock, _folder } = self;
        Ok(copy.persist_noclobber(to)?)
    }
}

/// Locks a folder. The lock file is renamed only when it is locked, so no process can see it
/// unlocked.
fn locked(folder: &Path) -> io::Result<File> {
    let unlocked = folder.join("lock-to-be");
    let lock = file::private(OpenOptions::new().write(true).create_new(true)).open(&unlocked)?;
    match lock.try_lock() {
        Ok(()) => fs::rename(&unlocked, folder.join(LOCK))?,
        // On file systems that do not support locks, an old folder is treated as a leftover.
        Err(error) => tracing::warn!("a copy on its way cannot be locked: {error}"),
    }
    Ok(lock)
}

/// Deletes leftover copies in the folder of a database and returns their paths.
pub fn remove_leftovers(database: &Path) -> Vec<PathBuf> {
    // An unreadable folder contains nothing that could be deleted.
    let Ok(entries) = fs::read_dir(file::folder(database)) else { return Vec::new() };
    let ours = |entry: &DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
    entries.filter_map(Result::ok).filter(ours).filter_map(|entry| removed(&entry).then(|| entry.path())).collect()
}

fn removed(entry: &DirEntry) -> bool {
    let Ok(kind) = entry.file_type() else { return false };
    let path = entry.path();
    if kind.is_dir() {
        // Locked until the folder is deleted.
        let lock = OpenOptions::new().write(true).open(path.join(LOCK));
        let is_left = match &lock {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(error) => error.kind() == io::ErrorKind::NotFound && is_old(&path),
        };
        is_left && fs::remove_dir_all(&path).is_ok()
    } else {
        kind.is_file() && is_old(&path) && fs::remove_file(&path).is_ok()
    }
}

/// Returns true if a file, or all files in a folder, were last changed long ago.
fn is_old(path: &Path) -> bool {
    let age = |path: &Path| path.metadata().and_then(|metadata| metadata.modified()).ok()?.elapsed().ok();
    let within = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    within.chain([path.to_owned()]).all(|path| age(&path).is_some_and(|age| age > YOUNG))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn grow_old(path: &Path) {
        File::open(path).unwrap().set_modified(SystemTime::now() - 2 * YOUNG).unwrap();
    }

    #[test]
    fn copy_leaves_no_extra_files() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("copy.db");
        drop(TemporaryCopy::begin(folder.path()).unwrap());
        assert!(names(folder.path()).is_empty());
        let copy = TemporaryCopy::begin(folder.path()).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(copy.path()), 0o600);
            assert_eq!(mode(copy.path().parent().unwrap()), 0o700);
        }
        copy.named(&target).unwrap();
        assert_eq!(names(folder.path()), ["copy.db"]);
        // An existing target is not overwritten, and the copy is deleted.
        TemporaryCopy::begin(folder.path()).unwrap().named(&target).unwrap_err();
        assert_eq!(names(folder.path()), ["copy.db"]);
    }

    #[test]
    fn leftovers_are_removed_and_active_copies_remain() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("planscope.db");
        let path = |name: &str| folder.path().join(name);
        let making = TemporaryCopy::begin(folder.path()).unwrap();
        // State of a killed process: the folder exists and its lock is free.
        fs::create_dir(path(".planscope-copy-killed")).unwrap();
        for name in [LOCK, "copy"] {
            fs::write(path(".planscope-copy-killed").join(name), "").unwrap();
        }
        // Earlier versions left unlocked files.
        for name in [".planscope-copy-old", ".planscope-copy-young", "planscope.db", ".another"] {
            fs::write(path(name), "").unwrap();
        }
        grow_old(&path(".planscope-copy-old"));
        grow_old(&path(".another"));
        // A folder that is not locked yet.
        fs::create_dir(path(".planscope-copy-begun")).unwrap();

        let mut removed = remove_leftovers(&database);
        removed.sort();
        assert_eq!(removed, [path(".planscope-copy-killed"), path(".planscope-copy-old")]);
        let copy_name = making.path().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        let mut left = vec![".another", ".planscope-copy-begun", ".planscope-copy-young", "planscope.db", &copy_name];
        left.sort_unstable();
        assert_eq!(names(folder.path()), left);

        grow_old(&path(".planscope-copy-begun"));
        assert_eq!(remove_leftovers(&database), [path(".planscope-copy-begun")]);
        drop(making);
        assert_eq!(remove_leftovers(&path("nowhere/planscope.db")), Vec::<PathBuf>::new());
    }
}
