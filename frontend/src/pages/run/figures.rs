//! Predicted and measured values, as a table and in sentences.

use api::run::{Comparison, Prediction, PredictionBand, Quantity, SegmentSummary};
use leptos::prelude::*;

use crate::format;
use crate::runs::{Metric, use_run_monitor};

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
                <header class="card-title"><h2>"Predicted and measured"</h2></header>
                {body}
            </section>
        </Show>
    }
}

#[component]
fn Table(comparison: Comparison) -> impl IntoView {
    let Comparison { predictions, outliers, segments, notes, job, .. } = comparison;
    let is_comparable = job.is_comparable();
    let formula = job.formulas.first().map(|formula| formula.title());
    let text = if is_comparable {
        sentences(&predictions, outliers.len())
    } else if job.is_same_job() {
        "The plan has another layout than the run, so no differences are shown.".to_owned()
    } else {
        "The run and the plan are different jobs, so no differences are shown.".to_owned()
    };
    let reasons = predictions.iter().map(|prediction| {
        let title = Metric::from_quantity(prediction.quantity).title();
        view! { <li><b>{title}</b>": "{prediction.band.reason.clone()}</li> }
    });
    let reasons = reasons.collect_view();
    let rows = predictions.into_iter().map(|prediction| {
        let metric = Metric::from_quantity(prediction.quantity);
        let dash = || "–".to_owned();
        let range = |band: &PredictionBand| format!("{} to {}", metric.text(band.low), metric.text(band.high));
        let band = range(&prediction.band);
        let next = prediction.next.as_ref().map(|next| {
            view! { <small class="under" data-testid="next-steps">{format!("next steps: {}", range(next))}</small> }
        });
        view! {
            <tr data-quantity=metric.id()>
                <th scope="row">
                    {metric.title()}
                    {formula.filter(|_| metric == Metric::Tflops).map(|formula| view! { <small class="under" data-testid="flop-formula">{formula}</small> })}
                </th>
                <td class="number">{metric.text(prediction.band.value)}</td>
                <td class="number">{band}{next}</td>
                <td class="number" data-metric="measured">{prediction.measured.map_or_else(dash, |value| metric.text(value))}</td>
                {is_comparable.then(|| view! {
                    <td class="number" data-metric="error">{prediction.error.map_or_else(dash, format::signed_percent)}</td>
                    <td class="number">{prediction.inside.map_or_else(dash, format::percent)}</td>
                })}
            </tr>
        }
    });
    let notes = notes.into_iter().map(|note| view! { <li>{note}</li> }).collect_view();
    view! {
        <p data-testid="figures-words">{text}</p>
        <div class="table-scroll" role="region" aria-label="Predicted and measured figures" tabindex="0">
            <table class="list figures">
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

/// Summarizes the table in sentences.
fn sentences(predictions: &[Prediction], left_out: usize) -> String {
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
        if let Some(inside) = prediction.inside {
            sentences.push(format!("Measured steps lie inside the band: {}.", format::percent(inside)));
        }
    } else {
        sentences.push("The log states no step time yet.".to_owned());
    }
    match left_out {
        0 => {}
        1 => sentences.push("One outlier is excluded.".to_owned()),
        _ => sentences.push(format!("{} outliers are excluded.", format::count(left_out as u64))),
    }
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
                    <td class="number">{segment.median_step_s.map_or_else(|| "–".to_owned(), format::seconds)}</td>
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
        assert_eq!(
            sentences(std::slice::from_ref(&prediction), 2).replace('\u{202f}', " "),
            "A step takes 2.10 s, predicted 2.00 s: +5.00 %. Measured steps lie inside the band: 96.0 %. \
             2 outliers are excluded."
        );
        let silent = Prediction { measured: None, error: None, inside: None, ..prediction };
        assert_eq!(sentences(&[silent], 0), "The log states no step time yet.");
    }
}
