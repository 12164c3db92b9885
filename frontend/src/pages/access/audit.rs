//! Audit log card, newest entries first.

use api::access::{AuditLine, AuditPage};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

/// Loaded audit lines, and the cursor for the next request.
#[derive(Clone, Copy)]
struct LoadedLines {
    lines: RwSignal<Vec<AuditLine>>,
    next: RwSignal<Option<u64>>,
    last_error: RwSignal<Option<RequestError>>,
    is_loaded: RwSignal<bool>,
}

impl LoadedLines {
    fn fetch(self, after: Option<u64>) {
        let url = after.map_or_else(|| path::AUDIT.to_owned(), |after| format!("{}?after={after}", path::AUDIT));
        spawn_local(async move {
            match client::get::<AuditPage>(&url).await {
                Ok(page) => {
                    self.lines.try_update(|lines| lines.extend(page.changes));
                    self.next.try_set(page.next);
                    self.is_loaded.try_set(true);
                    drop(self.last_error.try_set(None));
                }
                Err(error) => drop(self.last_error.try_set(Some(error))),
            }
        });
    }
}

#[component]
pub(super) fn AuditCard() -> impl IntoView {
    let loaded = LoadedLines {
        lines: RwSignal::new(Vec::new()),
        next: RwSignal::new(None),
        last_error: RwSignal::new(None),
        is_loaded: RwSignal::new(false),
    };
    loaded.fetch(None);
    let rows = move || loaded.lines.get().into_iter().map(row).collect_view();
    let is_empty = move || loaded.is_loaded.get() && loaded.lines.with(Vec::is_empty);
    let empty = move || is_empty().then(|| view! { <p class="muted">"There are no recorded changes yet."</p> });
    let more = move || {
        let next = loaded.next.get()?;
        Some(
            view! { <p><button data-testid="audit-more" on:click=move |_| loaded.fetch(Some(next))>"Earlier changes"</button></p> },
        )
    };
    let notice = move || {
        let retry = move |()| loaded.fetch(loaded.next.get_untracked());
        loaded.last_error.get().map(|error| view! { <ErrorNotice error=error on_retry=retry /> })
    };
    view! {
        <section class="card">
            <header class="card-title"><h2>"Audit"</h2><span class="muted">"successful changes, latest first"</span></header>
            <div class="table-scroll" role="region" aria-label="Audit" tabindex="0">
                <table class="list" data-testid="audit">
                    <thead><tr><th>"When, UTC"</th><th>"Who"</th><th>"Action"</th><th>"Kind"</th><th>"Identifier"</th></tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            {empty}
            {more}
            {notice}
        </section>
    }
}

fn row(line: AuditLine) -> impl IntoView {
    let AuditLine { at, actor, method, action, kind, object, .. } = line;
    view! {
        <tr>
            <td class="muted"><span class="nowrap">{format::moment(&at)}</span></td>
            <td>{actor}</td>
            <td title=method>{action}</td>
            <td>{kind}</td>
            <td><code>{object}</code></td>
        </tr>
    }
}
