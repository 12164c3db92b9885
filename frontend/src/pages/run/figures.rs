//! Predicted and measured values, as a table and in sentences.

use std::collections::BTreeSet;

use api::run::{Comparison, Outlier, OutlierReason, Prediction, PredictionBand, Quantity, SegmentSummary};
use leptos::prelude::*;

use crate::format;
use crate::runs::{Metric, Points, Sample, use_run_monitor};

/// Table card. It is hidden without a plan.
#[component]
pub(super) fn MetricsCard() -> impl IntoView {
    let monitor = use_run_monitor();
    let has_comparison =
        Memo::new(move |_| monitor.comparison_target().is_some() && monitor.refusal.with(Option::is_none));
    let body = move || match monitor.comparison.get() {
        None => view! { <div class="skeleton figures-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(comparison) => view! { <Table comparison=(*comparison).clone() /> }.into_any(),
    };
    view! {
        <Show when=move || has_comparison.get()>
            <section class="card" data-testid="figures">
                <header class="card-title">
                    <h2>"Predicted and measured"</h2>
                    {move || monitor.is_outdated.get().then(|| view! { <span class="muted">"comparing the latest steps…"</span> })}
                </header>
                {body}
            </section>
        </Show>
    }
}

#[component]
fn Table(comparison: Comparison) -> impl IntoView {
    let Comparison { predictions, outliers, segments, segment, notes, job, .. } = comparison;
    let is_comparable = job.is_comparable();
    let formula = job.formulas.first().map(|formula| formula.title());
    let text = if is_comparable {
        let counts = untrack(|| {
            let samples =
                |points: &Points| inside_counts(points.samples(), &predictions, &outliers, (&segments, segment));
            use_run_monitor().feed.with_points(samples)
        });
        sentences(&predictions, &outliers, (&segments, segment), counts)
    } else if job.is_same_job() {
        "The plan has another layout than the run. The table shows both values without an error of the prediction."
            .to_owned()
    } else {
        "The run and the plan are different jobs. The table shows both values without an error of the prediction."
            .to_owned()
    };
    let logs_tokens = untrack(|| {
        let logs_tokens =
            |points: &Points| points.has_metric(Metric::Tokens) || points.has_metric(Metric::TokensPerDevice);
        use_run_monitor().feed.with_points(logs_tokens)
    });
    let reasons = predictions.iter().map(|prediction| {
        let title = Metric::from_quantity(prediction.quantity).title();
        view! { <li><b>{title}</b>": "{prediction.band.reason.clone()}</li> }
    });
    let reasons = reasons.collect_view();
    let rows = predictions.into_iter().map(|prediction| {
        let metric = Metric::from_quantity(prediction.quantity);
        let dash = || "–".to_owned();
        let is_derived = !logs_tokens && matches!(metric, Metric::Tokens | Metric::TokensPerDevice);
        let range = |band: &PredictionBand| format!("{} to {}", metric.text(band.low), metric.text(band.high));
        let band = range(&prediction.band);
        let next = prediction.next.as_ref().map(|next| {
            view! { <small class="under" data-testid="next-steps">{format!("expected next steps: {}", range(next))}</small> }
        });
        view! {
            <tr data-quantity=metric.id()>
                <th scope="row">
                    {metric.title()}
                    {formula.filter(|_| metric == Metric::Tflops).map(|formula| view! { <small class="under" data-testid="flop-formula">{formula}</small> })}
                </th>
                <td class="number">{metric.text(prediction.band.value)}</td>
                <td class="number">{band}{next}</td>
                <td class="number" data-metric="measured">
                    {prediction.measured.map_or_else(dash, |value| metric.text(value))}
                    {(is_derived && prediction.measured.is_some()).then(|| view! { <small class="under">"from the step time"</small> })}
                </td>
                {is_comparable.then(|| view! {
                    <td class="number" data-metric="error">{prediction.error.map_or_else(dash, format::signed_percent)}</td>
                    <td class="number">{prediction.inside.map_or_else(dash, format::percent)}</td>
                })}
            </tr>
        }
    });
    let notes = notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view();
    view! {
        <p data-testid="figures-summary">{text}</p>
        <div class="table-scroll" role="region" aria-label="Predicted and measured figures" tabindex="0">
            <table class="list figures predicted-measured">
                <thead>
                    <tr>
                        <th scope="col">"Figure"</th>
                        <th scope="col" class="number">"Predicted"</th>
                        <th scope="col" class="number">"Band"</th>
                        <th scope="col" class="number">"Measured median"</th>
                        {is_comparable.then(|| view! {
                            <th scope="col" class="number">"Difference"</th>
                            <th scope="col" class="number">"Inside the band"</th>
                        })}
                    </tr>
                </thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </div>
        <Segments segments=segments />
        <details class="advanced">
            <summary>"How the bands are computed, and notes"</summary>
            <ul class="notes">{reasons}{notes}</ul>
        </details>
    }
}

/// Maximum number of listed ranges of steps.
const MAX_RANGES: usize = 6;
/// Smallest number of slow steps in a row that are an episode.
const EPISODE: usize = 3;

/// Splits outliers into runs of consecutive rows.
fn in_a_row(outliers: &[&Outlier]) -> Vec<Vec<Outlier>> {
    let mut runs: Vec<Vec<Outlier>> = Vec::new();
    for &&outlier in outliers {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| last.row + 1 == outlier.row) => run.push(outlier),
            _ => runs.push(vec![outlier]),
        }
    }
    runs
}

