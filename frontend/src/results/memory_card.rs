//! Memory over time on one rank, for all plans.

use std::sync::Arc;

use api::planner::scenario::PlannerKind;
use api::planner::timeline::Timeline;
use leptos::prelude::*;

use super::memory_figures::MemoryMetrics;
use super::ranking;
use crate::charts::{MemoryChart, MemoryLine, Stroke};
use crate::explore::{Plan, use_explore};
use crate::format;

const BYTES_PER_GIB: f64 = (1_u64 << 30) as f64;

/// Returns the rank with the maximum peak. For equal peaks, the lowest rank.
fn fullest(timeline: &Timeline) -> usize {
    let peaks = timeline.memory.iter().enumerate().map(|(rank, curve)| (curve.peak_bytes, std::cmp::Reverse(rank)));
    peaks.max().map_or(0, |(_, rank)| rank.0)
}

/// Formats the memory limit, and the peak over all iterations next to the selected iteration.
fn caption(plan: &Plan, iteration: usize, max_risk: Option<f64>) -> String {
    let limit = plan.metrics.memory_limit_gib;
    let reserve = plan.ranks.first().map(|rank| rank.memory.reserve_gib);
    let limit = match (max_risk, reserve) {
        (Some(risk), _) => format!("limit {}: {}", format::gib(limit), format::max_risk(risk)),
        (None, Some(reserve)) => format!(
            "limit {}: {} of the device less a reserve of {}",
            format::gib(limit),
            format::gib(limit + reserve),
            format::gib(reserve)
        ),
        (None, None) => format!("limit {}", format::gib(limit)),
    };
    let host = plan.metrics.host_memory_gib;
    let limit = if host > 0.0 { format!("{limit} · {} of host memory per node", format::gib(host)) } else { limit };
    if plan.iterations.len() < 2 {
        return limit;
    }
    let peak = format::gib(plan.metrics.peak_memory_gib);
    format!("{limit} · iteration {iteration}; the ranked table shows the largest peak of all iterations, {peak}")
}

/// Names the plans that have fewer ranks. `None` if all plans have the rank.
fn without_rank(timelines: &[(PlannerKind, Arc<Timeline>)], rank: usize) -> Option<String> {
    let absent = timelines.iter().filter(|(_, timeline)| timeline.memory.len() <= rank);
    let names: Vec<&str> = absent.map(|(planner, _)| planner.title()).collect();
    (!names.is_empty()).then(|| format!("Plans without a rank {rank}: {}.", names.join("; ")))
}

#[component]
pub(super) fn MemoryCard() -> impl IntoView {
    let explore = use_explore();
    let picked = RwSignal::new(None::<usize>);
    let timelines = Signal::derive(move || {
        explore.displayed.with(|content| {
            let drawn = content.timelines.iter().map(|(planner, timeline)| (*planner, Arc::clone(timeline)));
            drawn.collect::<Vec<(PlannerKind, Arc<Timeline>)>>()
        })
    });
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    // Planner that determines the initially selected rank.
    let lead = Memo::new(move |_| {
        timelines.with(|timelines| {
            let selected_timeline = timelines.iter().find(|(planner, _)| Some(*planner) == selected.get());
            selected_timeline.or_else(|| timelines.first()).map(|(planner, timeline)| (*planner, fullest(timeline)))
        })
    });
    let ranks = Memo::new(move |_| {
        timelines.with(|timelines| timelines.iter().map(|(_, timeline)| timeline.ranks as usize).max().unwrap_or(0))
    });
    let rank = Memo::new(move |_| {
        let first = || lead.get().map_or(0, |(_, rank)| rank);
        picked.get().unwrap_or_else(first).min(ranks.get().saturating_sub(1))
    });
    let lines = Signal::derive(move || {
        let line = |(planner, timeline): (PlannerKind, Arc<Timeline>)| {
            let (title, stroke) = (planner.title().to_owned(), Stroke::for_planner(planner));
            MemoryLine { title, stroke, timeline }
        };
        let has_rank = |(_, timeline): &(PlannerKind, Arc<Timeline>)| timeline.memory.len() > rank.get();
        timelines.get().into_iter().filter(has_rank).map(line).collect::<Vec<_>>()
    });
    let absent = Memo::new(move |_| timelines.with(|timelines| without_rank(timelines, rank.get())));
    let plan = Memo::new(move |_| explore.planned(lead.get()?.0));
    let limit = Memo::new(move |_| plan.with(|plan| plan.as_ref().map(|plan| plan.metrics.memory_limit_gib)));
    let max_risk = Memo::new(move |_| {
        explore.stored.with(|stored| stored.as_ref().and_then(|stored| stored.scenario.max_memory_risk))
    });
    let iteration = Memo::new(move |_| explore.displayed.with(|content| content.iteration as usize));
    let peaks = Memo::new(move |_| {
        let planner = lead.get().map(|(planner, _)| planner);
        timelines.with(|timelines| {
            let planner_timeline = timelines.iter().find(|(candidate, _)| Some(*candidate) == planner);
            let peaks = planner_timeline
                .map(|(_, timeline)| timeline.memory.iter().map(|curve| curve.peak_bytes).collect::<Vec<_>>());
            peaks.unwrap_or_default()
        })
    });
    let options = move || {
        let peaks = peaks.get();
        let option = |index: usize| {
            let peak = peaks.get(index).map(|bytes| format!(", peak {}", format::gib(*bytes as f64 / BYTES_PER_GIB)));
            let text = format!("rank {index}{}", peak.unwrap_or_default());
            view! { <option value=index.to_string() prop:selected=move || rank.get() == index>{text}</option> }
        };
        (0..ranks.get()).map(option).collect_view()
    };
    view! {
        <section class="card" data-testid="card-memory">
            <header class="card-title">
                <h2>"Memory"</h2>
                <select aria-label="Rank whose memory is shown" on:change=move |event| picked.set(event_target_value(&event).parse().ok())>
                    {options}
                </select>
                <span class="muted" data-testid="memory-limit">
                    {move || plan.with(|plan| plan.as_ref().map(|plan| caption(plan, iteration.get(), max_risk.get())))}
                </span>
            </header>
            <MemoryChart lines=lines rank=rank limit=limit window=explore.window />
            {move || absent.get().map(|text| view! { <p class="hint">{text}</p> })}
            <MemoryMetrics timelines=timelines rank=rank />
        </section>
    }
}

#[cfg(test)]
mod tests {
    use api::planner::timeline::MemoryCurve;

    use super::*;

    #[test]
    fn card_opens_at_rank_with_maximum_peak() {
        let curve = |peak_bytes| MemoryCurve { static_bytes: 0, peak_bytes, time_ns: vec![0], bytes: vec![peak_bytes] };
        let timeline = |peaks: &[u64]| Timeline {
            ranks: peaks.len() as u32,
            memory: peaks.iter().copied().map(curve).collect(),
            ..Timeline::default()
        };
        assert_eq!(fullest(&timeline(&[3, 9, 5])), 1);
        assert_eq!(fullest(&timeline(&[9, 9])), 0, "the first of equal ranks");
        assert_eq!(fullest(&Timeline::default()), 0);
        let plans =
            [(PlannerKind::Best, Arc::new(timeline(&[3, 9]))), (PlannerKind::OneFOneB, Arc::new(timeline(&[3])))];
        assert_eq!(without_rank(&plans, 0), None);
        assert_eq!(
            without_rank(&plans, 1),
            Some(format!("Plans without a rank 1: {}.", PlannerKind::OneFOneB.title()))
        );
    }
}
