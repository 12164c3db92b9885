//! What pickers offer: presets and uploaded datasets, fetched once, when a page first needs them, and shared by all pages.

use std::sync::Arc;

use api::dataset::{DatasetList, DatasetSummary};
use api::gallery::Presets;
use api::path;
use api::shelf::ListQuery;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};

/// What pickers offer.
#[derive(Clone, Copy)]
pub(crate) struct Catalogue {
    /// Presets, once they are there.
    pub(crate) presets: RwSignal<Option<Arc<Presets>>>,
    /// Datasets, newest first, once they are there.
    pub(crate) datasets: RwSignal<Option<Vec<DatasetSummary>>>,
    /// Why something is missing.
    pub(crate) failure: RwSignal<Option<Failure>>,
    /// Whether somebody has asked for it.
    asked: StoredValue<bool>,
}

impl Catalogue {
    /// An empty one; it is fetched for the first page that asks for it.
    pub(crate) fn new() -> Self {
        Self {
            presets: RwSignal::new(None),
            datasets: RwSignal::new(None),
            failure: RwSignal::new(None),
            asked: StoredValue::new(false),
        }
    }

    /// Fetches everything again.
    pub(crate) fn fetch(self) {
        self.failure.set(None);
        spawn_local(async move {
            match client::get::<Presets>(path::PRESETS).await {
                Ok(presets) => self.presets.set(Some(Arc::new(presets))),
                Err(failure) => self.failure.set(Some(failure)),
            }
        });
        self.fetch_datasets();
    }

    /// Fetches the datasets again.
    pub(crate) fn fetch_datasets(self) {
        spawn_local(async move {
            match all_datasets().await {
                Ok(datasets) => self.datasets.set(Some(datasets)),
                Err(failure) => self.failure.set(Some(failure)),
            }
        });
    }

    /// Puts a new dataset in front.
    pub(crate) fn add(self, dataset: DatasetSummary) {
        self.datasets.update(|datasets| {
            let datasets = datasets.get_or_insert_default();
            datasets.retain(|known| known.id != dataset.id);
            datasets.insert(0, dataset);
        });
    }
}

/// Datasets, page by page; pickers offer no more than a thousand.
async fn all_datasets() -> Result<Vec<DatasetSummary>, Failure> {
    let mut datasets = Vec::new();
    let mut after = None;
    for _ in 0..5 {
        let url = format!("{}{}", path::DATASETS, ListQuery { after, ..ListQuery::default() }.write(client::encode));
        let list = client::get::<DatasetList>(&url).await?;
        datasets.extend(list.datasets);
        after = list.page.next;
        if after.is_none() {
            break;
        }
    }
    Ok(datasets)
}

/// What pickers offer.
pub(crate) fn use_catalogue() -> Catalogue {
    let catalogue: Catalogue = expect_context();
    if !catalogue.asked.get_value() {
        catalogue.asked.set_value(true);
        catalogue.fetch();
    }
    catalogue
}
