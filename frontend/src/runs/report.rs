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
            <b>{words(&report)}</b>
            <span>{formats}</span>
            {assumptions}
            {first_problem.map(|problem| view! { <span class="warning">{problem}</span> })}
        </div>
    }
}

/// Summarizes line counts: "250 of 1,000 lines read, 3 repaired, 2 left out".
fn words(report: &LogReport) -> String {
    let mut words =
        format!("{} of {} lines parsed", format::count(report.parsed + report.repaired), format::count(report.lines));
    for (count, what) in
        [(report.repaired, "of them repaired"), (report.skipped, "could not be read"), (report.passed_over, "ignored")]
    {
        if count > 0 {
            words.push_str(", ");
            words.push_str(&format::count(count));
            words.push(' ');
            words.push_str(what);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_line_is_said() {
        let report =
            LogReport { lines: 1_000, parsed: 247, repaired: 3, passed_over: 748, skipped: 2, ..LogReport::default() };
        assert_eq!(words(&report), "250 of 1,000 lines parsed, 3 of them repaired, 2 could not be read, 748 ignored");
        assert_eq!(words(&LogReport::default()), "0 of 0 lines parsed");
    }
}
