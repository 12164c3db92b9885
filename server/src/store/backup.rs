//! Whole copies of a database, made while a server writes into it, and put in its place again.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteLockingMode};
use sqlx::{ConnectOptions, Connection};

use super::file::{self, COMPANIONS, FileFault, folder};
use super::passing::Passing;
use super::tenancy::{Tenancy, TenancyError, beside};
use super::verify::{Fault, reading, structure};
use super::{StoreError, is_locked};

/// Why a copy was not made, or not put in place.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// What is to be copied, or put in place, is not there or is not to be opened.
    #[error(transparent)]
    Refused(#[from] FileFault),
    /// Something stands where the copy is to be.
    #[error("{0} is there already and is not overwritten")]
    Exists(PathBuf),
    /// Something stands beside it that SQLite would take for a part of the copy.
    #[error("{0} is there and would be taken for the journal of the copy; move it away, or give the copy another name")]
    Journal(PathBuf),
    /// A database stands where the backup is to be.
    #[error("{0} is there already and is not overwritten; --replace puts the backup in its place and keeps it beside")]
    Kept(PathBuf),
    /// Another program has the database open.
    #[error("the database {0} is in use by another program; stop that first")]
    InUse(PathBuf),
    /// It is in use, or cannot be said to be.
    #[error(transparent)]
    Tenancy(#[from] TenancyError),
    /// What was looked at is not sound.
    #[error("{path} is not sound: {}", first(faults))]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        faults: Vec<Fault>,
    },
    /// SQLite refused.
    #[error("{path}: {source}")]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        source: StoreError,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
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

/// Copies a database, as it is at one moment, into a new file. Returns its bytes.
///
/// The copy is looked through before it gets its name, and is on the disk when it has it: a file of that name is a whole
/// backup, whatever happens meanwhile.
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

/// Puts a copy in the place of a database that nobody uses.
///
/// # Errors
/// There is a database and it is not to be replaced, it is in use or has several names, or the copy is not sound or of a newer version.
pub async fn restore(from: &Path, database: &Path, replace: Replace, now: Timestamp) -> Result<Restored, CopyError> {
    let from = file::existing(from)?;
    let tenancy = Tenancy::lock(database)?;
    let database = tenancy.database();
    let is_there = match file::inspect(database) {
        // What is left without its database is kept beside the restored one, and nothing opens it.
        Err(FileFault::Orphan { .. } | FileFault::Emptied { .. }) if replace == Replace::KeepingOld => true,
        is_there => is_there?,
    };
    if is_there && replace == Replace::Never {
        return Err(CopyError::Kept(database.to_owned()));
    }
    sound(&from).await?;
    let copy = copied(&from, database).await?;
    let kept = if is_there { Some(put_aside(database, now).await?) } else { None };
    let bytes = named(copy, database)?;
    Ok(Restored { bytes, kept })
}

/// Whether a database that is there may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// It stays, and nothing is restored.
    Never,
    /// It is kept beside the restored one, under another name.
    KeepingOld,
}

/// What was restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// Bytes of the database.
    pub bytes: u64,
    /// Where the one before is kept.
    pub kept: Option<PathBuf>,
}

/// A sound copy of a database under a passing name, in the folder where it is to be.
async fn copied(database: &Path, to: &Path) -> Result<Passing, CopyError> {
    let copy = Passing::begin(folder(to)).map_err(|source| CopyError::File { path: folder(to).to_owned(), source })?;
    let refused = |source| CopyError::Store { path: database.to_owned(), source };
    let name = copy.path().to_str().ok_or_else(|| CopyError::File {
        path: copy.path().to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidInput, "its name is not UTF-8"),
    })?;
    let mut connection = reading(database).await.map_err(refused)?;
    // One read transaction: what is written meanwhile waits for nobody and is not in the copy.
    sqlx::query("VACUUM INTO ?").bind(name).execute(&mut connection).await.map_err(|error| refused(error.into()))?;
    connection.close().await.map_err(|error| refused(error.into()))?;
    sound(copy.path()).await?;
    // SQLite does not wait for the disk here.
    copy.file().sync_all().map_err(|source| CopyError::File { path: copy.path().to_owned(), source })?;
    Ok(copy)
}

/// Gives a copy its name, unless that is taken.
fn named(copy: Passing, to: &Path) -> Result<u64, CopyError> {
    let file = copy.named(to).map_err(|source| match source.kind() {
        io::ErrorKind::AlreadyExists => CopyError::Exists(to.to_owned()),
        _ => CopyError::File { path: to.to_owned(), source },
    })?;
    let failed = |source| CopyError::File { path: to.to_owned(), source };
    #[cfg(unix)]
    File::open(folder(to)).and_then(|folder| folder.sync_all()).map_err(failed)?;
    Ok(file.metadata().map_err(failed)?.len())
}

/// Refuses a file that is damaged, no database of ours, or made by a newer version.
async fn sound(path: &Path) -> Result<(), CopyError> {
    let refused = |source| CopyError::Store { path: path.to_owned(), source };
    let mut connection = reading(path).await.map_err(refused)?;
    let verdict = structure(&mut connection).await.map_err(refused)?;
    connection.close().await.map_err(|error| refused(error.into()))?;
    if verdict.faults.is_empty() {
        Ok(())
    } else {
        Err(CopyError::Unsound { path: path.to_owned(), faults: verdict.faults })
    }
}

/// The first file of a database that is there: what SQLite keeps beside it is one too many.
fn there(database: &Path) -> Option<PathBuf> {
    std::iter::once(database.to_owned())
        .chain(COMPANIONS.iter().map(|ending| beside(database, ending)))
        .find(|path| path.symlink_metadata().is_ok())
}

/// Gives the files of a database other names, and says which.
async fn put_aside(database: &Path, now: Timestamp) -> Result<PathBuf, CopyError> {
    // SQLite deletes the journal of an empty file.
    if database.metadata().is_ok_and(|metadata| metadata.len() > 0) {
        // With nobody else there, opening and closing writes what stands in the journal into the file.
        let alone =
            SqliteConnectOptions::new().filename(database).locking_mode(SqliteLockingMode::Exclusive).connect().await;
        let closed = match alone {
            Ok(mut connection) => {
                let alone = sqlx::query("BEGIN EXCLUSIVE").execute(&mut connection).await;
                alone.map(|_| connection)
            }
            Err(error) => Err(error),
        };
        match closed {
            Ok(mut connection) => {
                drop(sqlx::query("ROLLBACK").execute(&mut connection).await);
                drop(connection.close().await);
            }
            Err(error) if is_locked(&error) => return Err(CopyError::InUse(database.to_owned())),
            // A damaged one is put aside as it is.
            Err(error) => tracing::warn!("{} cannot be opened: {error}", database.display()),
        }
    }
    let kept = free_name(beside(database, &now.strftime(".replaced-%Y%m%dT%H%M%SZ").to_string()));
    for ending in ["", "-wal", "-shm", "-journal"] {
        let path = beside(database, ending);
        if path.exists() {
            std::fs::rename(&path, beside(&kept, ending)).map_err(|source| CopyError::File { path, source })?;
        }
    }
    Ok(kept)
}

/// That name, or the first with a number behind it that nobody has: two may be put aside within a second.
fn free_name(name: PathBuf) -> PathBuf {
    if there(&name).is_none() {
        return name;
    }
    let numbered = (2_u64..).map(|number| beside(&name, &format!("-{number}")));
    numbered.into_iter().find(|name| there(name).is_none()).unwrap_or(name)
}
