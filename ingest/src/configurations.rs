//! Tables of training configurations: one configuration a row, to be estimated one by one.
//!
//! A CSV (commas, semicolons or tabs, as the header has them) with any of the columns below, in any order. Case and
//! surrounding blanks of names do not matter, nor does a byte order mark. Columns of other names are kept and
//! otherwise ignored. A cell may be empty, a column may be missing: the default stands for it.
//!
//! | column | holds | default |
//! |---|---|---|
//! | `gpu` | a cluster preset, or a usual name such as H100-SXM | a100-80gb |
//! | `n_gpus` | 1 to 1048576 | tp x pp x cp x dp |
//! | `gpus_per_node` | 1 to 256 | as the preset, 8; n_gpus where that is less |
//! | `model` | a model preset; a label where layers and hidden are given | none |
//! | `preset` | a model preset; goes before model | none |
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
//! | `top_k` | 0 to 1024 | 2; without meaning in a dense model |
//! | `tp` | 1 to 1048576 | 1 |
//! | `pp` | 1 to 1048576 | 1 |
//! | `dp` | 1 to 1048576 | n_gpus / (tp x pp x cp) |
//! | `cp` | 1 to 1048576 | 1 |
//! | `ep` | 1 to 1048576 | 1 |
//! | `vpp` | 1 to 1024 | 1 |
//! | `microbatch` | 1 to 65536 | 1 |
//! | `global_batch` | 1 to 1048576 | dp x microbatch x 4 x pp |
//! | `recompute` | none, selective, full | none |
//! | `sequence_parallel` | true or false | true where tp > 1 |
//! | `zero` | 0 to 3 | 1 where dp x cp > 1, else 0 |
//! | `precision` | bf16, fp16, fp8, fp32 | bf16 |
//! | `fsdp` | true or false | false |
//!
//! true and false may be written yes and no, or 1 and 0.
//!
//! # What the columns do not say
//!
//! - A preset of `preset` or `model` fills the columns of the model that are not given, in place of their defaults.
//! - A gated model of the row's own has RMS norms, rotary positions, no bias and an output head of its own; one that
//!   is not gated has layer norms, biases everywhere, learned positions for `seq_len` tokens and an output head that
//!   shares the embedding.
//! - Attention is a fused kernel. With `recompute` selective the scores are stored, because that is what selective
//!   recomputation saves; with `recompute` full too where the model is not gated and the device has no fp8, as before
//!   fused attention. Models that are not gated then have dropout, others have none.
//! - Sends between stages run beside computation with `vpp` above 1 on devices with fp8; otherwise ranks wait for them.
//! - fp16 is estimated as bf16.
//! - Communication of gradients and weights is hidden behind computation from `zero` 1 on, and not hidden without.
//! - `fsdp` true is `zero` 3, whatever `zero` holds.
//! - Fewer devices than a node has are one node of so many.
//!
//! # The answer
//!
//! [`write`] repeats every row, cells unchanged, with the columns [`ANSWERS`] behind them. A row that contradicts
//! itself has `feasible` false, no numbers and a `reason` that begins with the column; one that does not fit the
//! devices' memory has its numbers too. A line with too few or too many cells keeps its place.

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
pub use cells::Refused;
pub use column::{COLUMNS, Column, Holds, describe_columns};
pub use error::ConfigurationsError;

use csv::StringRecord;
use planner::estimate::Configuration;

use cells::Cells;
use presets::Presets;
use records::{Record, Records};

/// Largest table that is read.
pub const MAX_BYTES: usize = 64 << 20;
/// Most columns of a table.
pub const MAX_COLUMNS: usize = 1000;

/// A table of configurations, whose rows are read as they are asked for.
#[derive(Debug, Clone)]
pub struct Table<'t> {
    header: Vec<String>,
    /// The known column at each place of the header.
    columns: Vec<Option<&'static str>>,
    records: Records<'t>,
    presets: Presets,
}

/// One row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What stands in it, as many cells as the header has.
    pub cells: StringRecord,
    /// What it asks for, or why that cannot be.
    pub configuration: Result<Configuration, Refused>,
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

/// The known column of that name.
fn known(name: &str) -> Option<&'static str> {
    let name = name.trim();
    COLUMNS.iter().map(|column| column.name).find(|column| column.eq_ignore_ascii_case(name))
}

impl Table<'_> {
    /// Names of the columns as they stand in the file.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Columns that are kept and otherwise ignored.
    pub fn ignored(&self) -> impl Iterator<Item = &str> {
        self.header.iter().zip(&self.columns).filter(|(_, known)| known.is_none()).map(|(name, _)| name.trim())
    }

    /// The rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        let mut records = self.records.clone();
        std::iter::from_fn(move || records.next_record(Some(self.header.len())).map(|record| self.row(record)))
    }

    const fn delimiter(&self) -> u8 {
        self.records.delimiter()
    }

    fn row(&self, Record { mut cells, torn }: Record) -> Row {
        let (found, width) = (cells.len(), self.header.len());
        // Spreadsheets end lines with commas for columns that are not there.
        let surplus = cells.iter().skip(width).any(|cell| !cell.is_empty());
        cells.truncate(width);
        (found..width).for_each(|_| cells.push_field(""));
        let malformed = |says: String| Err(Refused { column: "cells", says });
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
