//! One program at a time has a database for itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::file::{self, FileFault};

/// The right to serve a database, or to put another in its place, until it is dropped.
///
/// A lock of the operating system on a file beside the database: it ends with the program, however that ends. SQLite's own
/// locks would not do, as a server that nobody asks holds none. The lock stands beside the file that symbolic links lead to, and a
/// database with further names is refused, so that there is one lock whatever the name.
#[derive(Debug)]
pub struct Tenancy {
    _lock: File,
    database: PathBuf,
}

/// Why a database cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum TenancyError {
    /// Another program has it.
    #[error("the database {0} is in use by another planscope; stop that first")]
    Taken(PathBuf),
    /// The file of the lock cannot be made.
    #[error("the file {path}, which says that the database is in use, cannot be written")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not to be opened.
    #[error(transparent)]
    File(#[from] FileFault),
}

impl Tenancy {
    /// Takes a database that can be opened, whether or not there is one yet.
    pub fn take(database: &Path) -> Result<Self, TenancyError> {
        let taken = Self::lock(database)?;
        file::inspect(&taken.database)?;
        Ok(taken)
    }

    /// Takes the place of a database, whatever is there.
    pub(super) fn lock(database: &Path) -> Result<Self, TenancyError> {
        let database = file::real_path(database)?;
        let path = beside(&database, "-lock");
        let unwritable = |source| TenancyError::Unwritable { path: path.clone(), source };
        // Never removed: whoever waits for a file that is gone would hold another lock than whoever makes it anew.
        let lock = file::private(OpenOptions::new().create(true).append(true)).open(&path).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock, database }),
            Err(TryLockError::WouldBlock) => Err(TenancyError::Taken(database)),
            Err(TryLockError::Error(source)) => Err(unwritable(source)),
        }
    }

    /// The path of the database without symbolic links.
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Permissions of the database, where others than its owner may read or write it.
    pub fn open_to_others(&self) -> Option<u32> {
        file::open_to_others(&self.database)
    }
}

/// The file of that name's end beside a database.
pub(super) fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of_test() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    #[test]
    fn a_database_has_one_tenant_and_then_the_next() {
        let (_guard, folder) = folder_of_test();
        let database = folder.join("a.db");
        let first = Tenancy::take(&database).unwrap();
        assert_eq!(first.database(), database);
        assert!(matches!(Tenancy::take(&database), Err(TenancyError::Taken(path)) if path == database));
        Tenancy::take(&folder.join("b.db")).unwrap();
        drop(first);
        Tenancy::take(&database).unwrap();
        let nowhere = folder.join("nowhere/a.db");
        assert!(matches!(Tenancy::take(&nowhere), Err(TenancyError::File(FileFault::Unreachable { .. }))));
    }

    /// Finding 9: two servers started on one file by two names.
    #[cfg(unix)]
    #[test]
    fn a_database_has_one_tenant_whatever_its_name() {
        let (_guard, folder) = folder_of_test();
        let database = folder.join("a.db");
        std::fs::write(&database, "a database").unwrap();
        let first = Tenancy::take(&database).unwrap();

        let link = folder.join("link.db");
        std::os::unix::fs::symlink(&database, &link).unwrap();
        assert!(matches!(Tenancy::take(&link), Err(TenancyError::Taken(path)) if path == database));
        assert!(!folder.join("link.db-lock").exists());

        let other = folder.join("b.db");
        std::fs::hard_link(&database, &other).unwrap();
        assert!(matches!(Tenancy::take(&other), Err(TenancyError::File(FileFault::Linked { links: 2, .. }))));
        drop(first);
        assert!(matches!(Tenancy::take(&database), Err(TenancyError::File(FileFault::Linked { links: 2, .. }))));
        std::fs::remove_file(&other).unwrap();
        assert_eq!(Tenancy::take(&link).unwrap().database(), database);
    }

    /// Finding 8: a start made an empty database and wrote over the journal, the only copy of everything.
    #[test]
    fn a_journal_that_lost_its_database_has_no_tenant() {
        let (_guard, folder) = folder_of_test();
        let database = folder.join("a.db");
        std::fs::write(folder.join("a.db-wal"), "the only copy").unwrap();
        assert!(matches!(Tenancy::take(&database), Err(TenancyError::File(FileFault::Orphan { .. }))));
        assert!(!database.exists());
        // A backup may be put there, beside what is left.
        Tenancy::lock(&database).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_lock_is_for_the_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let (_guard, folder) = folder_of_test();
        let _tenancy = Tenancy::take(&folder.join("a.db")).unwrap();
        let lock = folder.join("a.db-lock").metadata().unwrap();
        assert_eq!(lock.permissions().mode() & 0o777, 0o600);
    }
}
