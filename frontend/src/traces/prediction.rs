//! Tables of a trace next to a prediction: parts of a step, kernels by type, idle time by cause.

use api::path;
use api::planner::trace_prediction::{IdleTime, KernelTypeTime, PartTime, StepPart, TracePrediction, UnassignedKernel};
use leptos::prelude::*;

use crate::accuracy_link::AccuracyLink;
use crate::format;

/// Comparison of a trace with a plan. If the trace is of another job, the reasons come first and the times are folded.
#[component]
pub(crate) fn PredictionTables(found: TracePrediction, scenario: String) -> impl IntoView {
    let other_job = found.other_job.clone();
    let short = scenario.get(..10).unwrap_or(&scenario).to_owned();
    let summary = summary(&found);
    let content = view! {
        <p data-testid="prediction-summary">{summary}" · "<a href=path::share(&short)>"open the scenario"</a></p>
        <AccuracyLink subject="The plan's times" />
        <Parts parts=found.parts.clone() />
        <Kernels rows=found.kernels.clone() step_s=found.step_s() unassigned=found.unassigned.clone() />
        <Idle rows=found.idle.clone() />
    };
    let notes = found.notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view();
    let reasons = other_job.iter().map(|reason| view! { <li>{reason.clone()}</li> }).collect_view();
    let content = if other_job.is_empty() {
        content.into_any()
    } else {
        view! {
            <section class="other-job" role="alert" data-testid="trace-of-other-job">
                <h3>"The trace is not of this job"</h3>
                <ul class="notes">{reasons}</ul>
                <p>"Choose the scenario of the traced job, or correct the rank. Differences to this plan say nothing about the run."</p>
            </section>
            <details class="advanced">
                <summary>"Times of both"</summary>
                {content}
            </details>
        }
        .into_any()
    };
    view! {
        {content}
        <ul class="notes">{notes}</ul>
    }
}

/// Describes the rank, and the step time of both.
fn summary(found: &TracePrediction) -> String {
    let steps = format::counted(found.steps, "step", "steps");
    let of_rank = format!("Rank {}, pipeline rank {}, mean of {steps}", found.rank, found.pipeline_rank);
    match found.parts.iter().find(|part| part.part == StepPart::Step) {
        Some(step) if step.predicted_s > 0.0 => format!(
            "{of_rank}: a step takes {}, predicted {} ({})",
            format::seconds(step.measured_s),
            format::seconds(step.predicted_s),
            format::signed_percent(step.measured_s / step.predicted_s - 1.0),
        ),
        _ => of_rank,
    }
}

const fn part_class(part: StepPart) -> &'static str {
    match part {
        StepPart::Compute => "compute",
        StepPart::ExposedCommunication => "exposed",
        StepPart::Copies => "copies",
        StepPart::Idle | StepPart::Step => "idle",
    }
}

/// Parts of a step as two bars on one scale, and as a table.
#[component]
fn Parts(parts: Vec<PartTime>) -> impl IntoView {
    let longest_s = parts.iter().fold(0.0_f64, |longest, part| longest.max(part.measured_s).max(part.predicted_s));
    let bar = |name: &'static str, seconds: fn(&PartTime) -> f64| {
        let segments = parts.iter().filter(|part| part.part != StepPart::Step).map(|part| {
            let share = if longest_s > 0.0 { 100.0 * seconds(part) / longest_s } else { 0.0 };
            view! { <i class=part_class(part.part) style=format!("width:{share:.2}%")></i> }
        });
        view! { <span>{name}</span><span class="part-bar">{segments.collect_view()}</span> }
    };
    let bars = [bar("Measured", |part| part.measured_s), bar("Predicted", |part| part.predicted_s)];
    let row = |part: &PartTime| {
        let is_step = part.part == StepPart::Step;
        view! {
            <tr class:total=is_step>
                <th scope="row">
                    {(!is_step).then(|| view! { <i class=format!("part-key {}", part_class(part.part)) aria-hidden="true"></i> })}
                    {format::capitalised(part.part.title())}
                </th>
                <td>{format::seconds(part.measured_s)}</td>
                <td>{format::seconds(part.predicted_s)}</td>
                <td>{difference(part.measured_s, Some(part.predicted_s))}</td>
            </tr>
        }
    };
    view! {
        <h3>"Parts of a step"</h3>
        <div class="part-bars" aria-hidden="true">{bars}</div>
        <div class="table-scroll" role="region" aria-label="Parts of a step" tabindex="0">
            <table class="figures prediction-table" data-testid="prediction-parts">
                <thead><tr>
                    <th scope="col">"Part"</th>
                    <th scope="col">"Measured"</th>
                    <th scope="col">"Predicted"</th>
                    <th scope="col">"Difference"</th>
                </tr></thead>
                <tbody>{parts.iter().map(row).collect_view()}</tbody>
            </table>
        </div>
        <p class="hint">
            "The parts add up to the step. Communication is exposed while no kernel computes; idle is neither a kernel nor a copy. The predicted idle time is the bubble of the pipeline."
        </p>
    }
}

/// Formats measured minus predicted with its sign and in percent of the predicted time.
fn difference(measured_s: f64, predicted_s: Option<f64>) -> String {
    match predicted_s {
        None => "–".to_owned(),
        Some(predicted_s) if predicted_s > 0.0 => format!(
            "{} ({})",
            format::seconds_difference(measured_s - predicted_s),
            format::signed_percent(measured_s / predicted_s - 1.0)
        ),
        Some(_) if measured_s == 0.0 => format::seconds(0.0),
        Some(_) => format::seconds_difference(measured_s),
    }
}

