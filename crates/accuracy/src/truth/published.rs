//! Published tables with a complete configuration per row.
//!
//! A [`Published`] declaration maps the columns of a file to those of `planscope estimate`. Its reader
//! builds the configuration, so that this program and `planscope estimate` predict the same time.

mod assumptions;
mod memory;
mod steps;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use ingest::configurations::{self, COLUMNS, Rejection};
use planner::estimate::{Configuration, Estimate, estimate};

use super::table::{Line, Table};
use super::{Error, OUT_OF_MEMORY};
use crate::set::{Facet, Goal, Listing, Row, Set};
use crate::step::Step;

/// A published table.
struct Published {
    /// Identifier of the set.
    id: &'static str,
    /// File name without extension.
    file: &'static str,
    title: &'static str,
    source: &'static str,
    goal: Goal,
    peer: &'static str,
    assumptions: &'static [&'static str],
    quantity: Quantity,
    /// Columns with other names: (column of `planscope estimate`, column of the file).
    renamed: &'static [(&'static str, &'static str)],
    /// Words with other names in any known column: (word of the file, word of `planscope estimate`).
    words: &'static [(&'static str, &'static str)],
    /// Cells that the file does not contain: (column of `planscope estimate`, value).
    constant: &'static [(&'static str, &'static str)],
    /// Facts of the publication that `planscope estimate` has no column for.
    assume: fn(Line<'_>, &mut Configuration) -> Result<(), Error>,
    /// Reason why a row is not predicted.
    excluded: fn(Line<'_>) -> Option<&'static str>,
    /// Columns that group the errors: (name, column of the file).
    facets: &'static [(&'static str, &'static str)],
    listing: Listing,
}

/// Measured quantity with the column of its value.
#[derive(Debug, Clone, Copy)]
enum Quantity {
    /// Seconds per iteration.
    StepTime(&'static str),
    /// GiB per device.
    PeakMemory(&'static str),
    /// GiB per device that the caching allocator of PyTorch holds.
    ReservedMemory(&'static str),
}

/// Median of peak reserved to peak allocated memory of the 341 steps of `crates/accuracy/measurements/*/memory.csv`.
const RESERVED_SHARE: f64 = 1.15;

/// Predicts the step times of all tables.
pub(super) fn step_times(folder: &Path) -> Result<Vec<Set>, Error> {
    steps::TABLES.iter().map(|table| table.measure(folder)).collect()
}

/// Predicts the peak memory of all tables.
pub(super) fn peak_memory(folder: &Path) -> Result<Vec<Set>, Error> {
    memory::TABLES.iter().map(|table| table.measure(folder)).collect()
}

impl Published {
    fn measure(&self, folder: &Path) -> Result<Set, Error> {
        let table = Table::read(folder, &format!("{}.csv", self.file))?;
        let mut lines: Vec<Line<'_>> = Vec::new();
        let mut excluded: BTreeMap<&'static str, usize> = BTreeMap::new();
        for line in table.lines().filter(|line| !line.lacks(self.column()) || self.ran_out_of_memory(*line)) {
            match (self.excluded)(line) {
                Some(reason) => *excluded.entry(reason).or_default() += 1,
                None => lines.push(line),
            }
        }
        let text = self.translated(&lines)?;
        let configurations = configurations::read(&text).map_err(|error| Error::row(self.file, &error))?;
        let rows = lines.iter().zip(configurations.rows()).map(|(line, row)| self.row(*line, row.configuration));
        Ok(Set {
            id: self.id,
            title: self.title,
            source: self.source,
            unit: match self.quantity {
                Quantity::StepTime(_) => "s",
                Quantity::PeakMemory(_) | Quantity::ReservedMemory(_) => "GiB",
            },
            goal: self.goal,
            peer: self.peer,
            assumptions: self.assumptions.to_vec(),
            rows: rows.collect::<Result<_, _>>()?,
            variants: vec![],
            findings: excluded.iter().map(|(reason, rows)| format!("Excluded: {rows} rows ({reason}).")).collect(),
            listing: self.listing,
        })
    }

    const fn column(&self) -> &'static str {
        match self.quantity {
            Quantity::StepTime(column) | Quantity::PeakMemory(column) | Quantity::ReservedMemory(column) => column,
        }
    }

    /// Returns the lines as a table for `planscope estimate`.
    fn translated(&self, lines: &[Line<'_>]) -> Result<Vec<u8>, Error> {
        let failed = |error: csv::Error| Error::row(self.file, &error);
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS.iter().map(|column| column.name)).map_err(failed)?;
        for line in lines {
            writer
                .write_record(COLUMNS.iter().map(|column| self.cell(*line, column.name).into_owned()))
                .map_err(failed)?;
        }
        writer.into_inner().map_err(|error| Error::row(self.file, &error.error()))
    }

    fn cell<'a>(&self, line: Line<'a>, column: &'static str) -> Cow<'a, str> {
        let find = |pairs: &[(&'static str, &'static str)], key: &str| {
            pairs.iter().find(|(from, _)| *from == key).map(|(_, to)| *to)
        };
        if let Some(value) = find(self.constant, column) {
            return value.into();
        }
        let text = line.text(find(self.renamed, column).unwrap_or(column));
        find(self.words, text).map_or(text.into(), Into::into)
    }

    fn row(&self, line: Line<'_>, configuration: Result<Configuration, Rejection>) -> Result<Row, Error> {
        let label = line.text("id");
        let exhausted = self.ran_out_of_memory(line);
        let refused = |Rejection { column, says }| Error::row(label, &format!("{column}: {says}"));
        let mut configuration = configuration.map_err(refused)?;
        (self.assume)(line, &mut configuration)?;
        let estimate = estimate(&configuration).map_err(|rule| Error::row(label, &rule))?;
        Ok(Row {
            label: label.to_owned(),
            measured: if exhausted { configuration.cluster.device.memory_gib } else { line.number(self.column())? },
            predicted: self.predicted(&estimate),
            note: String::new(),
            facets: self.facets.iter().map(|(name, column)| Facet::new(name, line.text(column))).collect(),
            setup: setup(&configuration),
            left_out: exhausted.then_some(OUT_OF_MEMORY),
            step: Some(Step::new(&configuration, &estimate)),
        })
    }

    /// True for a run that ended because it exceeded the device memory.
    fn ran_out_of_memory(&self, line: Line<'_>) -> bool {
        !matches!(self.quantity, Quantity::StepTime(_)) && line.text("oom") == "True"
    }

    fn predicted(&self, estimate: &Estimate) -> f64 {
        match self.quantity {
            Quantity::StepTime(_) => estimate.iteration.secs(),
            Quantity::PeakMemory(_) => estimate.peak_memory.total() / 1_073_741_824.0,
            Quantity::ReservedMemory(_) => RESERVED_SHARE * estimate.peak_memory.total() / 1_073_741_824.0,
        }
    }
}

/// Returns the configuration as properties, for the dashboard.
fn setup(configuration: &Configuration) -> Vec<Facet> {
    let Configuration { model, cluster, training, layout, sequence_length, global_batch, .. } = configuration;
    let recompute = match (training.recompute, training.recompute_layers) {
        (recompute, Some(layers)) => format!("{}, {layers} layers", recompute.id()),
        (recompute, None) => recompute.id().to_owned(),
    };
    let name = if model.name.is_empty() {
        let hidden = model.modules.first().map_or(0, |module| module.hidden);
        format!("{} x {hidden}", model.layers())
    } else {
        model.name.clone()
    };
    vec![
        Facet::new("device", &cluster.name),
        Facet::new("devices", cluster.devices()),
        Facet::new("framework", training.framework.title()),
        Facet::new("model", name),
        Facet::new("TP", layout.tensor),
        Facet::new("PP", layout.pipeline),
        Facet::new("CP", training.context_parallel),
        Facet::new("DP", layout.data),
        Facet::new("microbatch", layout.microbatch),
        Facet::new("global batch", global_batch),
        Facet::new("sequence length", sequence_length),
        Facet::new("precision", training.precision.id()),
        Facet::new("recomputation", recompute),
        Facet::new("ZeRO", training.zero_stage()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_reserved_memory_is_the_median_of_the_measurements() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("measurements");
        let mut ratios = Vec::new();
        for device in ["h100-80gb", "h200"] {
            let table = Table::read(&folder.join(device), "memory.csv").unwrap();
            ratios.extend(table.lines().map(|line| {
                let mib = |column| line.number::<f64>(column).unwrap();
                mib("peak_reserved_mib") / mib("peak_allocated_mib")
            }));
        }
        ratios.sort_by(f64::total_cmp);
        assert_eq!(ratios.len(), 341);
        assert!((ratios[170] - RESERVED_SHARE).abs() < 0.01, "{}", ratios[170]);
    }
}
