//! Backup of a database while the server writes to it, and restore.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteLockingMode};
use sqlx::{ConnectOptions, Connection};

use super::file::{self, COMPANIONS, FileFault, folder};
use super::passing::TemporaryCopy;
use super::tenancy::{DatabaseLock, TenancyError, with_suffix};
use super::verify::{Fault, reading, structure};
use super::{StoreError, is_locked};

/// Error during backup or restore.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The source is missing or cannot be opened.
    #[error(transparent)]
    Unusable(#[from] FileFault),
    /// The target file exists already.
    #[error("{0} exists and is not overwritten")]
    Exists(PathBuf),
    /// A file exists that SQLite uses as the journal of the copy.
    #[error(
        "{0} exists and SQLite would read it as the journal of the copy; move it, or choose another name for the copy"
    )]
    Journal(PathBuf),
    /// A database exists at the restore target.
    #[error("{0} exists and is not overwritten; --replace renames it and restores the backup in its place")]
    TargetExists(PathBuf),
    /// The database is open in a different process.
    #[error("the database {0} is in use by another program; stop that first")]
    InUse(PathBuf),
    /// The database is locked, or the lock cannot be checked.
    #[error(transparent)]
    DatabaseLock(#[from] TenancyError),
    /// Verification found faults.
    #[error("{path} is not sound: {}", first(faults))]
    Unsound {
        /// Verified file.
        path: PathBuf,
        /// Faults in the file.
        faults: Vec<Fault>,
    },
    /// SQLite returned an error.
    #[error("{path}: {source}")]
    Store {
        /// Affected file.
        path: PathBuf,
        /// Error from the store.
        source: StoreError,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Affected file.
        path: PathBuf,
        /// I/O error.
        source: io::Error,
    },
}

fn first(faults: &[Fault]) -> String {
    let rest = match faults.len() {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    faults.first().map(ToString::to_string).unwrap_or_default() + &rest
}

/// Copies a consistent snapshot of a database to a new file. Returns the file size in bytes.
///
/// The copy is verified and synced to disk before it is renamed to the target. A file with the
/// target name is therefore always a complete backup.
pub async fn backup(database: &Path, to: &Path) -> Result<u64, CopyError> {
    let database = file::existing(database)?;
    match there(to) {
        Some(path) if path == to => return Err(CopyError::Exists(path)),
        Some(journal) => return Err(CopyError::Journal(journal)),
        None => {}
    }
    let copy = copied(&database, to).await?;
    named(copy, to)
}

/// Replaces a database that is not in use by a copy.
///
/// # Errors
/// A database exists and `replace` forbids replacement, the database is in use or hard-linked, or
/// the copy is damaged or from a newer version.
pub async fn restore(from: &Path, database: &Path, replace: Replace, now: Timestamp) -> Result<Restored, CopyError> {
    let from = file::existing(from)?;
    let tenancy = DatabaseLock::lock(database)?;
    let database = tenancy.database();
    let is_there = match file::inspect(database) {
        // An orphaned journal or an empty database is moved aside like a database. It is not
        // opened.
        Err(FileFault::Orphan { .. } | FileFault::Emptied { .. }) if replace == Replace::KeepingOld => true,
        is_there => is_there?,
    };
    if is_there && replace == Replace::Never {
        return Err(CopyError::TargetExists(database.to_owned()));
    }
    sound(&from).await?;
    let copy = copied(&from, database).await?;
    let previous = if is_there { Some(move_aside(database, now).await?) } else { None };
    let bytes = named(copy, database)?;
    Ok(Restored { bytes, previous })
}

/// Policy for an existing database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// Keep the existing database and fail.
    Never,
    /// Rename the existing database and keep it in the same folder.
    KeepingOld,
}

/// Result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Database size in bytes.
    pub bytes: u64,
    /// New path of the previous database.
    pub previous: Option<PathBuf>,
}

