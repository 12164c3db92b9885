//! Stored scenarios page.

use api::listing::ListPage;
use api::path;
use api::scenario::{SavedSource, ScenarioLine, ScenarioList};
use leptos::prelude::*;

use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, StoredItem, Undo};
use crate::recent::OpenedLast;

impl StoredItem for ScenarioLine {
    type List = ScenarioList;
    const KIND: &'static str = "scenarios";
    const NOUN: (&'static str, &'static str) = ("scenario", "scenarios");
    const URL: &'static str = path::SCENARIOS;
    const SEARCHED: &'static str = "Search titles, notes, tags, models, clusters";
    const COLUMNS: &'static [Column] = &[
        Column::number("Step time", Some("time")),
        Column::text("Model", Some("model")),
        Column::text("Cluster", Some("cluster")),
        Column::text("Best planner", Some("planner")),
        Column::text("Stored, UTC", Some("created")),
    ];

    fn unpack(list: ScenarioList) -> (Vec<Self>, ListPage) {
        (list.scenarios, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.title.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: path::share(&self.short),
            url: path::scenario(&self.id),
            restore: path::scenario_restore(&self.id),
        }
    }

    fn undo(&self) -> Option<Undo> {
        let is_there = self.deleted_at.is_none();
        self.source.filter(|_| is_there).map(|SavedSource::Link| Undo {
            reason: "saved by a copied link",
            hint: "Removes the scenario from the list. Its links work until the draft expires.",
            url: path::keep(&self.id),
        })
    }

    fn cells(&self) -> Vec<AnyView> {
        let (planner, time) = self.best.clone().map(|best| (best.planner, format::seconds(best.iteration_s))).unzip();
        vec![
            time.into_any(),
            self.model.clone().into_any(),
            view! { <span class="nowrap">{format::cluster(&self.cluster)}</span> }.into_any(),
            planner.into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }
}

#[component]
pub(crate) fn ScenariosPage() -> impl IntoView {
    document().set_title("Scenarios · Planscope");
    let collection = Collection::<ScenarioLine>::new();
    view! {
        <main id="main" class="page" tabindex="-1">
            <div class="page-title">
                <h1>"Scenarios"</h1>
                <span class="grow"></span>
                <a class="button" href="/plans">"Plans of all scenarios"</a>
                <a class="button primary" href="/new">"New scenario"</a>
            </div>
            <OpenedLast heading="Opened last in this browser" />
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <p>"No scenario is saved yet. Open one and press Save, or copy its link."</p>
        <p><a class="button" href="/">"Ready scenarios"</a>" "<a class="button" href="/new">"New scenario"</a></p>
    }
}