/// Names the steps of runs: "57, 80–91".
fn step_ranges(runs: &[Vec<Outlier>]) -> String {
    let range = |run: &Vec<Outlier>| match (run.first(), run.last()) {
        (Some(first), Some(last)) if first.step != last.step => {
            format!("{}–{}", format::count(first.step), format::count(last.step))
        }
        (Some(first), _) => format::count(first.step),
        _ => String::new(),
    };
    let ranges: Vec<String> = runs.iter().take(MAX_RANGES).map(range).collect();
    let more = runs.len().saturating_sub(MAX_RANGES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    ranges.join(", ") + &more
}

/// Names the steps that are not compared, by reason. Slow steps in a row are described, because they are no noise.
fn not_compared(outliers: &[Outlier], median_s: Option<f64>) -> Vec<String> {
    let reasons = [(OutlierReason::WarmUp, "warm-up"), (OutlierReason::Slow, "slow"), (OutlierReason::Fast, "fast")];
    let mut parts = Vec::new();
    let mut episodes = Vec::new();
    for (reason, name) in reasons {
        let of_reason: Vec<&Outlier> = outliers.iter().filter(|outlier| outlier.reason == reason).collect();
        if of_reason.is_empty() {
            continue;
        }
        let runs = in_a_row(&of_reason);
        parts.push(format!("{} {name} ({})", format::count(of_reason.len() as u64), step_ranges(&runs)));
        let longest = runs.iter().max_by_key(|run| run.len()).filter(|run| run.len() >= EPISODE);
        if let (OutlierReason::Slow, Some(longest), Some(median_s)) = (reason, longest, median_s) {
            let mean_s = longest.iter().map(|outlier| outlier.step_s).sum::<f64>() / longest.len() as f64;
            episodes.push(format!(
                "Steps {} are {} slow steps in a row, {} slower than the median.",
                step_ranges(std::slice::from_ref(longest)),
                longest.len(),
                format::percent(mean_s / median_s - 1.0)
            ));
        }
    }
    let mut sentences = Vec::new();
    if !parts.is_empty() {
        let count = format::counted(outliers.len() as u64, "step is", "steps are");
        sentences.push(format!("{count} not compared: {}.", parts.join(", ")));
    }
    sentences.extend(episodes);
    sentences
}

/// Names the compared part of a run with restarts, and the change of its step time.
fn part_sentences(segments: &[SegmentSummary], part: Option<&SegmentSummary>) -> Vec<String> {
    let Some(part) = part else { return Vec::new() };
    let mut sentences = Vec::new();
    if let Some(change) = &part.change {
        sentences.push(format!(
            "The step time changes at step {}: {} before, {} from there on. Compared are the steps from there on.",
            format::count(change.step),
            format::seconds(change.before_s),
            format::seconds(change.after_s)
        ));
    }
    if segments.len() > 1 {
        sentences.push(format!(
            "Compared is part {} of {}, from step {}.",
            part.segment + 1,
            segments.len(),
            format::count(part.first_step)
        ));
    }
    sentences
}

/// Numbers of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct StepCounts {
    inside: u64,
    all: u64,
}

impl StepCounts {
    fn add(&mut self, is_inside: bool) {
        self.all += 1;
        self.inside += u64::from(is_inside);
    }
}

/// The compared part, and its first compared step.
fn compared_part(segments: &[SegmentSummary], segment: Option<u32>) -> (Option<&SegmentSummary>, u64) {
    let part = match segments {
        [only] => Some(only),
        _ => segments.iter().find(|part| Some(part.segment) == segment),
    };
    (part, part.and_then(|part| part.change).map_or(0, |change| change.step))
}