/// Creates a verified copy under a temporary name in the target folder.
async fn copied(database: &Path, to: &Path) -> Result<TemporaryCopy, CopyError> {
    let copy =
        TemporaryCopy::begin(folder(to)).map_err(|source| CopyError::File { path: folder(to).to_owned(), source })?;
    let store_error = |source| CopyError::Store { path: database.to_owned(), source };
    let name = copy.path().to_str().ok_or_else(|| CopyError::File {
        path: copy.path().to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"),
    })?;
    let mut connection = reading(database).await.map_err(store_error)?;
    // `VACUUM INTO` uses one read transaction: concurrent writes are not blocked and not included.
    sqlx::query("VACUUM INTO ?")
        .bind(name)
        .execute(&mut connection)
        .await
        .map_err(|error| store_error(error.into()))?;
    connection.close().await.map_err(|error| store_error(error.into()))?;
    sound(copy.path()).await?;
    // SQLite does not sync the file here.
    copy.file().sync_all().map_err(|source| CopyError::File { path: copy.path().to_owned(), source })?;
    Ok(copy)
}

/// Renames a copy to the target name. Fails if the target exists.
fn named(copy: TemporaryCopy, to: &Path) -> Result<u64, CopyError> {
    let file = copy.named(to).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => CopyError::Exists(to.to_owned()),
        _ => CopyError::File { path: to.to_owned(), source },
    })?;
    let failed = |source| CopyError::File { path: to.to_owned(), source };
    #[cfg(unix)]
    File::open(folder(to)).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(file.metadata().map_err(failed)?.len())
}

/// Rejects a file that is damaged, is not a Planscope database, or comes from a newer version.
async fn sound(path: &Path) -> Result<(), CopyError> {
    let store_error = |source| CopyError::Store { path: path.to_owned(), source };
    let mut connection = reading(path).await.map_err(store_error)?;
    let report = structure(&mut connection).await.map_err(store_error)?;
    connection.close().await.map_err(|error| store_error(error.into()))?;
    if report.faults.is_empty() {
        Ok(())
    } else {
        Err(CopyError::Unsound { path: path.to_owned(), faults: report.faults })
    }
}

/// Returns the first existing file of a database, including the companion files of SQLite.
fn there(database: &Path) -> Option<PathBuf> {
    std::iter::once(database.to_owned())
        .chain(COMPANIONS.iter().map(|ending| with_suffix(database, ending)))
        .find(|path| path.symlink_metadata().is_ok())
}

/// Renames the files of a database and returns the new path.
async fn move_aside(database: &Path, now: Timestamp) -> Result<PathBuf, CopyError> {
    // SQLite deletes the journal of an empty database.
    if database.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        // With an exclusive lock, opening and closing the database writes the journal into the
        // file.
        let exclusive =
            SqliteConnectOptions::new().filename(database).locking_mode(SqliteLockingMode::Exclusive).connect().await;
        let closed = match exclusive {
            Ok(mut connection) => {
                let transaction = sqlx::query("BEGIN EXCLUSIVE").execute(&mut connection).await;
                transaction.map(|_| connection)
            }
            Err(error) => Err(error),
        };
        match closed {
            Ok(mut connection) => {
                drop(sqlx::query("ROLLBACK").execute(&mut connection).await);
                drop(connection.close().await);
            }
            Err(error) if is_locked(&error) => return Err(CopyError::InUse(database.to_owned())),
            // A damaged database is renamed unchanged.
            Err(error) => tracing::warn!("{} cannot be opened: {error}", database.display()),
        }
    }
    let renamed = free_name(with_suffix(database, &now.strftime(".replaced-%Y%m%dT%H%M%SZ").to_string()));
    for ending in ["", "-wal", "-shm", "-journal"] {
        let path = with_suffix(database, ending);
        if path.exists() {
            std::fs::rename(&path, with_suffix(&renamed, ending)).map_err(|source| CopyError::File { path, source })?;
        }
    }
    Ok(renamed)
}

/// Returns the name, or the first free name with a numeric suffix: two renames can happen in the
/// same second.
fn free_name(name: PathBuf) -> PathBuf {
    if there(&name).is_none() {
        return name;
    }
    let numbered = (2_u64..).map(|number| with_suffix(&name, &format!("-{number}")));
    numbered.into_iter().find(|name| there(name).is_none()).unwrap_or(name)
}
