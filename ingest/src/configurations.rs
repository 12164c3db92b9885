//! Reads tables of training configurations. Each row is one configuration and is estimated
//! independently.
//!
//! The input is CSV. The delimiter (comma, semicolon or tab) is detected from the header. Columns
//! may appear in any order, and unknown columns are copied but ignored. Column names are
//! case-insensitive, surrounding blanks and a byte order mark are ignored. An empty cell or a
//! missing column means the default.
//!
//! | column | values | default |
//! |---|---|---|
//! | `gpu` | a cluster preset, or a usual name such as H100-SXM | a100-80gb |
//! | `n_gpus` | 1 to 1048576 | tp x pp x cp x dp |
//! | `gpus_per_node` | 1 to 256 | value in the preset, 8; n_gpus if smaller |
//! | `model` | a model preset; a label if layers and hidden are given | none |
//! | `preset` | a model preset; has priority over model | none |
//! | `layers` | 1 to 1024 | 32 |
//! | `hidden` | 16 to 131072 | 4096 |
//! | `heads` | 1 to 1024 | hidden / 128, at least 1 |
//! | `kv_heads` | 1 to 1024 | heads |
//! | `ffn` | 16 to 1048576 | 4 x hidden; gated: 8/3 x hidden, rounded up to a multiple of 256 |
//! | `vocab` | 0 to 4194304 | 51200 |
//! | `gated` | true or false | false |
//! | `seq_len` | 1 to 16777216 | 2048 |
//! | `causal` | true or false | true |
//! | `n_experts` | 0 to 1024 | 0; 0 and 1 are a dense model |
//! | `top_k` | 0 to 1024 | 2; ignored for a dense model |
//! | `tp` | 1 to 1048576 | 1 |
//! | `pp` | 1 to 1048576 | 1 |
//! | `dp` | 1 to 1048576 | n_gpus / (tp x pp x cp) |
//! | `cp` | 1 to 1048576 | 1 |
//! | `ep` | 1 to 1048576 | 1 |
//! | `vpp` | 1 to 1024 | 1 |
//! | `microbatch` | 1 to 65536 | 1 |
//! | `global_batch` | 1 to 1048576 | dp x microbatch x 4 x pp |
//! | `recompute` | none, selective, full | none |
//! | `sequence_parallel` | true or false | true if tp > 1 |
//! | `zero` | 0 to 3 | 1 if dp x cp > 1, else 0 |
//! | `precision` | bf16, fp16, fp8, fp32 | bf16 |
//! | `fsdp` | true or false | false |
//!
//! Boolean cells also accept yes and no, or 1 and 0.
//!
//! # Fixed assumptions
//!
//! - A preset in `preset` or `model` replaces the defaults for all model columns that are not
//!   given.
//! - A gated model without a preset has RMS norms, rotary positions, no bias and untied embeddings.
//!   A model that is not gated has layer norms, biases in all layers, learned positions for
//!   `seq_len` tokens and tied embeddings.
//! - Attention is a fused kernel. With `recompute` selective, the attention scores are stored,
//!   because selective recomputation saves exactly this memory. With `recompute` full, the scores
//!   are stored if the model is not gated and the device has no fp8, as before fused attention. In
//!   these two cases models that are not gated use dropout. All other models use none.
//! - Sends between pipeline stages overlap with computation if `vpp` is above 1 and the device
//!   supports fp8. Otherwise ranks wait for them.
//! - fp16 is estimated as bf16.
//! - Gradient and weight communication overlaps with computation if `zero` is at least 1, and is
//!   exposed otherwise.
//! - `fsdp` true means `zero` 3 and overrides `zero`.
//! - If there are fewer devices than a node contains, the cluster is a single node with this device
//!   count.
//!
//! # Output
//!
//! [`write`] copies all input cells unchanged and appends the columns [`ANSWERS`]. An inconsistent
//! row has `feasible` false, no numbers, and a `reason` that starts with the column name. A row
//! that exceeds device memory also has its numbers. A line with too few or too many cells still
//! produces a row at the same position.

