//! Runs page: open a run, import a log, list stored runs.

mod import;
mod open_form;
mod replay;

use api::listing::ListPage;
use api::path;
use api::run::{RunList, RunState, RunSummary};
use leptos::prelude::*;

use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, ListFilter, StoredItem};
use crate::runs::{StateBadge, has_ended_early, origin_text, progress_text, size};
use import::ImportLog;
use open_form::OpenRunForm;
use replay::ReplayExample;

impl StoredItem for RunSummary {
    type List = RunList;
    const KIND: &'static str = "runs";
    const NOUN: (&'static str, &'static str) = ("run", "runs");
    const URL: &'static str = path::RUNS;
    const SEARCHED: &'static str = "Search names, notes, tags";
    const COLUMNS: &'static [Column] = &[
        Column::number("Median of all steps", Some("step")),
        Column::text("State", None),
        Column::text("Log", Some("size")),
        Column::number("Points", Some("points")),
        Column::text("Opened, UTC", Some("created")),
    ];

    fn unpack(list: RunList) -> (Vec<Self>, ListPage) {
        (list.runs, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.name.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: path::run_page(&self.id),
            url: path::run(&self.id),
            restore: path::run_restore(&self.id),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        let step = self.median_step_s.map_or_else(|| "–".to_owned(), format::seconds);
        vec![
            step.into_any(),
            view! {
                <StateBadge state=Signal::stored(self.state) ended_early=Signal::stored(has_ended_early(self)) exit_code=self.exit_code />
                <small class="under">{progress_text(self)}</small>
            }
            .into_any(),
            format!("{}, {}", origin_text(self.origin), size(self.bytes)).into_any(),
            format::count(self.points).into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }

    fn moves(&self) -> bool {
        !matches!(self.state, RunState::Ended | RunState::Crashed)
    }

    fn filter() -> Option<ListFilter> {
        let options = RunState::ALL.map(|state| (state.id().to_owned(), state.id().to_owned()));
        Some(ListFilter { key: "state", label: "State", any: "any state", options: options.to_vec() })
    }
}

#[component]
pub(crate) fn RunsPage() -> impl IntoView {
    document().set_title("Runs · Planscope");
    let collection = Collection::<RunSummary>::new();
    let changed = Callback::new(move |()| collection.reload());
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Runs"</h1>
            <p class="lead">
                "Logs of training jobs, live or imported, compared with a plan. The trainer does not change: a shell loop uploads the log file that it writes."
            </p>
            <div class="two-options">
                <OpenRunForm changed=changed />
                <ImportLog changed=changed />
            </div>
            <ReplayExample />
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <p>"No run yet. Track a live run and paste its command next to a training job, or drop the log of a finished job."</p>
    }
}
