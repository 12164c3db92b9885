//! The page of datasets: upload, look, use, delete.

use api::dataset::{DatasetSummary, Uploaded};
use api::path;
use api::planner::outcome::HistogramColumns;
use leptos::prelude::*;

use crate::catalogue::use_catalogue;
use crate::charts::Histogram;
use crate::deletion::{DeletionToasts, Deletions};
use crate::format;
use crate::notice::FailureNotice;
use crate::upload::{ImportReportView, Upload};

/// Datasets.
#[component]
pub(crate) fn DatasetsPage() -> impl IntoView {
    document().set_title("Datasets · Planscope");
    let catalogue = use_catalogue();
    let deletions = Deletions::new();
    let report = RwSignal::new(None);
    catalogue.fetch_datasets();
    let gone = Callback::new(move |id: String| {
        catalogue.datasets.update(|datasets| {
            if let Some(datasets) = datasets {
                datasets.retain(|dataset| dataset.id != id);
            }
        });
    });
    let uploaded = move |uploaded: Uploaded| {
        report.set(Some(uploaded.report));
        catalogue.add(uploaded.dataset);
    };
    let list = move || match (catalogue.datasets.get(), catalogue.failure.get()) {
        (None, Some(failure)) => {
            view! { <FailureNotice failure=failure on_retry=move |()| catalogue.fetch() /> }.into_any()
        }
        (None, None) => view! { <div class="skeleton card-skeleton" aria-hidden="true"></div> }.into_any(),
        (Some(datasets), _) if datasets.is_empty() => {
            view! { <p class="empty">"No dataset yet. Lengths of your own samples make the plans of your own job."</p> }
                .into_any()
        }
        (Some(datasets), _) => {
            let shown = datasets.into_iter().filter(|dataset| !deletions.is_waiting(&dataset.id));
            let cards = shown.map(|dataset| view! { <DatasetCard dataset=dataset deletions=deletions gone=gone /> });
            view! { <div class="datasets">{cards.collect_view()}</div> }.into_any()
        }
    };
    view! {
        <main id="main" class="page" tabindex="-1">
            <h1>"Datasets"</h1>
            <p class="lead">"Token lengths of real samples, one per row, or a histogram of them. Nothing leaves this server."</p>
            <Upload compact=false on_uploaded=uploaded />
            {move || report.get().map(|report| view! { <ImportReportView report=report /> })}
            {list}
            <DeletionToasts deletions=deletions />
        </main>
    }
}

#[component]
fn DatasetCard(dataset: DatasetSummary, deletions: Deletions, gone: Callback<String>) -> impl IntoView {
    let DatasetSummary { id, name, samples, text_tokens, images, created_at } = dataset;
    let facts = |columns: &HistogramColumns, unit: &str| {
        format!(
            "{unit}: mean {}, median {}, 99 % under {}, most {}",
            format::three_digits(columns.mean),
            format::three_digits(columns.median),
            format::three_digits(columns.p99),
            format::three_digits(columns.max),
        )
    };
    let image_facts = images.as_ref().map(|images| facts(images, "Images"));
    let tokens = Signal::stored(Some(text_tokens));
    let label = format!("Delete {name}");
    let (key, shown) = (id.clone(), name.clone());
    view! {
        <section class="card dataset" data-dataset=id.clone()>
            <header class="card-title">
                <h2>{name}</h2>
                <span class="muted">{format!("{} samples · {} UTC", format::count(samples), format::moment(&created_at))}</span>
            </header>
            <Histogram data=tokens unit="tokens" />
            {image_facts.map(|facts| view! { <p class="hint">{facts}</p> })}
            <p class="actions">
                <a class="button" href=format!("/new?dataset={id}")>"Use in a new scenario"</a>
                <button
                    class="quiet"
                    aria-label=label
                    on:click=move |_| deletions.delete(key.clone(), shown.clone(), path::dataset(&key), gone)
                >
                    "Delete"
                </button>
            </p>
        </section>
    }
}
