//! Trace counters as step plots.

use api::path;
use api::trace::{CounterList, CounterSeries};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

/// Points per series, about two per pixel.
const POINTS: u32 = 800;
/// Maximum number of series.
const MAX_SERIES: usize = 40;

#[component]
pub(crate) fn CountersCard(
    /// Trace identifier.
    id: String,
    /// Time from the first start to the last end.
    span_ns: u64,
) -> impl IntoView {
    let list = RwSignal::new(None::<Result<CounterList, RequestError>>);
    let url = path::trace_counters(&id, POINTS);
    spawn_local(async move { list.set(Some(client::get::<CounterList>(&url).await)) });
    let body = move || match list.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error /> }.into_any(),
        Some(Ok(list)) => {
            let series = list.series.into_iter().take(MAX_SERIES);
            series.map(|series| view! { <Staircase series=series span_ns=span_ns /> }).collect_view().into_any()
        }
    };
    view! {
        <section class="card" data-testid="trace-counters">
            <header class="card-title"><h2>"Counters"</h2></header>
            {body}
        </section>
    }
}

#[component]
fn Staircase(series: CounterSeries, span_ns: u64) -> impl IntoView {
    let upper = series.value.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lower = series.value.iter().copied().fold(0.0, f64::min);
    let facts = format!("{} values, at most {}", format::count(series.values), format::large(upper));
    let label = format!("{}: {facts}", series.name);
    view! {
        <figure class="trace-counter">
            <figcaption><span class="trace-name">{series.name.clone()}</span>" "<small class="muted">{facts}</small></figcaption>
            <svg viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" aria-label=label>
                <polyline points=points(&series, span_ns, lower, upper) fill="none" vector-effect="non-scaling-stroke" />
            </svg>
        </figure>
    }
}

/// Returns the polyline of a step plot in a 1000 by 40 box.
fn points(series: &CounterSeries, span_ns: u64, lower: f64, upper: f64) -> String {
    let height = (upper - lower).max(f64::MIN_POSITIVE);
    let mut points = Vec::new();
    let mut before = None;
    for (time, value) in series.time_ns.iter().zip(&series.value) {
        let x = (*time as f64 / (span_ns.max(1)) as f64 * 1000.0).clamp(0.0, 1000.0);
        let y = 39.0 - (value - lower) / height * 38.0;
        if let Some(before) = before {
            points.push(format!("{x:.1},{before:.1}"));
        }
        points.push(format!("{x:.1},{y:.1}"));
        before = Some(y);
    }
    points.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_last_until_the_next() {
        let series =
            CounterSeries { process: 0, name: String::new(), values: 2, time_ns: vec![0, 50], value: vec![0.0, 10.0] };
        assert_eq!(points(&series, 100, 0.0, 10.0), "0.0,39.0 500.0,39.0 500.0,1.0");
    }
}
