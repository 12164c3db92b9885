//! Datasets page: upload, preview, search, mix, use and delete datasets.

mod mixture;

use api::dataset::{DatasetList, DatasetSummary, ImportReport, Uploaded};
use api::listing::ListPage;
use api::path;
use api::planner::outcome::HistogramColumns;
use leptos::prelude::*;

use crate::catalogue::use_catalogue;
use crate::charts::Histogram;
use crate::format;
use crate::listing::{About, Collection, CollectionView, Column, StoredItem};
use crate::runs::size;
use crate::upload::{ImportReportView, Upload};
use mixture::MixPanel;

impl StoredItem for DatasetSummary {
    type List = DatasetList;
    const KIND: &'static str = "datasets";
    const NOUN: (&'static str, &'static str) = ("dataset", "datasets");
    const URL: &'static str = path::DATASETS;
    const SEARCHED: &'static str = "Search names, notes, tags";
    const COLUMNS: &'static [Column] = &[
        Column::number("Samples", Some("samples")),
        Column::text("Tokens", None),
        Column::text("Images", None),
        Column::number("Size", Some("size")),
        Column::text("Stored, UTC", Some("created")),
    ];

    fn unpack(list: DatasetList) -> (Vec<Self>, ListPage) {
        (list.datasets, list.page)
    }

    fn about(&self) -> About {
        About {
            id: self.id.clone(),
            name: self.name.clone(),
            note: self.note.clone(),
            tags: self.tags.clone(),
            pinned: self.pinned,
            deleted: self.deleted_at.is_some(),
            href: format!("/new?dataset={}", self.id),
            url: path::dataset(&self.id),
            restore: path::dataset_restore(&self.id),
        }
    }

    fn cells(&self) -> Vec<AnyView> {
        let chart = |columns: &HistogramColumns, prefix: String, unit: &'static str| {
            view! { <Lengths columns=columns.clone() name=self.name.clone() prefix=prefix unit=unit /> }.into_any()
        };
        let text = |label: String, unit: &'static str| {
            let (columns, name, report) = (self.text_tokens.clone(), self.name.clone(), self.report.clone());
            view! { <Lengths columns=columns name=name prefix=label unit=unit report=report /> }.into_any()
        };
        let (tokens, images) = match (&self.shaped, &self.images) {
            (Some(shaped), Some(items)) => (
                vec![
                    text("text: ".to_owned(), "tokens of text"),
                    chart(&shaped.backbone_tokens, "backbone: ".to_owned(), "backbone tokens"),
                ]
                .into_any(),
                chart(items, format!("{}: ", shaped.preprocessing.title()), "encoder items"),
            ),
            (_, images) => {
                (text(String::new(), "tokens"), images.as_ref().map_or_else(|| "–".to_owned(), facts).into_any())
            }
        };
        vec![
            format::count(self.samples).into_any(),
            tokens,
            images,
            size(self.bytes).into_any(),
            view! { <span class="muted">{format::moment(&self.created_at)}</span> }.into_any(),
        ]
    }
}

/// Describes a length distribution in one line.
fn facts(columns: &HistogramColumns) -> String {
    format!(
        "mean {}, median {}, p99 {}, max {}",
        format::length(columns.mean),
        format::length(columns.median),
        format::length(columns.p99),
        format::length(columns.max),
    )
}

/// A length distribution in one line. The expanded view shows the chart and the import report.
#[component]
fn Lengths(
    columns: HistogramColumns,
    name: String,
    prefix: String,
    unit: &'static str,
    #[prop(optional_no_strip)] report: Option<ImportReport>,
) -> impl IntoView {
    let text = format!("{prefix}{}", facts(&columns));
    let open = RwSignal::new(false);
    let data = Signal::stored(Some(columns));
    view! {
        <details class="tokens" on:toggle=move |_| open.set(true)>
            <summary>{text}<span class="visually-hidden">{format!(" of {name}")}</span></summary>
            <Show when=move || open.get()>
                <Histogram data=data unit=unit />
                {report.clone().map(|report| view! { <ImportReportView report=report /> })}
            </Show>
        </details>
    }
}

#[component]
pub(crate) fn DatasetsPage() -> impl IntoView {
    document().set_title("Datasets · Planscope");
    let catalogue = use_catalogue();
    let collection = Collection::<DatasetSummary>::new();
    let stored = RwSignal::new(None::<Uploaded>);
    let uploaded = move |uploaded: Uploaded| {
        catalogue.add(uploaded.dataset.clone());
        stored.set(Some(uploaded));
        collection.reload();
    };
    // Refresh the catalogue so that pickers show current names and no deleted datasets.
    Effect::new(move |before: Option<()>| {
        collection.known.track();
        if before.is_some() {
            catalogue.fetch_datasets();
        }
    });
    let deletions = collection.deletions;
    // A deleted dataset cannot be opened.
    Effect::new(move |_| {
        let is_deleted =
            stored.with(|stored| stored.as_ref().is_some_and(|uploaded| deletions.is_waiting(&uploaded.dataset.id)));
        if is_deleted {
            stored.set(None);
        }
    });
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Datasets"</h1>
            <p class="lead">"Token lengths of real samples, or a histogram of them. Texts and chats are measured in tokens. The preprocessing of a model converts sizes of images, frames of video and seconds of sound to encoder items and backbone tokens. Nothing leaves this server."</p>
            <Upload compact=false action="Store dataset" on_uploaded=uploaded on_begin=move |()| stored.set(None) />
            {move || stored.get().map(|uploaded| view! { <Stored uploaded=uploaded /> })}
            <MixPanel deletions=deletions />
            <CollectionView collection=collection empty=Empty />
        </main>
    }
}

/// Card for the last stored dataset.
#[component]
fn Stored(uploaded: Uploaded) -> impl IntoView {
    let Uploaded { dataset, report } = uploaded;
    view! {
        <div class="stored" data-testid="stored-dataset">
            <p>"Stored as "<b>{dataset.name}</b>". "<a href=format!("/new?dataset={}", dataset.id)>"Open a scenario with this dataset"</a></p>
            <ImportReportView report=report />
        </div>
    }
}

#[component]
fn Empty() -> impl IntoView {
    view! { <p>"No dataset yet. Drop a file above, for example the lengths of your own samples."</p> }
}
