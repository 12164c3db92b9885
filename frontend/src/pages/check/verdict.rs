//! Verdict, the three main figures, and links to other pages.

use std::sync::Arc;

use api::check::{Certainty, Check, Verdict};
use api::planner::certainty::MemoryCertainty;
use api::planner::outcome::Planned;
use api::planner::scenario::Scenario;
use api::planner::utilisation::Utilisation;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use crate::check::Checked;
use crate::client::{self, Body, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::results::{degrees, fullest_rank};

/// Describes the verdict with its decisive figure.
fn headline(check: &Check) -> String {
    let fit = &check.fit;
    let peak = fit.base.peak_gib.unwrap_or(0.0);
    let fullest = fullest_rank(&fit.ranks, |need| &need.memory);
    let rank = fullest.map(|need| format!(" on rank {}", need.rank)).unwrap_or_default();
    let (peak_text, limit) = (format::gib(peak), format::gib(fit.limit_gib));
    match check.verdict {
        Verdict::Fits => format!("{} to spare: {peak_text} of {limit}{rank}", format::gib(fit.limit_gib - peak)),
        Verdict::AtRisk => {
            let probability = check.certainty.as_ref().map(|certainty| certainty.memory.probability_out_of_memory);
            let probability = probability.map(format::probability).unwrap_or_default();
            format!("{peak_text} of {limit} predicted{rank}; {probability} probability of running out of memory")
        }
        Verdict::DoesNotFit if fit.ranks.is_empty() => {
            format::gib_in(&format::sentence(fit.base.binding.as_deref().unwrap_or("no layout is possible")))
        }
        Verdict::DoesNotFit => format!("{peak_text} needed{rank}; {limit} available"),
        Verdict::DoesNotStart if fit.ranks.is_empty() => "The framework refuses the job".to_owned(),
        Verdict::DoesNotStart => format!("The framework refuses the job, although {peak_text} of {limit} suffice"),
    }
}

/// Job in one line.
fn subject(checked: &Checked) -> String {
    let Check { format, schedule, scenario, plan, fit, .. } = &checked.check;
    let layout = plan.as_ref().map(|plan| plan.layout).or(fit.base.layout);
    let parts = [
        Some(checked.request.name.clone()).filter(|name| !name.is_empty()),
        Some(format.map_or("Scenario", |format| format.title()).to_owned()),
        Some(format!(
            "{}, {} parameters, on {} × {}",
            scenario.model.name,
            format::large(scenario.model.parameters() as f64),
            format::count(scenario.cluster.devices().into()),
            scenario.cluster.name
        )),
        layout.map(|layout| degrees(&layout)),
        Some(scenario.training.context_parallel).filter(|&degree| degree > 1).map(|degree| format!("CP {degree}")),
        Some(schedule.clone()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

const fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "verdict-badge fits",
        Verdict::AtRisk => "verdict-badge risk",
        Verdict::DoesNotFit | Verdict::DoesNotStart => "verdict-badge not",
    }
}

const fn icon(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "✓",
        Verdict::AtRisk => "!",
        Verdict::DoesNotFit | Verdict::DoesNotStart => "✕",
    }
}

/// Verdict in words, job, figures.
#[component]
pub(super) fn VerdictPanel(checked: Arc<Checked>) -> impl IntoView {
    let check = &checked.check;
    let verdict = check.verdict;
    let figures = check.plan.as_ref().map(|plan| {
        view! {
            <Figures
                plan=plan
                scenario=&check.scenario
                certainty=check.certainty.clone()
                utilisation=check.utilisation.clone()
            />
        }
    });
    let refusals = check.refusals.iter().map(|refusal| view! { <p class="slower">{refusal.clone()}</p> });
    let refusals = refusals.collect::<Vec<_>>();
    let binding = check.fit.base.binding.as_deref().filter(|_| !check.fit.ranks.is_empty());
    let binding = binding.map(|binding| format::gib_in(&format::sentence(binding)));
    view! {
        <section class="check-verdict" data-testid="verdict">
            <div class="verdict-line">
                <span class=class(verdict)><span aria-hidden="true">{icon(verdict)}</span>" "{verdict.title()}</span>
                <h2 id="check-headline" tabindex="-1">{headline(check)}</h2>
                <span class="grow"></span>
                <OpenInExplore scenario=check.scenario.clone() />
            </div>
            <p class="muted" data-testid="check-subject">{subject(&checked)}</p>
            {refusals}
            {binding.map(|binding| view! { <p class="slower">{binding}</p> })}
            {figures}
        </section>
    }
}

/// Step time, throughput and memory of the plan.
#[component]
fn Figures<'a>(
    plan: &'a Planned,
    scenario: &'a Scenario,
    certainty: Option<Certainty>,
    utilisation: Vec<Utilisation>,
) -> impl IntoView + use<> {
    let metrics = &plan.metrics;
    let step = certainty.as_ref().map(|certainty| format::seconds_interval(certainty.step_s));
    // Throughput is inverse to the step time.
    let throughput = certainty.as_ref().zip(metrics.tokens_per_s_per_device).map(|(certainty, rate)| {
        let at = |seconds: f64| metrics.iteration_s / seconds;
        let (slow, fast) = (at(certainty.step_s.high), at(certainty.step_s.low));
        format!(
            "80 %: {} to {} tokens/s, MFU {} to {}",
            format::three_digits(rate * slow),
            format::three_digits(rate * fast),
            format::percent(metrics.mfu * slow),
            format::percent(metrics.mfu * fast)
        )
    });
    let memory = certainty.as_ref().map(|certainty| {
        let MemoryCertainty { interval_gib, probability_out_of_memory } = certainty.memory;
        format!(
            "80 % interval: {} to {} reserved. Probability of running out of memory: {}",
            format::gib(interval_gib.low),
            format::gib(interval_gib.high),
            format::probability(probability_out_of_memory)
        )
    });
    let reason = certainty.and_then(|certainty| certainty.reason).map(|reason| format!("Widest interval: {reason}"));
    let samples = format::count(scenario.workload.global_batch.into());
    let tokens = metrics.tokens_per_s * metrics.iteration_s;
    let rate = metrics.tokens_per_s_per_device.map_or_else(|| "–".to_owned(), format::three_digits);
    view! {
        <dl class="check-figures">
            <div>
                <dt>"Step time"</dt>
                <dd data-testid="check-time">{format::seconds(metrics.iteration_s)}</dd>
                <dd class="interval" data-testid="check-interval">{step}</dd>
                <dd class="muted">{format!("{samples} sequences, {} tokens per step", format::large(tokens))}</dd>
                <dd class="muted">{reason}</dd>
            </div>
            <div>
                <dt>"Throughput"</dt>
                <dd data-testid="check-rate">{rate}" tokens/s/GPU"</dd>
                <dd class="interval">{throughput}</dd>
                <dd class="muted"><MfuByFormula utilisation=utilisation /></dd>
            </div>
            <div>
                <dt>"Peak memory, worst rank"</dt>
                <dd data-testid="check-memory">{format::gib(metrics.peak_memory_gib)}</dd>
                <dd class="interval">{memory}</dd>
                <dd class="muted">{format!("limit {}: device memory minus the reserve", format::gib(metrics.memory_limit_gib))}</dd>
            </div>
        </dl>
    }
}

