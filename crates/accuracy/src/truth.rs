//! Published measurements, and the configuration for each row.

mod korthikanti22_memory;
mod korthikanti22_table5;
mod megatron_h100_weak_scaling;
mod megatron_sc21_table1;
mod megatron_sc21_table2_mtnlg;
mod paper_pipeweaver;
mod published;
mod search;
mod setting;
mod table;
mod vtrain_single;

pub(crate) use setting::given;
pub use vtrain_single::FITTED_ROWS;
pub(crate) use vtrain_single::{Measured, fitted};

use std::path::{Path, PathBuf};

use crate::set::Set;

/// Predicts the rows of a file in a folder.
type Measurement = fn(&Path) -> Result<Vec<Set>, Error>;

/// Reason for not counting a row whose run exceeded the device memory. The measured value is the
/// device memory, a lower bound.
pub(crate) const OUT_OF_MEMORY: &str = "out of memory: at least the device memory";

/// All published tables in report order.
pub(crate) const SETS: [Measurement; 9] = [
    korthikanti22_table5::measure,
    korthikanti22_memory::measure,
    vtrain_single::measure,
    megatron_sc21_table1::measure,
    megatron_sc21_table2_mtnlg::measure,
    megatron_h100_weak_scaling::measure,
    published::step_times,
    published::peak_memory,
    paper_pipeweaver::measure,
];

/// Error during a measurement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is missing or unreadable.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// System error.
        error: csv::Error,
    },
    /// A cell has an invalid value.
    #[error("{}, line {line}: column {column:?} holds {value:?}", path.display())]
    Cell {
        /// Path of the file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: u64,
        /// Column name.
        column: String,
        /// Cell content. Empty if the column is missing.
        value: String,
    },
    /// The planner has no configuration for a row.
    #[error("{label}: {reason}")]
    Row {
        /// Row label.
        label: String,
        /// Reason.
        reason: String,
    },
}

impl Error {
    fn row(label: impl Into<String>, reason: &dyn std::fmt::Display) -> Self {
        Self::Row { label: label.into(), reason: reason.to_string() }
    }
}
