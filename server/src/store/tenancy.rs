//! Exclusive access to a database for one process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, FileFault};

/// Exclusive right to serve or replace a database, released on drop.
///
/// Uses an operating system lock on a file next to the database, so the lock is released even if
/// the process crashes. SQLite's locks are not sufficient, because an idle server holds none. The
/// lock file is next to the resolved path, and hard links are rejected, so there is exactly one
/// lock per database regardless of the path.
#[derive(Debug)]
pub struct DatabaseLock {
    _lock: File,
    database: PathBuf,
}

/// Error when acquiring a database.
#[derive(Debug, thiserror::Error)]
pub enum TenancyError {
    /// The database is in use by a different process.
    #[error("the database {0} is in use by another planscope; stop that first")]
    OperatorTime(PathBuf),
    /// The lock file cannot be created.
    #[error("the file {path}, which says that the database is in use, cannot be written")]
    Unwritable {
        /// Path of the lock file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
    /// The database file cannot be opened.
    #[error(transparent)]
    File(#[from] FileFault),
}

impl DatabaseLock {
    /// Acquires an existing or future database. Fails if opening the file is not safe.
    pub fn take(database: &Path) -> Result<Self, TenancyError> {
        let taken = Self::lock(database)?;
        file::inspect(&taken.database)?;
        Ok(taken)
    }

    /// Acquires the path regardless of existing files.
    pub(super) fn lock(database: &Path) -> Result<Self, TenancyError> {
        let database = file::real_path(database)?;
        let path = with_suffix(&database, "-lock");
        let unwritable = |source| TenancyError::Unwritable { path: path.clone(), source };
        // The lock file is never deleted. Otherwise two processes can lock different files under
        // one name.
        let lock = file::private(OpenOptions::new().create(true).append(true)).open(&path).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock, database }),
            Err(TryLockError::WouldBlock) => Err(TenancyError::OperatorTime(database)),
            Err(TryLockError::Error(source)) => Err(unwritable(source)),
        }
    }

    /// Returns the database path with symbolic links resolved.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Returns the permissions of the database if users other than the owner have access.
    pub fn open_to_others(&self) -> Option<u32> {
        file::open_to_others(&self.database)
    }
}

/// Returns the database path with a suffix.
pub(super) fn with_suffix(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn database_has_a_single_tenant_at_a_time() {
        let (_guard, folder) = test_folder();
        let database = folder.join("a.db");
        let first = DatabaseLock::take(&database).unwrap();
        assert_eq!(first.database(), database);
        assert!(matches!(DatabaseLock::take(&database), Err(TenancyError::OperatorTime(path)) if path == database));
        DatabaseLock::take(&folder.join("b.db")).unwrap();
        drop(first);
        DatabaseLock::take(&database).unwrap();
        let nowhere = folder.join("nowhere/a.db");
        assert!(matches!(DatabaseLock::take(&nowhere), Err(TenancyError::File(FileFault::Unreachable { .. }))));
    }

    /// Finding 9: two servers opened the same file by two names.
    #[cfg(unix)]
    #[test]
    fn tenant_lock_ignores_the_name() {
        let (_guard, folder) = test_folder();
        let database = folder.join("a.db");
        std::fs::write(&database, "a database").unwrap();
        let first = DatabaseLock::take(&database).unwrap();

        let link = folder.join("link.db");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        assert!(matches!(DatabaseLock::take(&link), Err(TenancyError::OperatorTime(path)) if path == database));
        assert!(!folder.join("link.db-lock").exists());

        let other = folder.join("b.db");
        std::fs::hard_link(&database, &other).unwrap();
        assert!(matches!(DatabaseLock::take(&other), Err(TenancyError::File(FileFault::Linked { links: 2, .. }))));
        drop(first);
        assert!(matches!(DatabaseLock::take(&database), Err(TenancyError::File(FileFault::Linked { links: 2, .. }))));
        std::fs::remove_file(&other).unwrap();
        assert_eq!(DatabaseLock::take(&link).unwrap().database(), database);
    }

    /// Finding 8: a server start created an empty database and overwrote the journal, the only copy
    /// of the data.
    #[test]
    fn a_journal_that_lost_its_database_has_no_tenant() {
        let (_guard, folder) = test_folder();
        let database = folder.join("a.db");
        std::fs::write(folder.join("a.db-wal"), "the only copy").unwrap();
        assert!(matches!(DatabaseLock::take(&database), Err(TenancyError::File(FileFault::Orphan { .. }))));
        assert!(!database.exists());
        // A backup can be restored next to the remaining files.
        DatabaseLock::lock(&database).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn lock_file_is_private() {
        use std::os::unix::fs::PermissionsExt;

        let (_guard, folder) = test_folder();
        let _tenancy = DatabaseLock::take(&folder.join("a.db")).unwrap();
        let lock = folder.join("a.db-lock").metadata().unwrap();
        assert_eq!(lock.permissions().mode() & 0o777, 0o600);
    }
}
