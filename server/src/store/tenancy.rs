//! One program at a time has a database for itself.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// The right to serve a database, or to put another in its place, until it is dropped.
///
/// A lock of the operating system on a file beside the database: it ends with the program, however that ends. SQLite's own
/// locks would not do, as a server that nobody asks holds none.
#[derive(Debug)]
pub struct Tenancy {
    _lock: File,
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
}

impl Tenancy {
    /// Takes a database, whether or not there is one yet.
    pub fn take(database: &Path) -> Result<Self, TenancyError> {
        let path = beside(database, "-lock");
        let unwritable = |source| TenancyError::Unwritable { path: path.clone(), source };
        // Never removed: whoever waits for a file that is gone would hold another lock than whoever makes it anew.
        let lock = OpenOptions::new().create(true).append(true).open(&path).map_err(unwritable)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(TenancyError::Taken(database.to_owned())),
            Err(TryLockError::Error(source)) => Err(unwritable(source)),
        }
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

    #[test]
    fn a_database_has_one_tenant_and_then_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("a.db");
        let first = Tenancy::take(&database).unwrap();
        assert!(matches!(Tenancy::take(&database), Err(TenancyError::Taken(path)) if path == database));
        Tenancy::take(&folder.path().join("b.db")).unwrap();
        drop(first);
        Tenancy::take(&database).unwrap();
        let nowhere = folder.path().join("nowhere/a.db");
        assert!(matches!(Tenancy::take(&nowhere), Err(TenancyError::Unwritable { .. })));
    }
}
