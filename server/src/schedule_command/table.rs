//! Prints the schedule metrics as an aligned table.

use planner::schedule_comparison::{EntryOutcome, ScheduleReport, ScheduleResponse};

const HEAD: [&str; 7] = ["schedule", "makespan", "span", "bubble", "of span", "peak", "gap"];

/// Formats a line per schedule, followed by notes and a legend for the columns.
pub(super) fn table(response: &ScheduleResponse) -> String {
    let mut rows: Vec<[String; 7]> = vec![HEAD.map(str::to_owned)];
    let mut notes = Vec::new();
    for entry in &response.entries {
        let EntryOutcome::Run(report) = &entry.outcome else { continue };
        rows.push(row(&entry.name, report));
        if let Some(broken) = report.cap.and_then(|cap| cap.broken.map(|broken| (cap.limit, broken))) {
            let (limit, broken) = broken;
            notes.push(format!(
                "{}: rank {} holds {} of {limit} activations",
                entry.name,
                broken.rank,
                figure(broken.needed)
            ));
        }
        notes.extend(report.notes.iter().map(|note| format!("{}: {note}", entry.name)));
    }
    if rows.len() == 1 {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let mut text = String::new();
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            // The name is left-aligned, numbers are right-aligned.
            let padded = if column == 0 { format!("{cell}{pad}") } else { format!("  {pad}{cell}") };
            text.push_str(&padded);
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for note in notes {
        text.push_str(&note);
        text.push('\n');
    }
    text.push_str(
        "bubble: idle share of ranks x makespan, and of ranks x span, the longest time from a rank's first to its last \
         action;\npeak: activations on the fullest rank; gap: makespan above a bound that no order can beat\n",
    );
    text
}

fn row(name: &str, report: &ScheduleReport) -> [String; 7] {
    let peak = report.peak_activations.iter().copied().fold(0.0, f64::max);
    let share = |share: f64| format!("{:.1} %", 100.0 * share);
    [
        name.to_owned(),
        figure(report.makespan),
        figure(report.span),
        share(report.bubble_of_makespan),
        share(report.bubble_of_span),
        figure(peak),
        share(report.gap),
    ]
}

/// Formats a number with up to six decimals.
fn figure(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