mod answer;
mod architecture;
mod cells;
mod column;
mod configure;
mod degrees;
mod error;
mod presets;
mod records;

pub use answer::{ANSWERS, Obstacle, Summary, write};
pub use cells::Rejection;
pub use column::{COLUMNS, Column, Holds, describe_columns};
pub use error::ConfigurationsError;

use csv::StringRecord;
use planner::estimate::Configuration;

use cells::Cells;
use presets::Presets;
use records::{Record, Records};

/// Maximum input size in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Maximum number of columns.
pub const MAX_COLUMNS: usize = 1000;

/// A table of configurations. Rows are parsed lazily.
#[derive(Debug, Clone)]
pub struct Table<'t> {
    header: Vec<String>,
    /// Known column at each header position.
    columns: Vec<Option<&'static str>>,
    records: Records<'t>,
    presets: Presets,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Cells of the row, padded or cut to the header width.
    pub cells: StringRecord,
    /// Parsed configuration, or the reason for rejection.
    pub configuration: Result<Configuration, Rejection>,
}

/// Reads the header of a table of configurations.
pub fn read(bytes: &[u8]) -> Result<Table<'_>, ConfigurationsError> {
    if bytes.len() > MAX_BYTES {
        return Err(ConfigurationsError::TooLarge);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ConfigurationsError::NotText { detail: format!("byte {} is not", error.valid_up_to()) })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(ConfigurationsError::Empty);
    }
    let mut records = Records::new(text.trim_start());
    let header: Vec<String> =
        records.next_record(None).iter().flat_map(|record| &record.cells).map(str::to_owned).collect();
    if header.len() > MAX_COLUMNS {
        return Err(ConfigurationsError::TooManyColumns { columns: header.len() });
    }
    let columns: Vec<_> = header.iter().map(|name| known(name)).collect();
    if columns.iter().all(Option::is_none) {
        return Err(ConfigurationsError::NoHeader { found: cells::quoted(&header.join(",")) });
    }
    for (index, column) in columns.iter().enumerate() {
        if let Some(column) = column.filter(|_| columns[..index].contains(column)) {
            return Err(ConfigurationsError::RepeatedColumn { column });
        }
    }
    Ok(Table { header, columns, records, presets: Presets::new() })
}

fn known(name: &str) -> Option<&'static str> {
    let name = name.trim();
    COLUMNS.iter().map(|column| column.name).find(|column| column.eq_ignore_ascii_case(name))
}

impl Table<'_> {
    /// Returns the column names as written in the file.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Returns the names of unknown columns.
    pub fn ignored(&self) -> impl Iterator<Item = &str> {
        self.header.iter().zip(&self.columns).filter(|(_, known)| known.is_none()).map(|(name, _)| name.trim())
    }

    /// Iterates over the rows in file order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let mut records = self.records.clone();
        std::iter::from_fn(move || records.next_record(Some(self.header.len())).map(|record| self.row(record)))
    }

    const fn delimiter(&self) -> u8 {
        self.records.delimiter()
    }

    fn row(&self, Record { mut cells, torn }: Record) -> Row {
        let (found, width) = (cells.len(), self.header.len());
        // Spreadsheets append commas for empty columns.
        let surplus = cells.iter().skip(width).any(|cell| !cell.is_empty());
        cells.truncate(width);
        (found..width).for_each(|_| cells.push_field(""));
        let malformed = |says: String| Err(Rejection { column: "cells", says });
        let configuration = if torn {
            malformed("a quote is not closed".to_owned())
        } else if surplus || found < width {
            malformed(format!("{found} where the header has {width}"))
        } else {
            configure::configuration(Cells { columns: &self.columns, record: &cells }, &self.presets)
        };
        Row { cells, configuration }
    }
}

#[cfg(test)]
mod tests;