/// Counts the steps of the compared part inside the band of the step time: without and with the outliers.
fn inside_counts(
    samples: &[Sample],
    predictions: &[Prediction],
    outliers: &[Outlier],
    (segments, segment): (&[SegmentSummary], Option<u32>),
) -> Option<[StepCounts; 2]> {
    let step = predictions.iter().find(|prediction| prediction.quantity == Quantity::StepTime)?;
    step.inside?;
    let rows: BTreeSet<u64> = outliers.iter().map(|outlier| outlier.row).collect();
    let since = compared_part(segments, segment).1;
    let mut counts = [StepCounts::default(); 2];
    for sample in samples.iter().filter(|sample| segment.is_none_or(|part| sample.segment == part)) {
        let Some(step_s) = sample.value(Metric::StepTime).filter(|_| sample.step >= since) else { continue };
        let is_inside = (step.band.low..=step.band.high).contains(&step_s);
        counts[1].add(is_inside);
        if !rows.contains(&sample.row) {
            counts[0].add(is_inside);
        }
    }
    Some(counts)
}

/// States the steps inside the band.
fn inside_sentence([regular, all]: [StepCounts; 2]) -> String {
    let of = |counts: StepCounts| format!("{} of {}", format::count(counts.inside), format::count(counts.all));
    if regular.all == all.all {
        format!("Steps inside the band: {}.", of(all))
    } else {
        format!("Steps inside the band: {} regular steps, {} with the outliers.", of(regular), of(all))
    }
}

/// Summarizes the table in sentences. `segment` is the compared part of the run.
fn sentences(
    predictions: &[Prediction],
    outliers: &[Outlier],
    (segments, segment): (&[SegmentSummary], Option<u32>),
    counts: Option<[StepCounts; 2]>,
) -> String {
    // Outliers of other parts, and of the steps before a change, are not those of the compared steps.
    let (part, since) = compared_part(segments, segment);
    let is_compared = |outlier: &&Outlier| segment.is_none_or(|part| outlier.segment == part) && outlier.step >= since;
    let outliers: Vec<Outlier> = outliers.iter().filter(is_compared).copied().collect();
    let mut sentences = Vec::new();
    let step = predictions.iter().find(|prediction| prediction.quantity == Quantity::StepTime);
    if let Some((prediction, measured)) = step.and_then(|prediction| Some((prediction, prediction.measured?))) {
        let mut text =
            format!("A step takes {}, predicted {}", format::seconds(measured), format::seconds(prediction.band.value));
        if let Some(error) = prediction.error {
            text.push_str(": ");
            text.push_str(&format::signed_percent(error));
        }
        sentences.push(format!("{text}."));
        sentences.extend(part_sentences(segments, part));
        sentences.extend(counts.map(inside_sentence));
    } else {
        sentences.push("The log states no step time yet.".to_owned());
    }
    sentences.extend(not_compared(&outliers, step.and_then(|step| step.measured)));
    sentences.join(" ")
}

/// Run segments between restarts. Hidden for a single segment.
#[component]
fn Segments(segments: Vec<SegmentSummary>) -> impl IntoView {
    (segments.len() > 1).then(|| {
        let rows = segments.into_iter().map(|segment| {
            let steps = format!("{} to {}", format::count(segment.first_step), format::count(segment.last_step));
            view! {
                <tr>
                    <th scope="row">{format!("part {}", segment.segment + 1)}</th>
                    <td class="number">{steps}</td>
                    <td class="number">{format::count(segment.points)}</td>
                    <td class="number">
                        {segment.median_step_s.map_or_else(|| "–".to_owned(), format::seconds)}
                        {segment.change.map(|change| view! {
                            <small class="under">{format!("from step {}, {} before", format::count(change.step), format::seconds(change.before_s))}</small>
                        })}
                    </td>
                </tr>
            }
        });
        view! {
            <div class="table-scroll" role="region" aria-label="Parts between restarts" tabindex="0">
                <table class="list narrow" data-testid="segments">
                    <thead>
                        <tr>
                            <th scope="col">"Restarts"</th>
                            <th scope="col" class="number">"Steps"</th>
                            <th scope="col" class="number">"Points"</th>
                            <th scope="col" class="number">"Median step"</th>
                        </tr>
                    </thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        }
    })
}

#[cfg(test)]
mod tests {
    use api::run::{RunPoint, StepTimeChange};

    use super::*;

