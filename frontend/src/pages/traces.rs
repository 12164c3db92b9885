//! Traces page: upload, search, annotate, delete and restore traces.

use api::listing::ListPage;
use api::path;
use api::trace::{TraceList, TraceSummary, UploadedTrace};
use leptos::prelude::*;

use crate::format;
use crate::gantt::{Measure, set_measure, time_text};
use crate::listing::{About, Collection, CollectionView, Column, StoredItem};
use crate::runs::size;
use crate::traces::{TraceReportView, TraceUpload};

impl StoredItem for TraceSummary {
    type List = TraceList;
    const KIND: &'static str = "traces";
    const NOUN: (&'static str, &'static str) = ("trace", "traces");
    const URL: &'static str = path::TRACES;
    const SEARCHED: &'static str = "Search names, notes, tags, formats";
    const COLUMNS: &'static [Column] = &[
        Column::text("Run, rank", None),
        Column::text("Format", None),
        Column::number("Slices", Some("slices")),
        Column::number("Span", Some("span")),
        Column::number("Stored", Some("size")),
        Column::text("Uploaded, UTC", Some("created")),
    ];

    fn unpack(list: TraceList) -> (Vec<Self>, ListPage) {
        (list.traces, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.name.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: path::trace_page(&self.id),
            url: path::trace(&self.id),
            restore: path::trace_restore(&self.id),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        let origin = match (&self.run, self.rank) {
            (Some(run), Some(rank)) => format!("{run}, rank {rank}"),
            (Some(run), None) => run.clone(),
            (None, Some(rank)) => format!("rank {rank}"),
            (None, None) => "–".to_owned(),
        };
        vec![
            view! { <span class="trace-name">{origin}</span> }.into_any(),
            self.format.clone().into_any(),
            format::count(self.slices).into_any(),
            time_text::duration(self.span_ns as f64).into_any(),
            size(self.stored_bytes).into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }
}

#[component]
pub(crate) fn TracesPage() -> impl IntoView {
    document().set_title("Traces · Planscope");
    set_measure(Measure::Physical);
    let collection = Collection::<TraceSummary>::new();
    let reports = RwSignal::new(Vec::<UploadedTrace>::new());
    let uploaded = move |uploaded: UploadedTrace| {
        reports.update(|reports| reports.insert(0, uploaded));
        collection.reload();
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Traces"</h1>
            <p class="lead">
                "Profiler traces by thread and stream. If the names identify pipeline actions, the trace is compared with the plan. Nothing leaves this server."
            </p>
            <p class="trace-links"><a href=path::TRACE_COMPARISON_PAGE>"Compare two traces, or find the straggler among the ranks of a run"</a></p>
            <TraceUpload on_uploaded=uploaded />
            {move || reports.get().into_iter().map(|uploaded| {
                let (id, label) = (uploaded.trace.id, format!("Close the report of {}", uploaded.trace.name));
                let close = move |_| reports.update(|reports| reports.retain(|report| report.trace.id != id));
                view! {
                    <div class="closable">
                        <TraceReportView name=Some(uploaded.trace.name) report=uploaded.report />
                        <button type="button" class="quiet" aria-label=label on:click=close>"Close"</button>
                    </div>
                }
            }).collect_view()}
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! { <p>"No trace yet. Drop one above: Kineto or other Chrome trace events, Perfetto's packets, Chakra's nodes or the SQLite export of Nsight Systems, packed or not."</p> }
}
