//! Dataset import report.

use api::dataset::{ImportReport, MediaReport, ShapedReport};
use leptos::prelude::*;

use crate::format;

/// Import report: recognized and unrecognized content.
#[component]
pub(crate) fn ImportReportView(report: ImportReport) -> impl IntoView {
    let mut read = format!("{} samples read", format::count(report.parsed + report.repaired));
    for (count, word) in [(report.repaired, "repaired"), (report.skipped, "skipped")] {
        if count > 0 {
            read.push_str(", ");
            read.push_str(&format::count(count));
            read.push(' ');
            read.push_str(word);
        }
    }
    let files = (!report.files.is_empty()).then(|| view! { <span class="files">{report.files.join(", ")}</span> });
    let warnings = report.warnings.into_iter().map(|warning| {
        let is_fact = is_fact(&warning);
        view! { <span class:warning=!is_fact>{format::grouped_in(&warning)}</span> }
    });
    view! {
        <div class="import-report" data-testid="import-report" role="status">
            {files}
            <b>{read}</b>
            <span>{format!("{}, {}", report.format, report.source)}</span>
            {report.first_problem.map(|problem| view! { <span class="warning">{problem}</span> })}
            {warnings.collect_view()}
            {report.media.map(media)}
        </div>
    }
}

/// True for a note that states how a file was read and needs no action.
fn is_fact(warning: &str) -> bool {
    warning.starts_with("Lengths are weighted by")
}

/// Media conversion summary.
fn media(report: MediaReport) -> impl IntoView {
    let lines = report.shaped.map(|shaped| {
        let summary = summary_lines(&shaped);
        let unread = (!shaped.unread.is_empty()).then(|| {
            let line = format!("Not read by {}: {}", shaped.preprocessing.title(), shaped.unread.join(", "));
            view! { <span class="warning">{line}</span> }
        });
        let lines = summary.map(|line| view! { <span>{line}</span> }).collect_view();
        view! {
            {lines}
            {unread}
        }
    });
    view! {
        {lines}
        {report.advice.map(|advice| view! { <span class="warning" data-testid="import-advice">{advice}</span> })}
    }
}

fn summary_lines(shaped: &ShapedReport) -> [String; 3] {
    let mean_and_max = |mean: f64, max_value: f64| {
        format!("mean {}, largest {}", format::length(mean), format::count(max_value as u64))
    };
    let with = format::count(shaped.with_items);
    [
        format!(
            "Encoder, with {}: {} items per sample",
            shaped.preprocessing.title(),
            mean_and_max(shaped.mean_batch, shaped.largest_batch)
        ),
        format!(
            "Backbone: {} tokens per sample",
            mean_and_max(shaped.mean_backbone_tokens, shaped.largest_backbone_tokens)
        ),
        match shaped.without_items {
            0 => format!("{with} samples have encoder items"),
            without => format!("{with} samples have encoder items, {} have none", format::count(without)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::is_fact;

    #[test]
    fn a_weighted_histogram_is_no_warning() {
        assert!(is_fact("Lengths are weighted by the number of samples of each row: 5 rows stand for 1000 samples."));
        assert!(!is_fact("2 rows are skipped."));
    }
}
