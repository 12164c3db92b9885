//! Errors that reject a complete table.

use super::{MAX_BYTES, MAX_COLUMNS};

/// Error that rejects a complete table. The message contains the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationsError {
    /// The input is empty or only white space.
    #[error("the table is empty; its first line names the columns, for example gpu,n_gpus,model,tp,pp")]
    Empty,
    /// The input exceeds [`MAX_BYTES`](super::MAX_BYTES).
    #[error("the table has more than {MAX_BYTES} bytes; cut it into parts")]
    TooLarge,
    /// The header exceeds [`MAX_COLUMNS`](super::MAX_COLUMNS).
    #[error("the table has {columns} columns, more than {MAX_COLUMNS}")]
    TooManyColumns { columns: usize },
    /// The input is not UTF-8 text.
    #[error("the table is not UTF-8 text ({detail}); save it as CSV in UTF-8")]
    NotText {
        /// Position of the first invalid byte.
        detail: String,
    },
    /// The header contains no known column.
    #[error("the first line names no known column ({found}); known are {}", known())]
    NoHeader {
        /// Text found instead of a header.
        found: String,
    },
    /// A known column appears twice in the header.
    #[error("{} and {} are both the column {column}; remove one of them", names[0], names[1])]
    RepeatedColumn {
        column: &'static str,
        /// Both names in the header.
        names: [String; 2],
    },
    /// A name in the header stands for one of several columns.
    #[error("the column {name} is ambiguous; did you mean {}?", choices.join(" or "))]
    AmbiguousColumn {
        /// Name in the header.
        name: String,
        choices: &'static [&'static str],
    },
}

fn known() -> String {
    super::COLUMNS.map(|column| column.name).join(", ")
}
