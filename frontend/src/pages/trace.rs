//! Trace page.

mod labels;
mod prediction;

use std::sync::Arc;

use api::path;
use api::trace::{TraceDetail, TraceSummary};
use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::format;
use crate::gantt::{Measure, set_measure, time_text};
use crate::resource_page::{Kind, ResourcePage};
use crate::traces::{ActiveTimeCard, AlignmentCard, ComparedPlan, CountersCard, TraceReportView, Viewer};
use labels::TraceFields;
use prediction::PredictionCard;

/// Chart, time breakdown, and comparison with a plan.
#[component]
pub(crate) fn TracePage() -> impl IntoView {
    set_measure(Measure::Physical);
    let show = |detail: Arc<TraceDetail>| view! { <TraceContent detail=detail /> }.into_any();
    view! {
        <main id="main" class="page trace-page" tabindex="-1">
            <p><a href="/traces">"← Traces"</a></p>
            <ResourcePage kind=Kind { noun: "trace", list: "/traces" } url=path::trace show=show />
        </main>
    }
}

#[component]
fn TraceContent(detail: Arc<TraceDetail>) -> impl IntoView {
    let trace = detail.trace.clone();
    let id = trace.id.clone();
    // A scenario in the address precedes that of the trace.
    let linked = use_query_map().with_untracked(|query| query.get("scenario")).filter(|id| !id.is_empty());
    let (attached, planner) = trace.plan.clone().map_or((None, None), |plan| (Some(plan.scenario), plan.planner));
    let planner = planner.filter(|_| linked.is_none() || linked == attached);
    let plan = ComparedPlan::new(linked.or(attached), planner);
    let alignment = (trace.actions > 0).then(|| view! { <AlignmentCard trace=id.clone() plan=plan /> });
    let summary = RwSignal::new(trace.clone());
    Effect::new(move |_| summary.with(|trace| document().set_title(&format!("{} · Planscope", trace.name))));
    let run_link = move || {
        summary.with(|trace| trace.run.clone()).map(|run| view! { " · "<a href=path::run_page(&run)>"its run"</a> })
    };
    let counters = (detail.counters > 0).then(|| view! { <CountersCard id=id.clone() span_ns=trace.span_ns /> });
    view! {
        <TraceFields trace=summary />
        <p class="lead">
            {move || summary.with(facts)}{run_link}" · "
            <a href=format!("{}?before={}", path::TRACE_COMPARISON_PAGE, trace.id)>"compare with another trace"</a>
        </p>
        <Viewer detail=Arc::clone(&detail) />
        <PredictionCard detail=Arc::clone(&detail) plan=plan />
        {alignment}
        <ActiveTimeCard id=id />
        {counters}
        <section class="card">
            <header class="card-title"><h2>"Import"</h2></header>
            <TraceReportView report=detail.report.clone() />
        </section>
    }
}

/// Describes a trace in one line.
fn facts(trace: &TraceSummary) -> String {
    let rank = trace.rank.map_or_else(String::new, |rank| format!(" · rank {rank}"));
    format!(
        "{}{rank} · {} slices in {} · {}B uploaded, {}B stored · {} UTC",
        trace.format,
        format::count(trace.slices),
        time_text::duration(trace.span_ns as f64),
        format::large(trace.raw_bytes as f64),
        format::large(trace.stored_bytes as f64),
        format::moment(&trace.created_at),
    )
}