/// TFLOP/s and MFU by a selectable formula: counted operations and peak.
#[component]
fn MfuByFormula(utilisation: Vec<Utilisation>) -> impl IntoView {
    // Position in the list, and whether the sparse peak applies.
    let formula = RwSignal::new((0_usize, false));
    let options = utilisation.iter().enumerate().flat_map(|(index, it)| {
        ["dense", "sparse"].map(|peak| {
            let value = format!("{index} {peak}");
            view! { <option value=value>{format!("{}, {peak} 16-bit peak", it.counted.title())}</option> }
        })
    });
    let options = options.collect_view();
    let choose = move |event| {
        let value = event_target_value(&event);
        if let Some((index, peak)) = value.split_once(' ')
            && let Ok(index) = index.parse()
        {
            formula.set((index, peak == "sparse"));
        }
    };
    let text = move || {
        let (index, is_sparse) = formula.get();
        utilisation.get(index).map(|it| {
            let share = if is_sparse { it.of_sparse_peak } else { it.of_dense_peak };
            format!("{} TFLOP/s, MFU {}", format::three_digits(it.tflops_per_device), format::percent(share))
        })
    };
    view! {
        <span data-testid="check-mfu">{text}</span>
        <select class="mfu-formula" aria-label="Formula of the MFU" data-testid="check-mfu-formula" on:change=choose>
            {options}
        </select>
    }
}

/// Button that stores a scenario as a draft and opens it on the explore page.
#[component]
pub(super) fn OpenInExplore(scenario: Scenario) -> impl IntoView {
    let navigate = StoredValue::new_local(use_navigate());
    let wrong = RwSignal::new(None::<RequestError>);
    let scenario = StoredValue::new(scenario);
    let open = move |_| {
        let body = scenario.with_value(|scenario| serde_json::to_string(scenario).unwrap_or_default());
        spawn_local(async move {
            match client::send::<StoredScenario>("PUT", api::path::SCENARIOS, Body::Json(body)).await {
                Ok(stored) => navigate
                    .with_value(|navigate| navigate(&api::path::share(&stored.short), NavigateOptions::default())),
                Err(error) => wrong.set(Some(error)),
            }
        });
    };
    view! {
        <button on:click=open>"Open in Explore"</button>
        {move || wrong.get().map(|error| view! { <ErrorNotice error=error /> })}
    }
}
