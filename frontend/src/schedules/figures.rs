//! Rows of the schedule table, built from a response.

use api::planner::schedule_comparison::{EntryOutcome, ScheduleEntry, ScheduleReport};

use crate::format;

/// Table column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// End time of the last action.
    Makespan,
    /// Speedup relative to the baseline.
    Speedup,
    /// Maximum over the ranks of the time from first to last action.
    Span,
    /// Idle share of the makespan.
    MakespanBubble,
    /// Idle share of the span.
    SpanBubble,
    /// Bubble ratio as defined in formulas.
    Bubble,
    /// Maximum activation memory over the ranks.
    Peak,
    /// Lower bound on the makespan.
    Bound,
    /// Gap to the lower bound.
    Gap,
}

/// Sort order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) column: Column,
    pub(crate) descending: bool,
}

impl Column {
    /// All columns from left to right.
    pub(crate) const ALL: [Self; 9] = [
        Self::Makespan,
        Self::Peak,
        Self::Gap,
        Self::Speedup,
        Self::Span,
        Self::MakespanBubble,
        Self::SpanBubble,
        Self::Bubble,
        Self::Bound,
    ];

    /// Identifier in links and tests.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Makespan => "makespan",
            Self::Speedup => "speedup",
            Self::Span => "span",
            Self::MakespanBubble => "bubble_of_makespan",
            Self::SpanBubble => "bubble_of_span",
            Self::Bubble => "bubble",
            Self::Peak => "peak",
            Self::Bound => "bound",
            Self::Gap => "gap",
        }
    }

    /// Parses an identifier.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.id() == id)
    }

    /// Heading and explanation.
    pub(crate) const fn heading_and_hint(self) -> (&'static str, &'static str) {
        match self {
            Self::Makespan => ("Makespan (units)", "End of the last action of all ranks, in time units"),
            Self::Speedup => ("Speed-up", "Makespan of the chosen baseline over this one"),
            Self::Span => ("Span (units)", "Longest time from the first to the last action of a rank, in time units"),
            Self::MakespanBubble => (
                "Idle, % of makespan",
                "Idle time of all ranks as a share of the makespan, the wait before the first and after the last action of a rank included",
            ),
            Self::SpanBubble => (
                "Idle, % of span",
                "Idle time between the first and the last action of a rank as a share of the span; 0 % for a zero-bubble schedule",
            ),
            Self::Bubble => (
                "Bubble (units)",
                "The span less the work of the rank that has the least, in time units; below it the formula of the literature",
            ),
            Self::Peak => (
                "Peak memory (activations)",
                "Most activations that a rank stores at the same time; below it the formula of the literature",
            ),
            Self::Bound => {
                ("Lower bound (units)", "No schedule of these actions on these ranks has a shorter makespan")
            }
            Self::Gap => ("Gap (%)", "Makespan divided by the lower bound, minus one"),
        }
    }

    /// True if larger values are better, false if smaller values are better, `None` if neither.
    const fn more_is_better(self) -> Option<bool> {
        match self {
            Self::Speedup => Some(true),
            Self::Bound => None,
            _ => Some(false),
        }
    }
}

/// Table cell: number, text, published value, best mark.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) column: Column,
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
    /// Published value, and the agreement with it.
    pub(crate) expected: Option<Expected>,
    /// True if no other schedule has a better value.
    pub(crate) best: bool,
}

/// Published value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    /// Formula value. `None` if the formula does not apply.
    pub(crate) value: Option<f64>,
    /// Formula value as text.
    pub(crate) text: Option<String>,
    /// Formula and conditions.
    pub(crate) formula: String,
    /// True if the formula is an upper bound.
    pub(crate) is_bound: bool,
}

impl Expected {
    /// True if a simulated value contradicts the formula. A value below an upper bound does not.
    pub(crate) fn differs(&self, simulated: Option<f64>, text: &str) -> bool {
        let is_other = self.text.as_ref().is_some_and(|expected| expected != text);
        let is_below = simulated.zip(self.value).is_some_and(|(simulated, bound)| simulated <= bound);
        is_other && !(self.is_bound && is_below)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) key: String,
    pub(crate) name: String,
    /// Publication.
    pub(crate) source: Option<String>,
    /// Figures, or the error message.
    pub(crate) cells: Result<Vec<Cell>, String>,
    /// Sentence about an exceeded memory limit, if any.
    pub(crate) breaks_cap: Option<String>,
}

/// Returns the schedule key used in links and on the page.
pub(crate) fn entry_key(entry: &ScheduleEntry) -> String {
    entry.kind.map_or_else(|| table_key(&entry.name), |kind| kind.id().to_owned())
}

