//! Parse report of a log.

use api::run::LogReport;
use leptos::prelude::*;

use crate::format;

/// Parse report: recognized and unrecognized content.
#[component]
pub(crate) fn LogReportView(report: LogReport) -> impl IntoView {
    let LogReport { formats, assumptions, first_problem, .. } = report.clone();
    let formats = if formats.is_empty() { "no format recognised".to_owned() } else { formats.join(", ") };
    let assumptions = (!assumptions.is_empty()).then(|| {
        let lines = assumptions.into_iter().map(|text| view! { <li>{text}</li> });
        view! { <ul>{lines.collect_view()}</ul> }
    });
    view! {
        <div class="import-report" data-testid="log-report">
            <b>{summary_text(&report)}</b>
            <span>{formats}</span>
            {assumptions}
            {first_problem.map(|problem| {
                let is_one = report.repaired + report.skipped <= 1;
                let text = if is_one { problem } else { format!("The first of these lines: {problem}") };
                view! { <span class="warning">{text}</span> }
            })}
        </div>
    }
}

/// Summarizes line counts. Each line is parsed, unreadable or ignored, so the counts add up. A repaired line is one of
/// the others.
fn summary_text(report: &LogReport) -> String {
    let mut text = format!("{} of {} lines parsed", format::count(report.parsed), format::count(report.lines));
    for (count, label) in [(report.skipped, "could not be read"), (report.passed_over, "ignored")] {
        if count > 0 {
            text.push_str(", ");
            text.push_str(&format::count(count));
            text.push(' ');
            text.push_str(label);
        }
    }
    if report.repaired > 0 {
        text.push_str("; ");
        text.push_str(&format::counted(report.repaired, "line was repaired", "lines were repaired"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_every_line_kind() {
        let report =
            LogReport { lines: 1_000, parsed: 250, repaired: 3, passed_over: 748, skipped: 2, ..LogReport::default() };
        assert_eq!(
            summary_text(&report),
            "250 of 1,000 lines parsed, 2 could not be read, 748 ignored; 3 lines were repaired"
        );
        assert_eq!(summary_text(&LogReport::default()), "0 of 0 lines parsed");
    }
}
