//! Time and memory for all sweep points.

use api::path;
use api::sweep::{Front, FrontPlan};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::charts::{Cloud, Mark, ScatterChart};
use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;
use crate::sweeps::risk_text;

/// Maximum number of listed Pareto-optimal plans.
const MAX_LISTED: usize = 20;

/// Iteration time in s, or tokens per second per device if the points have different workloads
/// or numbers of devices.
/// Iteration times are not comparable between different batches.
fn speed(plan: &FrontPlan) -> f64 {
    plan.tokens_per_s_per_device.unwrap_or(plan.iteration_s)
}

fn speed_text(plan: &FrontPlan) -> String {
    plan.tokens_per_s_per_device.map_or_else(
        || format::seconds(plan.iteration_s),
        |rate| format!("{} tokens/s/GPU", format::three_digits(rate)),
    )
}

/// Formats the 80 % interval of the speed, if it is known.
fn interval_text(plan: &FrontPlan) -> Option<String> {
    let interval = plan.interval_s?;
    let Some(rate) = plan.tokens_per_s_per_device else { return Some(format::seconds_interval(interval)) };
    // Throughput is inverse to the time.
    let at = |seconds: f64| format::three_digits(rate * plan.iteration_s / seconds);
    Some(format!("80 %: {} to {} tokens/s/GPU", at(interval.high), at(interval.low)))
}

fn cloud(plans: &[FrontPlan], optimal: bool) -> Cloud {
    let matching = plans.iter().filter(|plan| plan.optimal == optimal);
    let point = |plan: &FrontPlan| {
        let interval = interval_text(plan).map(|text| format!(" ({text})")).unwrap_or_default();
        let risk = plan.risk.map(|risk| format!(". {} of running out of memory", risk_text(risk))).unwrap_or_default();
        let text = format!(
            "{}, {}: {}{interval}, {}{risk}",
            plan.words,
            plan.planner.title,
            speed_text(plan),
            format::gib(plan.peak_memory_gib)
        );
        (plan.peak_memory_gib, speed(plan), text)
    };
    let (name, light, dark, mark) = if optimal {
        ("Pareto-optimal", "#0072b2", "#5aa9e0", Mark::Disc)
    } else {
        ("not Pareto-optimal", "#8a939e", "#8a939e", Mark::Diamond)
    };
    Cloud { name: name.to_owned(), light, dark, mark, points: matching.map(point).collect(), names: Vec::new() }
}

/// Card with the Pareto front. It is hidden without plans.
#[component]
pub(super) fn FrontCard(id: String, done: Memo<u32>, on_open: Callback<u32>) -> impl IntoView {
    let front = RwSignal::new(None::<Result<Front, RequestError>>);
    Effect::new(move |_| {
        let requested_count = done.get();
        let url = path::sweep_front(&id);
        spawn_local(async move {
            let found = client::get::<Front>(&url).await;
            if done.try_get_untracked() == Some(requested_count) {
                front.try_set(Some(found));
            }
        });
    });
    let plans = Memo::new(move |_| {
        front.with(|front| match front {
            Some(Ok(front)) => front.plans.clone(),
            _ => Vec::new(),
        })
    });
    // Optimal points are drawn last, above the others.
    let clouds = Signal::derive(move || {
        let clouds = plans.with(|plans| [cloud(plans, false), cloud(plans, true)]);
        clouds.into_iter().filter(|cloud| !cloud.points.is_empty()).collect::<Vec<_>>()
    });
    let line = Signal::derive(move || {
        let mut points: Vec<(f64, f64)> = plans.with(|plans| {
            plans.iter().filter(|plan| plan.optimal).map(|plan| (plan.peak_memory_gib, speed(plan))).collect()
        });
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    });
    let description = move || {
        front.with(|front| match front {
            Some(Ok(front)) => format!(
                "{} plans of all points; {} are Pareto-optimal in {} and memory.{}",
                format::count(front.total),
                format::count(front.optimal),
                if front.by_throughput { "throughput" } else { "time" },
                if front.by_throughput {
                    " Points have different workloads or numbers of devices, so throughput per GPU takes the place of time."
                } else {
                    ""
                }
            ),
            _ => String::new(),
        })
    };
    let error_notice = move || {
        front.with(|front| match front {
            Some(Err(error)) => Some(view! { <ErrorNotice error=error.clone() /> }),
            _ => None,
        })
    };
    let listed = move || {
        let best: Vec<FrontPlan> =
            plans.with(|plans| plans.iter().filter(|plan| plan.optimal).take(MAX_LISTED).cloned().collect());
        best.into_iter()
            .map(|plan| {
                let point = plan.point;
                view! {
                    <tr>
                        <th scope="row"><button class="link" on:click=move |_| on_open.run(point)>{plan.words.clone()}</button></th>
                        <td class="label">{plan.planner.title.clone()}</td>
                        <td class="number">
                            {speed_text(&plan)}
                            {interval_text(&plan).map(|text| view! { <small class="under">{text}</small> })}
                        </td>
                        <td class="number">
                            {format::gib(plan.peak_memory_gib)}
                            {plan.risk.map(|risk| view! { <small class="under slower">{risk_text(risk)}</small> })}
                        </td>
                    </tr>
                }
            })
            .collect_view()
    };
    let any = Memo::new(move |_| plans.with(|plans| !plans.is_empty()));
    let by_throughput = Memo::new(move |_| front.with(|front| matches!(front, Some(Ok(front)) if front.by_throughput)));
    let measure = move || if by_throughput.get() { "Throughput" } else { "Step time" };
    view! {
        {error_notice}
        <Show when=move || any.get()>
            <section class="card" data-testid="sweep-front">
                <h2>{move || if by_throughput.get() { "Throughput against memory" } else { "Time against memory" }}</h2>
                <p class="hint">{description}</p>
                {move || view! {
                    <ScatterChart
                        clouds=clouds
                        front=line
                        axes=("peak memory, GiB", if by_throughput.get() { "tokens/s/GPU" } else { "step time, s" })
                        label=Signal::derive(move || format!("{} against peak memory. {}", measure(), description()))
                        test_id="sweep-front-chart"
                    />
                }}
                <div class="table-scroll" role="region" aria-label="Pareto-optimal plans, fastest first" tabindex="0">
                    <table class="figures">
                        <thead><tr><th scope="col">"Point"</th><th scope="col" class="label">"Planner"</th><th scope="col">{measure}</th><th scope="col">"Peak memory"</th></tr></thead>
                        <tbody>{listed}</tbody>
                    </table>
                </div>
            </section>
        </Show>
    }
}