/// Formats a mean number per step.
fn number(mean: f64) -> String {
    if mean.fract() == 0.0 { format::count(mean as u64) } else { format::three_digits(mean) }
}

/// Kernels by type, and the longest kernels of unknown type.
#[component]
fn Kernels(rows: Vec<KernelTypeTime>, step_s: f64, unassigned: Vec<UnassignedKernel>) -> impl IntoView {
    let row = |row: &KernelTypeTime| {
        let share = if step_s > 0.0 { format::percent(row.measured_s / step_s) } else { "–".to_owned() };
        view! {
            <tr>
                <th scope="row">{format::capitalised(row.kind.title())}</th>
                <td class="kernel-count">{number(row.kernels)}</td>
                <td>{format::seconds(row.measured_s)}</td>
                <td>{share}</td>
                <td>{row.predicted_s.map_or_else(|| "–".to_owned(), format::seconds)}</td>
                <td>{difference(row.measured_s, row.predicted_s)}</td>
            </tr>
        }
    };
    let unknown = |kernel: UnassignedKernel| {
        view! { <li><code>{kernel.name}</code>" "{format::seconds(kernel.measured_s)}</li> }
    };
    let count = unassigned.len() as u64;
    view! {
        <h3>"Kernels by type"</h3>
        <div class="table-scroll" role="region" aria-label="Kernels by type" tabindex="0">
            <table class="figures prediction-table" data-testid="prediction-kernels">
                <caption>"Sums per step, largest difference first. Kernels on several streams run at the same time, so their sum can exceed the step."</caption>
                <thead><tr>
                    <th scope="col">"Type"</th>
                    <th scope="col" class="kernel-count">"Kernels"</th>
                    <th scope="col">"Measured"</th>
                    <th scope="col">"of the step"</th>
                    <th scope="col">"Predicted"</th>
                    <th scope="col">"Difference"</th>
                </tr></thead>
                <tbody>{rows.iter().map(row).collect_view()}</tbody>
            </table>
        </div>
        {(count > 0).then(|| view! {
            <details class="advanced">
                <summary>{format!("Longest of unknown type: {}", format::counted(count, "kernel", "kernels"))}</summary>
                <ul class="plain kernel-names">{unassigned.into_iter().map(unknown).collect_view()}</ul>
            </details>
        })}
    }
}

/// Idle time by cause, with how to confirm it.
#[component]
fn Idle(rows: Vec<IdleTime>) -> impl IntoView {
    let idle_s: f64 = rows.iter().map(|row| row.time_s).sum();
    let row = |row: &IdleTime| {
        let share = if idle_s > 0.0 { format::percent(row.time_s / idle_s) } else { "–".to_owned() };
        view! {
            <tr>
                <th scope="row">
                    {format::capitalised(row.cause.title())}
                    <small class="below">{row.cause.confirm()}</small>
                </th>
                <td>{format::seconds(row.time_s)}</td>
                <td>{share}</td>
                <td>{number(row.gaps)}</td>
                <td>{format::seconds(row.longest_s)}</td>
            </tr>
        }
    };
    let content = if rows.is_empty() {
        view! { <p class="muted">"The device is never idle within the steps."</p> }.into_any()
    } else {
        view! {
            <div class="table-scroll" role="region" aria-label="Idle time by cause" tabindex="0">
                <table class="figures prediction-table check-causes" data-testid="prediction-idle">
                    <thead><tr>
                        <th scope="col">"Cause and how to confirm it"</th>
                        <th scope="col">"Idle"</th>
                        <th scope="col">"Share"</th>
                        <th scope="col">"Gaps"</th>
                        <th scope="col">"Longest"</th>
                    </tr></thead>
                    <tbody>{rows.iter().map(row).collect_view()}</tbody>
                </table>
            </div>
        }
        .into_any()
    };
    view! { <h3>"Idle time by cause"</h3>{content} }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    #[test]
    fn differences_have_seconds_and_percent() {
        assert_eq!(plain(&difference(1.5, Some(1.0))), "+500 ms (+50.0 %)");
        assert_eq!(plain(&difference(0.9, Some(1.0))), "−100 ms (−10.0 %)");
        assert_eq!(plain(&difference(0.2, Some(0.0))), "+200 ms");
        assert_eq!(plain(&difference(0.0, Some(0.0))), "0 s");
        assert_eq!(difference(0.2, None), "–");
        assert_eq!((number(10.0), number(0.5)), ("10".to_owned(), "0.500".to_owned()));
    }

    #[test]
    fn the_summary_names_rank_and_step_times() {
        let step = PartTime { part: StepPart::Step, measured_s: 1.2, predicted_s: 1.0 };
        let mut found = TracePrediction {
            name: "rank3.json".to_owned(),
            rank: 3,
            pipeline_rank: 1,
            steps: 2,
            parts: vec![step],
            kernels: Vec::new(),
            idle: Vec::new(),
            unassigned: Vec::new(),
            other_job: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(
            plain(&summary(&found)),
            "Rank 3, pipeline rank 1, mean of 2 steps: a step takes 1.20 s, predicted 1.00 s (+20.0 %)"
        );
        found.parts[0].predicted_s = 0.0;
        assert_eq!(plain(&summary(&found)), "Rank 3, pipeline rank 1, mean of 2 steps");
    }
}
