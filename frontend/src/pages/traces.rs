//! The page of traces: upload, search, tag, delete and bring back.

use api::path;
use api::trace::{TraceChange, TraceList, TraceSummary, UploadedTrace};
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Body, Failure};
use crate::format;
use crate::gantt::{Measure, set_measure, time_text};
use crate::notice::FailureNotice;
use crate::traces::{TraceReportView, TraceUpload};

/// What the page shows.
#[derive(Clone, Copy)]
struct Shelf {
    list: RwSignal<Option<Result<TraceList, Failure>>>,
    search: RwSignal<String>,
    tag: RwSignal<String>,
    deleted: RwSignal<bool>,
    /// The trace that was deleted last, with its name.
    last_deleted: RwSignal<Option<(String, String)>>,
    failure: RwSignal<Option<Failure>>,
    asked: StoredValue<u64>,
}

impl Shelf {
    fn fetch(self) {
        let number = self.asked.try_update_value(|asked| {
            *asked += 1;
            *asked
        });
        let (search, tag) = (self.search.get_untracked(), self.tag.get_untracked());
        let url = format!(
            "{}?search={}&tag={}&deleted={}",
            path::TRACES,
            client::encode(&search),
            client::encode(&tag),
            self.deleted.get_untracked()
        );
        spawn_local(async move {
            let answer = client::get::<TraceList>(&url).await;
            if self.asked.try_get_value() == number {
                self.list.set(Some(answer));
            }
        });
    }

    /// Tells the server something, then shows the list as it is now.
    fn tell(self, method: &'static str, url: String, body: Body, done: impl FnOnce() + 'static) {
        spawn_local(async move {
            match client::tell(method, &url, body).await {
                Ok(()) => {
                    self.failure.set(None);
                    done();
                }
                Err(failure) => self.failure.set(Some(failure)),
            }
            self.fetch();
        });
    }

    fn delete(self, id: String, name: String) {
        self.tell("DELETE", path::trace(&id), Body::Empty, move || self.last_deleted.set(Some((id, name))));
    }

    fn restore(self, id: &str) {
        self.tell("POST", path::trace_restore(id), Body::Empty, move || self.last_deleted.set(None));
    }

    fn change(self, id: &str, change: &TraceChange) {
        let body = serde_json::to_string(change).unwrap_or_default();
        self.tell("PATCH", path::trace(id), Body::Json(body), || {});
    }
}

/// Traces.
#[component]
pub(crate) fn TracesPage() -> impl IntoView {
    document().set_title("Traces · Planscope");
    set_measure(Measure::Physical);
    let shelf = Shelf {
        list: RwSignal::new(None),
        search: RwSignal::new(String::new()),
        tag: RwSignal::new(String::new()),
        deleted: RwSignal::new(false),
        last_deleted: RwSignal::new(None),
        failure: RwSignal::new(None),
        asked: StoredValue::new(0),
    };
    let reports = RwSignal::new(Vec::<UploadedTrace>::new());
    Effect::new(move |_| {
        shelf.search.track();
        shelf.tag.track();
        shelf.deleted.track();
        shelf.fetch();
    });
    let uploaded = move |uploaded: UploadedTrace| {
        reports.update(|reports| reports.insert(0, uploaded));
        shelf.fetch();
    };
    let body = move || match shelf.list.get() {
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(failure)) => view! { <FailureNotice failure=failure on_retry=move |()| shelf.fetch() /> }.into_any(),
        Some(Ok(list)) => view! { <Listed shelf=shelf list=list /> }.into_any(),
    };
    let toast = move || {
        shelf.last_deleted.get().map(|(id, name)| {
            view! {
                <p class="toast">
                    <span>{format!("Deleted {name}")}</span>
                    <button data-testid="trace-undo" on:click=move |_| shelf.restore(&id)>"Undo"</button>
                </p>
            }
        })
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <div class="page-title">
                <h1>"Traces"</h1>
                <span class="grow"></span>
                <input
                    type="search"
                    placeholder="Search name, note, tags"
                    aria-label="Search traces"
                    prop:value=move || shelf.search.get()
                    on:input=move |event| shelf.search.set(event_target_value(&event))
                />
            </div>
            <p class="lead">
                "What a profiler saw, thread by thread and stream by stream; where its names tell actions of a pipeline, beside the plan. Nothing leaves this server."
            </p>
            <TraceUpload on_uploaded=uploaded />
            {move || reports.get().into_iter().map(|uploaded| view! {
                <TraceReportView name=Some(uploaded.trace.name) report=uploaded.report />
            }).collect_view()}
            {move || shelf.failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
            {body}
            <div class="toasts" role="status">{toast}</div>
        </main>
    }
}

