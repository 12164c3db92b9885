//! Sweeps page: stored sweeps and their progress.

use api::listing::ListPage;
use api::path;
use api::sweep::{SweepLine, SweepList};
use leptos::prelude::*;

use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, StoredItem};
use crate::runs::size;
use crate::sweeps::page;

impl StoredItem for SweepLine {
    type List = SweepList;
    const KIND: &'static str = "sweeps";
    const NOUN: (&'static str, &'static str) = ("sweep", "sweeps");
    const URL: &'static str = path::SWEEPS;
    const SEARCHED: &'static str = "Search names, axes, notes, tags";
    const COLUMNS: &'static [Column] = &[
        Column::text("Axes", None),
        Column::number("Points", Some("points")),
        Column::number("Planned", None),
        Column::number("Size", None),
        Column::text("Stored, UTC", Some("created")),
    ];

    fn unpack(list: SweepList) -> (Vec<Self>, ListPage) {
        (list.sweeps, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.title.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: page(&self.id),
            url: path::sweep(&self.id),
            restore: path::sweep_restore(&self.id),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        vec![
            view! {
                {self.axes.clone()}
                {self.failure.clone().map(|reason| view! { <p class="field-error">{format!("Given up: {reason}")}</p> })}
            }
            .into_any(),
            format::count(u64::from(self.points)).into_any(),
            format::count(u64::from(self.done)).into_any(),
            size(self.bytes).into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }
}

#[component]
pub(crate) fn SweepsPage() -> impl IntoView {
    document().set_title("Sweeps · Planscope");
    let collection = Collection::<SweepLine>::new();
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Sweeps"</h1>
            <p class="lead">
                "A sweep plans one scenario for every combination of several field values. Results are shown as a map, as lines and as time against memory."
            </p>
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <p>"No sweep yet. Open a scenario and use the card \u{201c}Scaling\u{201d} below its plans."</p>
        <p><a class="button" href="/">"Ready scenarios"</a></p>
    }
}