    #[test]
    fn metrics_are_summarized_in_sentences() {
        let band = PredictionBand { value: 2.0, low: 1.8, high: 2.2, reason: String::new() };
        let prediction = Prediction {
            quantity: Quantity::StepTime,
            band,
            measured: Some(2.1),
            error: Some(0.05),
            inside: Some(0.96),
            next: None,
        };
        let outlier = |step: u64, step_s: f64, reason: OutlierReason| Outlier {
            row: step,
            segment: 0,
            step,
            step_s,
            deviations: 9.0,
            reason,
        };
        let mut outliers = vec![outlier(1, 9.0, OutlierReason::WarmUp), outlier(2, 3.0, OutlierReason::WarmUp)];
        outliers.push(outlier(57, 4.0, OutlierReason::Slow));
        outliers.extend((80..92).map(|step| outlier(step, 2.31, OutlierReason::Slow)));
        let counts = Some([StepCounts { inside: 96, all: 100 }, StepCounts { inside: 109, all: 115 }]);
        assert_eq!(
            sentences(std::slice::from_ref(&prediction), &outliers, (&[], None), counts).replace('\u{202f}', " "),
            "A step takes 2.10 s, predicted 2.00 s: +5.00 %. Steps inside the band: 96 of 100 regular steps, 109 of 115 with the outliers. \
             15 steps are not compared: 2 warm-up (1–2), 13 slow (57, 80–91). \
             Steps 80–91 are 12 slow steps in a row, 10.0 % slower than the median."
        );
        assert!(
            sentences(std::slice::from_ref(&prediction), &outliers[..1], (&[], None), None)
                .ends_with("1 step is not compared: 1 warm-up (1).")
        );
        let silent = Prediction { measured: None, error: None, inside: None, ..prediction };
        assert_eq!(sentences(&[silent], &[], (&[], None), None), "The log states no step time yet.");
    }

    /// Ten steps of 2.0 s, one slow step outside and one inside the band of 1.8 to 2.2 s.
    #[test]
    fn steps_inside_the_band_are_counted_without_and_with_outliers() {
        let time = |row: u64| match row {
            3 => 4.0,
            4 => 2.19,
            _ => 2.0,
        };
        let points: Vec<RunPoint> =
            (1..=12).map(|row| RunPoint { row, step: row, step_s: Some(time(row)), ..RunPoint::default() }).collect();
        let mut known = Points::default();
        known.add(&points);
        let outlier = |row: u64| Outlier {
            row,
            segment: 0,
            step: row,
            step_s: time(row),
            deviations: 9.0,
            reason: OutlierReason::Slow,
        };
        let prediction = Prediction {
            quantity: Quantity::StepTime,
            band: PredictionBand { value: 2.0, low: 1.8, high: 2.2, reason: String::new() },
            measured: Some(2.0),
            error: None,
            inside: Some(1.0),
            next: None,
        };
        let counts = inside_counts(known.samples(), &[prediction], &[outlier(3), outlier(4)], (&[], None));
        assert_eq!(counts, Some([StepCounts { inside: 10, all: 10 }, StepCounts { inside: 11, all: 12 }]));
        assert_eq!(inside_sentence([StepCounts { inside: 9, all: 10 }; 2]), "Steps inside the band: 9 of 10.");
    }

    /// The time changes in the second part. Outliers before the change and of the first part are not listed.
    #[test]
    fn the_present_time_of_the_last_part_is_stated() {
        let part = |segment: u32, first_step: u64, last_step: u64, change: Option<StepTimeChange>| SegmentSummary {
            segment,
            first_step,
            last_step,
            points: last_step - first_step + 1,
            median_step_s: Some(6.0),
            change,
        };
        let change = StepTimeChange { step: 51, before_s: 4.38, after_s: 6.0 };
        let segments = [part(0, 1, 40, None), part(1, 35, 70, Some(change))];
        let prediction = Prediction {
            quantity: Quantity::StepTime,
            band: PredictionBand { value: 4.32, low: 3.8, high: 5.2, reason: String::new() },
            measured: Some(6.0),
            error: Some(6.0 / 4.32 - 1.0),
            inside: None,
            next: None,
        };
        let outlier = |segment: u32, step: u64| Outlier {
            row: step,
            segment,
            step,
            step_s: 9.0,
            deviations: 9.0,
            reason: OutlierReason::Slow,
        };
        let outliers = [outlier(0, 20), outlier(1, 40), outlier(1, 60)];
        assert_eq!(
            sentences(&[prediction], &outliers, (&segments, Some(1)), None).replace('\u{202f}', " "),
            "A step takes 6.00 s, predicted 4.32 s: +38.9 %. The step time changes at step 51: 4.38 s before, 6.00 s from there on. \
             Compared are the steps from there on. Compared is part 2 of 2, from step 35. 1 step is not compared: 1 slow (60)."
        );
    }
}
