//! Published measurements, and the configuration that each row describes.

mod korthikanti22_memory;
mod korthikanti22_table5;
mod megatron_h100_weak_scaling;
mod megatron_sc21_table1;
mod megatron_sc21_table2_mtnlg;
mod paper_pipeweaver;
mod search;
mod setting;
mod table;
mod vtrain_single;

pub(crate) use setting::given;
pub use vtrain_single::FITTED_ROWS;
pub(crate) use vtrain_single::{Measured, fitted};

use std::path::{Path, PathBuf};

use crate::set::Set;

/// Reads one file of a folder and predicts its rows.
type Measurement = fn(&Path) -> Result<Vec<Set>, Error>;

/// Every published table, in the order of the report.
pub(crate) const SETS: [Measurement; 7] = [
    korthikanti22_table5::measure,
    korthikanti22_memory::measure,
    vtrain_single::measure,
    megatron_sc21_table1::measure,
    megatron_sc21_table2_mtnlg::measure,
    megatron_h100_weak_scaling::measure,
    paper_pipeweaver::measure,
];

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is missing or cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: csv::Error,
    },
    /// A cell does not hold what it should.
    #[error("{}, line {line}: column {column:?} holds {value:?}", path.display())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What stands there; empty where the column is missing.
        value: String,
    },
    /// The planner has no configuration for a row.
    #[error("{label}: {reason}")]
    Row {
        /// The row.
        label: String,
        /// Why.
        reason: String,
    },
}

impl Error {
    fn row(label: impl Into<String>, reason: &dyn std::fmt::Display) -> Self {
        Self::Row { label: label.into(), reason: reason.to_string() }
    }
}
