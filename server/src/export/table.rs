//! The ranked table of an outcome as CSV.

use planner::outcome::{Outcome, PlanOutcome};

const HEADINGS: [&str; 17] = [
    "planner",
    "title",
    "status",
    "iteration_s",
    "tokens_per_s",
    "tflops_per_device",
    "mfu",
    "bubble",
    "exposed_communication",
    "peak_memory_gib",
    "memory_limit_gib",
    "lower_bound_s",
    "gap",
    "tensor_parallel",
    "pipeline_parallel",
    "data_parallel",
    "reason",
];

/// Formats a row per planner, from fastest to slowest, with unrounded numbers.
pub(crate) fn csv(outcome: &Outcome) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    for result in &outcome.results {
        let mut row = [const { String::new() }; HEADINGS.len()];
        result.planner.id().clone_into(&mut row[0]);
        row[1] = harmless(&result.title);
        match &result.answer {
            PlanOutcome::Planned(planned) => {
                let (m, layout) = (&planned.metrics, planned.layout);
                let values = [
                    m.iteration_s,
                    m.tokens_per_s,
                    m.tflops_per_device,
                    m.mfu,
                    m.bubble,
                    m.exposed_communication,
                    m.peak_memory_gib,
                    m.memory_limit_gib,
                    m.lower_bound_s,
                    m.gap,
                ];
                "planned".clone_into(&mut row[2]);
                for (cell, figure) in row[3..].iter_mut().zip(values) {
                    *cell = figure.to_string();
                }
                for (cell, degree) in row[13..].iter_mut().zip([layout.tensor, layout.pipeline, layout.data]) {
                    *cell = degree.to_string();
                }
            }
            PlanOutcome::Infeasible { binding, .. } => {
                "infeasible".clone_into(&mut row[2]);
                row[16] = harmless(binding);
            }
        }
        rows.push(row);
    }
    for row in rows {
        writer.write_record(&row).expect("memory takes any row");
    }
    String::from_utf8(writer.into_inner().expect("memory takes any row")).expect("rows are text")
}

/// Escapes text so spreadsheets do not interpret it as a formula.
fn harmless(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text() {
        for (text, cell) in
            [("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"), ("+1", "'+1"), ("@x", "'@x"), ("1F1B", "1F1B")]
        {
            assert_eq!(harmless(text), cell);
        }
    }
}