#[component]
fn Listed(shelf: Shelf, list: TraceList) -> impl IntoView {
    let TraceList { traces, tags, stored_bytes, deleted_bytes, retention_days, largest_upload_mib } = list;
    let sizes = format!(
        "{}B stored, {}B of deleted traces that can come back for {retention_days} days; others stay until they are deleted. Uploads have at most {largest_upload_mib} MiB.",
        format::large(stored_bytes as f64),
        format::large(deleted_bytes as f64),
    );
    let shows_deleted = shelf.deleted.get_untracked();
    let chosen_tag = shelf.tag.get_untracked();
    let empty = traces.is_empty().then(|| view! { <tr><td colspan="7" class="muted">"No trace."</td></tr> });
    let rows = traces.into_iter().map(|trace| view! { <Line shelf=shelf trace=trace /> }).collect_view();
    let tag_options = tags.into_iter().map(|tag| {
        let selected = tag == chosen_tag;
        view! { <option value=tag.clone() selected=selected>{tag.clone()}</option> }
    });
    view! {
        <div class="trace-choices">
            <label>"Tag "
                <select on:change=move |event| shelf.tag.set(event_target_value(&event))>
                    <option value="">"any"</option>
                    {tag_options.collect_view()}
                </select>
            </label>
            <label>
                <input
                    type="checkbox"
                    data-testid="show-deleted"
                    prop:checked=shows_deleted
                    on:change=move |event| shelf.deleted.set(event_target_checked(&event))
                />
                " Deleted ones"
            </label>
        </div>
        <div class="table-scroll" role="region" aria-label="Stored traces" tabindex="0">
            <table class="list" data-testid="traces">
                <thead>
                    <tr>
                        <th scope="col">"Name"</th>
                        <th scope="col">"Run, rank"</th>
                        <th scope="col">"Tags"</th>
                        <th scope="col" class="number">"Slices"</th>
                        <th scope="col" class="number">"Span"</th>
                        <th scope="col" class="number">"Stored"</th>
                        <th scope="col"><span class="visually-hidden">"Actions"</span></th>
                    </tr>
                </thead>
                <tbody>{rows}{empty}</tbody>
            </table>
        </div>
        <p class="hint" data-testid="trace-sizes">{sizes}</p>
    }
}

#[component]
fn Line(shelf: Shelf, trace: TraceSummary) -> impl IntoView {
    let TraceSummary {
        id, name, tags, run, rank, format, created_at, deleted_at, stored_bytes, slices, span_ns, ..
    } = trace;
    let place = match (run, rank) {
        (Some(run), Some(rank)) => format!("{run}, rank {rank}"),
        (Some(run), None) => run,
        (None, Some(rank)) => format!("rank {rank}"),
        (None, None) => "–".to_owned(),
    };
    let about = format!("{format} · {} UTC", format::moment(&created_at));
    let tag_label = format!("Tags of {name}, separated by commas");
    let (of_tags, of_button) = (id.clone(), id.clone());
    let retag = move |event: web_sys::Event| {
        let tags = event_target_value(&event).split(',').map(|tag| tag.trim().to_owned()).collect();
        shelf.change(&of_tags, &TraceChange { tags: Some(tags), ..TraceChange::default() });
    };
    let button = if deleted_at.is_some() {
        let label = format!("Bring back {name}");
        view! { <button class="quiet" aria-label=label on:click=move |_| shelf.restore(&of_button)>"Bring back"</button> }.into_any()
    } else {
        let (label, shown) = (format!("Delete {name}"), name.clone());
        view! {
            <button class="quiet" aria-label=label on:click=move |_| shelf.delete(of_button.clone(), shown.clone())>"Delete"</button>
        }
        .into_any()
    };
    let title = if deleted_at.is_some() {
        view! { <span class="trace-name">{name}</span> }.into_any()
    } else {
        view! { <a class="trace-name" href=path::trace_page(&id)>{name}</a> }.into_any()
    };
    view! {
        <tr>
            <th scope="row">{title}<br /><small class="muted">{about}</small></th>
            <td class="trace-name">{place}</td>
            <td><input type="text" class="trace-tags" aria-label=tag_label prop:value=tags.join(", ") on:change=retag /></td>
            <td class="number">{format::count(slices)}</td>
            <td class="number">{time_text::duration(span_ns as f64)}</td>
            <td class="number">{format!("{}B", format::large(stored_bytes as f64))}</td>
            <td class="number">{button}</td>
        </tr>
    }
}