/// Returns the key of a custom table.
pub(crate) fn table_key(name: &str) -> String {
    format!("table:{name}")
}

/// Returns the report if the schedule runs.
pub(crate) fn entry_report(entry: &ScheduleEntry) -> Option<&ScheduleReport> {
    match &entry.outcome {
        EntryOutcome::Run(report) => Some(report),
        EntryOutcome::Refused(_) => None,
    }
}

/// Returns the baseline: the chosen schedule if it runs, otherwise 1F1B, otherwise the first that
/// runs.
pub(crate) fn baseline_key(entries: &[ScheduleEntry], selected: Option<&str>) -> Option<String> {
    let runs: Vec<String> = entries.iter().filter(|entry| entry_report(entry).is_some()).map(entry_key).collect();
    let has = |key: &str| runs.iter().any(|run| run == key);
    selected
        .filter(|key| has(key))
        .or_else(|| Some("1f1b").filter(|key| has(key)))
        .map(str::to_owned)
        .or_else(|| runs.first().cloned())
}

/// Returns the sorted rows. Schedules that do not run come last.
pub(crate) fn rows(entries: &[ScheduleEntry], baseline: Option<&str>, order: Option<Order>) -> Vec<Row> {
    let reference = entries.iter().find(|entry| Some(entry_key(entry).as_str()) == baseline).and_then(entry_report);
    let mut rows: Vec<Row> = entries.iter().map(|entry| row(entry, reference)).collect();
    for (index, column) in Column::ALL.into_iter().enumerate() {
        mark_best(&mut rows, index, column);
    }
    let value = |row: &Row, column: Column| {
        let cells = row.cells.as_ref().ok()?;
        cells.iter().find(|cell| cell.column == column)?.value
    };
    if let Some(Order { column, descending }) = order {
        rows.sort_by(|first, other| match (value(first, column), value(other, column)) {
            (Some(first_value), Some(other)) if descending => other.total_cmp(&first_value),
            (Some(ascending_first), Some(other)) => ascending_first.total_cmp(&other),
            (first_option, other) => first_option.is_none().cmp(&other.is_none()),
        });
    } else {
        rows.sort_by_key(|row| row.cells.is_err());
    }
    rows
}

/// Marks the best cells in a column. If all values are equal, no cell is marked.
fn mark_best(rows: &mut [Row], index: usize, column: Column) {
    let Some(more) = column.more_is_better() else { return };
    let values: Vec<f64> = rows.iter().filter_map(|row| row.cells.as_ref().ok()?.get(index)?.value).collect();
    let lower = values.iter().copied().fold(f64::INFINITY, f64::min);
    let upper = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if upper - lower <= 1e-9 {
        return;
    }
    let best = if more { upper } else { lower };
    for cell in rows.iter_mut().filter_map(|row| row.cells.as_mut().ok()?.get_mut(index)) {
        cell.best = cell.value.is_some_and(|value| (value - best).abs() <= 1e-9);
    }
}

fn row(entry: &ScheduleEntry, reference: Option<&ScheduleReport>) -> Row {
    let (metrics, breaks_cap) = match &entry.outcome {
        EntryOutcome::Run(report) => (Ok(cells(report, reference)), broken(report)),
        EntryOutcome::Refused(refusal) => (Err(refusal.detail.clone()), None),
    };
    Row { key: entry_key(entry), name: entry.name.clone(), source: entry.source.clone(), cells: metrics, breaks_cap }
}

fn broken(report: &ScheduleReport) -> Option<String> {
    let cap = report.cap?;
    let broken = cap.broken?;
    Some(format!("rank {} needs {} activations; the limit is {}", broken.rank, units(broken.needed), units(cap.limit)))
}

fn cells(report: &ScheduleReport, reference: Option<&ScheduleReport>) -> Vec<Cell> {
    let form = report.closed_form.as_ref();
    let expected = |formula: &str, value: Option<f64>| {
        let conditions = form.map_or("", |form| form.conditions.as_str());
        let is_bound = formula.contains("at most");
        Some(Expected { value, text: value.map(units), formula: format!("{formula} ({conditions})"), is_bound })
    };
    let cell = |column: Column| {
        let show: fn(f64) -> String = match column {
            Column::Speedup => format::speedup,
            Column::MakespanBubble | Column::SpanBubble | Column::Gap => format::percent,
            _ => units,
        };
        let value = match column {
            Column::Makespan => Some(report.makespan),
            Column::Speedup => {
                reference.filter(|_| report.makespan > 0.0).map(|reference| reference.makespan / report.makespan)
            }
            Column::Span => Some(report.span),
            Column::MakespanBubble => Some(report.bubble_of_makespan),
            Column::SpanBubble => Some(report.bubble_of_span),
            Column::Bubble => Some(report.bubble),
            Column::Peak => report.peak_activations.iter().copied().reduce(f64::max),
            Column::Bound => Some(report.lower_bound),
            Column::Gap => Some(report.gap),
        };
        let expected = form.and_then(|form| match column {
            Column::Bubble => expected(&form.bubble, form.expected_bubble),
            Column::Peak => expected(&form.memory, form.expected_peak),
            _ => None,
        });
        Cell { column, value, text: value.map_or_else(|| "–".to_owned(), show), expected, best: false }
    };
    Column::ALL.map(cell).to_vec()
}

