//! First line of a run without a plan: the step time, the rates and the memory of its log.

use leptos::prelude::*;

use crate::format;
use crate::runs::{Metric, Points, use_run_monitor};

/// Upper median; `None` without values.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Formats the figure of a metric that stands for a whole run: a maximum of the memory, the last loss, or a median.
pub(super) fn figure_text(points: &Points, metric: Metric) -> Option<String> {
    let values = points.values(metric);
    match metric {
        Metric::Memory => {
            let (step, value) = values.into_iter().max_by(|first, other| first.1.total_cmp(&other.1))?;
            Some(format!("largest allocated {}, step {}", metric.text(value), format::count(step)))
        }
        Metric::Loss => {
            let (step, value) = *values.last()?;
            Some(format!("{} at step {}", metric.text(value), format::count(step)))
        }
        _ if metric.follows_step_time() => {
            let median = median(values.into_iter().map(|(_, value)| value).collect())?;
            Some(format!("median {}", metric.text(median)))
        }
        _ => None,
    }
}

/// Summarizes a log in one sentence. `median_s` is the median step time without outliers.
fn headline(points: &Points, median_s: Option<f64>) -> Option<String> {
    let steps = points.values(Metric::StepTime).len() as u64;
    let mut parts = vec![format!(
        "A step takes {}, the median of {}",
        format::seconds(median_s?),
        format::counted(steps, "logged step time", "logged step times")
    )];
    let value = |metric: Metric| median(points.values(metric).into_iter().map(|(_, value)| value).collect());
    parts.extend(value(Metric::TokensPerDevice).map(|rate| format!("{} tokens/s per GPU", format::three_digits(rate))));
    parts.extend(value(Metric::Tflops).map(|rate| format!("{} TFLOP/s per GPU", format::three_digits(rate))));
    let memory = points.values(Metric::Memory).into_iter().map(|(_, value)| value).max_by(f64::total_cmp);
    parts.extend(memory.map(|memory| format!("{} allocated at most", format::gib(memory))));
    Some(format!("{}.", parts.join("; ")))
}

/// Sentence below the title. It is hidden with a plan, because the comparison has one.
#[component]
pub(super) fn Headline() -> impl IntoView {
    let monitor = use_run_monitor();
    let text = Memo::new(move |_| {
        let median_s = monitor.summary().and_then(|summary| summary.median_step_s);
        let has_plan = monitor.comparison_target().is_some();
        if has_plan { None } else { monitor.feed.with_points(|points| headline(points, median_s)) }
    });
    move || text.get().map(|text| view! { <p class="run-headline" data-testid="run-headline">{text}</p> })
}

#[cfg(test)]
mod tests {
    use api::run::RunPoint;

    use super::*;

    fn points() -> Points {
        let point = |row: u64, step_s: f64, memory_gib: Option<f64>| RunPoint {
            row,
            step: 10 * row,
            step_s: Some(step_s),
            memory_gib,
            ..RunPoint::default()
        };
        let mut points = Points::default();
        points.add(&[point(1, 5.8, None), point(2, 2.7, Some(24.18)), point(3, 2.74, None)]);
        points
    }

    #[test]
    fn a_run_without_a_plan_states_its_figures() {
        let text = headline(&points(), Some(2.74)).unwrap().replace('\u{202f}', " ");
        assert_eq!(text, "A step takes 2.74 s, the median of 3 logged step times; 24.2 GiB allocated at most.");
        assert_eq!(headline(&points(), None), None);
    }

    #[test]
    fn a_metric_has_one_figure() {
        let text = |metric| figure_text(&points(), metric).map(|text| text.replace('\u{202f}', " "));
        assert_eq!(text(Metric::Memory).as_deref(), Some("largest allocated 24.2 GiB, step 20"));
        assert_eq!(text(Metric::StepTime).as_deref(), Some("median 2.74 s"));
        assert_eq!(text(Metric::Loss), None);
    }
}
