//! Plans page: results from every planner for all stored scenarios, drafts included.

use api::listing::ListPage;
use api::path;
use api::planner::scenario::PlannerKind;
use api::scenario::{PlanLine, PlanList};
use leptos::prelude::*;

use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, ListFilter, StoredItem};
use crate::results::degrees;

impl StoredItem for PlanLine {
    type List = PlanList;
    const KIND: &'static str = "plans";
    const NOUN: (&'static str, &'static str) = ("plan", "plans");
    const URL: &'static str = path::PLANS;
    const SEARCHED: &'static str = "Search scenarios, models, clusters, engines";
    const CAN_BE_DELETED: bool = false;
    const COLUMNS: &'static [Column] = &[
        Column::number("Step time", Some("time")),
        Column::text("Planner", Some("planner")),
        Column::text("Model", None),
        Column::text("Cluster", None),
        Column::text("Engine", Some("engine")),
        Column::text("Planned, UTC", Some("created")),
    ];

    fn unpack(list: PlanList) -> (Vec<Self>, ListPage) {
        (list.plans, list.page)
    }

    fn about(&self) -> About {
        let view = self.planner.map(|planner| format!("#p={}", planner.id())).unwrap_or_default();
        About {
            id: self.id.clone(),
            name: self.title.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: false,
            href: format!("{}{view}", path::share(&self.short)),
            // Notes and tags belong to the scenario. A plan is deleted with its scenario.
            url: String::new(),
            restore: String::new(),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        let pill = self.planner.map(|planner| view! { <span class="pill" data-planner-colour=planner.id()></span> });
        let layout =
            self.layout.as_ref().map(|layout| view! { <span class="muted plan-layout">{degrees(layout)}</span> });
        vec![
            format::seconds(self.iteration_s).into_any(),
            view! {
                <span class="planner-cell">{pill}" "{self.planner_title.clone()}</span>
                {layout}
            }
            .into_any(),
            self.model.clone().into_any(),
            view! { <span class="nowrap">{format::cluster(&self.cluster)}</span> }.into_any(),
            view! { <span class="muted">{self.engine.clone()}</span> }.into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }

    fn filter() -> Option<ListFilter> {
        let options = PlannerKind::ALL.into_iter().map(|planner| (planner.id().to_owned(), planner.title().to_owned()));
        Some(ListFilter { key: "planner", label: "Planner", any: "any planner", options: options.collect() })
    }
}

#[component]
pub(crate) fn PlansPage() -> impl IntoView {
    document().set_title("Plans · Planscope");
    let collection = Collection::<PlanLine>::new();
    view! {
        <main id="main" class="page" tabindex="-1">
            <div class="page-title">
                <h1>"Plans"</h1>
                <span class="grow"></span>
                <a class="button" href="/scenarios">"Scenarios"</a>
            </div>
            <p class="lead">"The plans of all stored scenarios, with their planner, engine and date. Plans of drafts are listed until the drafts are deleted."</p>
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <p>"No plan yet. Open a ready scenario: its plans are then listed here."</p>
        <p><a class="button" href="/">"Ready scenarios"</a></p>
    }
}
