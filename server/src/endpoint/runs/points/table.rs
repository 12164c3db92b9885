//! Points as rows of a file.

use std::io;

use api::run::{RunPoint, RunSummary};
use csv::{QuoteStyle, WriterBuilder};
use jiff::Timestamp;

/// Fixed columns, placed before the timer columns.
const COLUMNS: [&str; 18] = [
    "row",
    "segment",
    "step",
    "time",
    "step_s",
    "tokens_per_s",
    "tokens_per_s_per_device",
    "samples_per_s",
    "tflops_per_device",
    "loss",
    "grad_norm",
    "learning_rate",
    "global_batch",
    "total_steps",
    "memory_gib",
    "reserved_gib",
    "not_finite",
    "phases_beyond_columns",
];

/// Writes points into a file, page by page.
pub(super) enum Table {
    /// CSV, with a column per timer.
    Csv {
        /// Timer names.
        phases: Vec<String>,
        /// True after the header row is written.
        headed: bool,
    },
    /// A JSON document with the run and all points.
    Json {
        /// Text to write before the next point.
        before: String,
    },
}

impl Table {
    /// Creates a CSV writer with a column per timer.
    pub(super) fn csv(phases: Vec<String>) -> Self {
        Self::Csv { phases, headed: false }
    }

    /// Creates a JSON writer for a run.
    pub(super) fn json(run: &RunSummary) -> Self {
        let run = serde_json::to_string(run).expect("a run has only text keys");
        Self::Json { before: format!("{{\"run\":{run},\"points\":[\n") }
    }

    /// Formats a page of points.
    pub(super) fn rows(&mut self, points: &[RunPoint]) -> io::Result<Vec<u8>> {
        match self {
            Self::Csv { phases, headed } => {
                let mut rows = WriterBuilder::new().quote_style(QuoteStyle::Necessary).from_writer(Vec::new());
                if !std::mem::replace(headed, true) {
                    head(&mut rows, phases)?;
                }
                for point in points {
                    rows.write_record(cells(point, phases))?;
                }
                rows.into_inner().map_err(|error| io::Error::other(error.to_string()))
            }
            Self::Json { before } => {
                let mut text = Vec::new();
                for point in points {
                    text.extend_from_slice(std::mem::replace(before, ",\n".to_owned()).as_bytes());
                    serde_json::to_writer(&mut text, point)?;
                }
                Ok(text)
            }
        }
    }

    /// Formats the text after the last page.
    pub(super) fn end(&mut self) -> Vec<u8> {
        match self {
            Self::Csv { headed: true, .. } => Vec::new(),
            // A file without points still has a header row.
            Self::Csv { phases, .. } => {
                let mut rows = csv::Writer::from_writer(Vec::new());
                head(&mut rows, phases).and_then(|()| rows.into_inner().map_err(io::Error::other)).unwrap_or_default()
            }
            Self::Json { before } => {
                let front = if before.starts_with('{') { std::mem::take(before) } else { String::new() };
                format!("{front}\n]}}\n").into_bytes()
            }
        }
    }
}

fn head(rows: &mut csv::Writer<Vec<u8>>, phases: &[String]) -> io::Result<()> {
    let phases = phases.iter().map(|phase| safe(format!("{phase} (s)")));
    rows.write_record(COLUMNS.iter().map(|&column| column.to_owned()).chain(phases))?;
    Ok(())
}

fn cells(point: &RunPoint, phases: &[String]) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let time = |name: &str| point.phases.iter().find(|phase| phase.name == name).map(|phase| phase.time_s);
    let beyond = point.phases.iter().filter(|phase| !phases.contains(&phase.name)).count();
    let at = point.time_ms.and_then(|time| Timestamp::from_millisecond(time).ok());
    let mut cells = vec![
        point.row.to_string(),
        point.segment.to_string(),
        point.step.to_string(),
        at.map(|at| at.to_string()).unwrap_or_default(),
        number(point.step_s),
        number(point.tokens_per_s),
        number(point.tokens_per_s_per_device),
        number(point.samples_per_s),
        number(point.tflops_per_device),
        number(point.loss),
        number(point.grad_norm),
        number(point.learning_rate),
        count(point.global_batch),
        count(point.total_steps),
        number(point.memory_gib),
        number(point.reserved_gib),
        safe(point.not_finite.join("; ")),
        if beyond > 0 { beyond.to_string() } else { String::new() },
    ];
    cells.extend(phases.iter().map(|phase| number(time(phase))));
    cells
}

/// Escapes a cell so spreadsheets do not interpret it as a formula.
fn safe(text: String) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        for (text, cell) in [
            ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
            ("+1x", "'+1x"),
            ("@x", "'@x"),
            ("-", "'-"),
            ("-1.5", "-1.5"),
            ("loss", "loss"),
        ] {
            assert_eq!(safe(text.to_owned()), cell);
        }
    }
}