/// Formats time units and activations. Integers have no decimals, other values up to three
/// decimals.
pub(crate) fn units(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.split_once('.') {
        None => text.parse::<u64>().map_or_else(|_| text.to_owned(), format::count),
        Some(_) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use api::planner::schedule_comparison::{Limits, ScheduleResponse, ValidRequest};
    use planner::schedule_comparison::respond;

    use super::super::input;
    use super::*;

    fn response_for(change: impl FnOnce(&mut serde_json::Value)) -> ScheduleResponse {
        let mut json = input::first();
        change(&mut json);
        let request = serde_json::from_value(json).expect("a question");
        respond(&ValidRequest::new(request, Limits::SERVED).expect("a valid question"))
    }

    fn cell(rows: &[Row], key: &str, column: Column) -> Cell {
        let row = rows.iter().find(|row| row.key == key).expect("the row");
        row.cells.as_ref().expect("figures").iter().find(|cell| cell.column == column).expect("the cell").clone()
    }

    #[test]
    fn default_request_produces_expected_metrics() {
        let response = response_for(|_| {});
        let baseline = baseline_key(&response.entries, None);
        assert_eq!(baseline.as_deref(), Some("1f1b"));
        let rows = rows(&response.entries, baseline.as_deref(), None);
        // Makespan (m + p - 1)(F + B) = 11 x 3, bubble (p - 1)(F + B) = 9, p activations.
        let makespan = cell(&rows, "1f1b", Column::Makespan);
        assert_eq!((makespan.text.as_str(), makespan.best), ("33", false));
        assert_eq!(cell(&rows, "1f1b", Column::Speedup).text, "1.00×");
        let bubble = cell(&rows, "1f1b", Column::Bubble);
        assert_eq!(
            (bubble.text.as_str(), bubble.expected.and_then(|expected| expected.text).as_deref()),
            ("9", Some("9"))
        );
        assert_eq!(cell(&rows, "1f1b", Column::Peak).text, "4");
        let bound = Expected { value: Some(4.5), text: Some("4.5".into()), formula: String::new(), is_bound: true };
        assert!(!bound.differs(Some(2.5), "2.5") && bound.differs(Some(5.0), "5"));
        assert!(Expected { is_bound: false, ..bound }.differs(Some(2.5), "2.5"));
        assert_eq!(rows.iter().filter(|row| cell(&rows, &row.key, Column::Makespan).best).count(), 1);
        assert!(rows.iter().all(|row| !cell(&rows, &row.key, Column::Bound).best));
    }

    #[test]
    fn rows_are_sorted_with_rejected_schedules_last() {
        let response = response_for(|request| {
            request["kinds"] = serde_json::json!(["dual_pipe_v", "gpipe", "1f1b", "zb_h1"]);
            request["microbatches"] = 7.into();
        });
        let keys = |order| rows(&response.entries, None, order).into_iter().map(|row| row.key).collect::<Vec<_>>();
        assert_eq!(keys(None), ["gpipe", "1f1b", "zb_h1", "dual_pipe_v"]);
        let order = |descending| Some(Order { column: Column::Peak, descending });
        assert_eq!(keys(order(true)), ["gpipe", "1f1b", "zb_h1", "dual_pipe_v"]);
        assert_eq!(keys(order(false)), ["1f1b", "zb_h1", "gpipe", "dual_pipe_v"]);
    }

    #[test]
    fn every_heading_has_a_unit() {
        for column in Column::ALL.into_iter().filter(|column| *column != Column::Speedup) {
            let (heading, _) = column.heading_and_hint();
            assert!(["(units)", "%", "(activations)"].iter().any(|unit| heading.contains(unit)), "{heading}");
        }
    }

    #[test]
    fn units_are_as_short_as_they_can_be() {
        for (value, text) in [(33.0, "33"), (57.5, "57.5"), (0.333_333, "0.333"), (12_000.0, "12,000"), (0.0, "0")] {
            assert_eq!(units(value), text);
        }
        assert_eq!(units(f64::NAN), "–");
    }
}
