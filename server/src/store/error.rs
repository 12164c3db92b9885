//! What can go wrong with the database.

use super::{FileFault, Kind, primary_code};

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite refused.
    #[error("the database refused: {0}")]
    Sqlite(#[from] sqlx::Error),
    /// The file is not to be opened, or is not in its place any more.
    #[error(transparent)]
    File(#[from] FileFault),
    /// The tables could not be brought up to date.
    #[error("the database could not be brought up to date: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// It holds as much as it may.
    #[error(
        "the database holds {} MiB of the {} MiB that it may have, so that nothing new is taken: delete runs, traces, profiles, datasets, \
         sweeps or scenarios that nobody needs, or start the server with a larger --quota", used >> 20, quota >> 20
    )]
    Quota {
        /// Bytes that it holds.
        used: u64,
        /// Bytes that it may hold.
        quota: u64,
    },
    /// There are as many drafts as there may be, and none of them may be evicted for this client.
    #[error(
        "the server holds {total} drafts, all in use or of other clients, so that no further one is taken: save scenarios that you need and          delete those that you do not, or try again when older drafts have expired"
    )]
    Drafts {
        /// Drafts that it may hold.
        total: u64,
    },
    /// What was read is not what was written.
    #[error("the database holds a damaged {what}: {detail}")]
    Damaged {
        /// Kind of row.
        what: &'static str,
        /// What the parser said.
        detail: String,
    },
    /// There is no such thing.
    #[error("there is no {what} {id}")]
    Unknown {
        /// Kind of row.
        what: &'static str,
        /// Its identifier.
        id: String,
    },
    /// It was deleted.
    #[error("the {kind} {id} was deleted at {at}")]
    Gone {
        /// What it was.
        kind: Kind,
        /// Its identifier.
        id: String,
        /// When, RFC 3339 in UTC.
        at: String,
        /// Whether it can come back.
        can_return: bool,
    },
}

impl StoreError {
    /// Whether nothing was stored because there was no room for it, within the quota or on the disk.
    pub(crate) fn is_want_of_room(&self) -> bool {
        match self {
            Self::Quota { .. } => true,
            // 13 is a full disk.
            Self::Sqlite(error) => primary_code(error) == Some(13),
            _ => false,
        }
    }

    /// A row that does not parse.
    pub(super) fn damaged(what: &'static str, error: &serde_json::Error) -> Self {
        Self::Damaged { what, detail: error.to_string() }
    }

    /// A change that met another number of rows than the one it was made for.
    pub(super) fn missed(what: &'static str, id: &str) -> Self {
        Self::Unknown { what, id: id.to_owned() }
    }
}
