//! Database errors.

use super::{FileFault, Kind, primary_code};

/// Error of a database operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite returned an error.
    #[error("the database refused: {0}")]
    Sqlite(#[from] sqlx::Error),
    /// The database file cannot be opened, or was moved or replaced.
    #[error(transparent)]
    File(#[from] FileFault),
    /// A migration failed.
    #[error("the database could not be brought up to date: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The database size limit is reached.
    #[error(
        "the database holds {} MiB of the {} MiB that it may have, so that nothing new is taken: delete runs, traces, profiles, datasets, \
         sweeps or scenarios that nobody needs, or start the server with a larger --quota", used >> 20, quota >> 20
    )]
    Quota {
        /// Used bytes.
        used: u64,
        /// Size limit in bytes.
        quota: u64,
    },
    /// The draft limit is reached, and no draft can be evicted for this client.
    #[error(
        "the server holds {total} drafts, all in use or of other clients, so that no further one is taken: save scenarios that you need and          delete those that you do not, or try again when older drafts have expired"
    )]
    Drafts {
        /// Maximum number of drafts.
        total: u64,
    },
    /// Stored data is corrupt.
    #[error("the database holds a damaged {kind}: {detail}")]
    Damaged {
        /// Kind of row.
        kind: &'static str,
        /// Message from the parser.
        detail: String,
    },
    /// The object does not exist.
    #[error("there is no {kind} {id}")]
    Unknown {
        /// Kind of row.
        kind: &'static str,
        /// Identifier.
        id: String,
    },
    /// The object was deleted.
    #[error("the {kind} {id} was deleted at {at}")]
    Gone {
        /// Kind of object.
        kind: Kind,
        /// Identifier.
        id: String,
        /// Deletion time, RFC 3339 in UTC.
        at: String,
        /// True if the object can be restored.
        can_return: bool,
    },
}

impl StoreError {
    /// Returns true if the size limit or the disk is full.
    pub(crate) fn is_space_exhausted(&self) -> bool {
        match self {
            Self::Quota { .. } => true,
            // 13 is `SQLITE_FULL`.
            Self::Sqlite(error) => primary_code(error) == Some(13),
            _ => false,
        }
    }

    /// Creates the error for a row that cannot be parsed.
    pub(super) fn damaged(kind: &'static str, error: &serde_json::Error) -> Self {
        Self::Damaged { kind, detail: error.to_string() }
    }

    /// Creates the error for an update that affected an unexpected number of rows.
    pub(super) fn missed(kind: &'static str, id: &str) -> Self {
        Self::Unknown { kind, id: id.to_owned() }
    }
}
