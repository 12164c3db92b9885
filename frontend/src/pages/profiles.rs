//! Profiles page: upload measurements, list fitted and calibrated profiles.

mod upload;

use api::listing::ListPage;
use api::path;
use api::profile::{ProfileList, ProfileSummary};
use leptos::prelude::*;

use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, StoredItem};
use crate::profiles::{page, residual_text, source_text};
use crate::runs::size;
use upload::UploadProfile;

impl StoredItem for ProfileSummary {
    type List = ProfileList;
    const KIND: &'static str = "profiles";
    const NOUN: (&'static str, &'static str) = ("profile", "profiles");
    const URL: &'static str = path::PROFILES;
    const SEARCHED: &'static str = "Search names, notes, tags, formats";
    const COLUMNS: &'static [Column] = &[
        Column::text("From", None),
        Column::number("Measurements read", Some("measurements")),
        Column::number("Mean error of the fit", Some("residual")),
        Column::number("Size", Some("size")),
        Column::text("Stored, UTC", Some("created")),
    ];

    fn unpack(list: ProfileList) -> (Vec<Self>, ListPage) {
        (list.profiles, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.name.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: page(&self.id),
            url: path::profile(&self.id),
            restore: path::profile_restore(&self.id),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        vec![
            source_text(&self.source).into_any(),
            format::count(self.measurements).into_any(),
            self.residual.map_or_else(|| "–".to_owned(), residual_text).into_any(),
            size(self.bytes).into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }
}

#[component]
pub(crate) fn ProfilesPage() -> impl IntoView {
    document().set_title("Profiles · Planscope");
    let collection = Collection::<ProfileSummary>::new();
    let changed = Callback::new(move |()| collection.reload());
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Profiles"</h1>
            <p class="lead">
                "Measurements of devices, links and runs, and the parameters fitted to them. A scenario shows the profile that it uses."
            </p>
            <UploadProfile changed=changed />
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! {
        <p>"No profile yet. Drop measured operators, collectives or tables of layers above, or calibrate a profile from a "<a href="/runs">"run"</a>" that is compared with a plan."</p>
    }
}
