//! Why a table of configurations is refused as a whole.

use super::{MAX_BYTES, MAX_COLUMNS};

/// Why a table of configurations is refused as a whole: what is wrong, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationsError {
    /// No bytes, or nothing but white space.
    #[error("the table is empty; its first line names the columns, for example gpu,n_gpus,model,tp,pp")]
    Empty,
    /// More bytes than are read.
    #[error("the table has more than {MAX_BYTES} bytes; cut it into parts")]
    TooLarge,
    /// More columns than are read.
    #[error("the table has {columns} columns, more than {MAX_COLUMNS}")]
    TooManyColumns {
        /// Columns of the header.
        columns: usize,
    },
    /// Not text, or not in UTF-8.
    #[error("the table is not UTF-8 text ({detail}); save it as CSV in UTF-8")]
    NotText {
        /// Where it stops being UTF-8.
        detail: String,
    },
    /// None of the columns is known.
    #[error("the first line names no known column ({found}); known are {}", known())]
    NoHeader {
        /// What stands there.
        found: String,
    },
    /// A known column stands in the header twice.
    #[error("two columns are named {column}; remove one of them")]
    RepeatedColumn {
        /// The column.
        column: &'static str,
    },
}

fn known() -> String {
    super::COLUMNS.map(|column| column.name).join(", ")
}
