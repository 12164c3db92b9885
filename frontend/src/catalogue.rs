//! Options for pickers: presets and uploaded datasets. Pages fetch them once on first use and share
//! them.

use std::sync::Arc;

use api::dataset::{DatasetList, DatasetSummary};
use api::gallery::Presets;
use api::listing::ListQuery;
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, RequestError};

/// Presets and datasets for pickers.
#[derive(Clone, Copy)]
pub(crate) struct Catalogue {
    pub(crate) presets: RwSignal<Option<Arc<Presets>>>,
    /// Datasets, sorted from newest to oldest.
    pub(crate) datasets: RwSignal<Option<Vec<DatasetSummary>>>,
    /// Last fetch error.
    pub(crate) last_error: RwSignal<Option<RequestError>>,
    /// True after the first fetch starts.
    is_requested: StoredValue<bool>,
}

impl Catalogue {
    /// Creates an empty catalogue. The first page that uses it starts the fetch.
    pub(crate) fn new() -> Self {
        Self {
            presets: RwSignal::new(None),
            datasets: RwSignal::new(None),
            last_error: RwSignal::new(None),
            is_requested: StoredValue::new(false),
        }
    }

    pub(crate) fn fetch(self) {
        self.last_error.set(None);
        spawn_local(async move {
            match client::get::<Presets>(path::PRESETS).await {
                Ok(presets) => self.presets.set(Some(Arc::new(presets))),
                Err(error) => self.last_error.set(Some(error)),
            }
        });
        self.fetch_datasets();
    }

    pub(crate) fn fetch_datasets(self) {
        spawn_local(async move {
            match all_datasets().await {
                Ok(datasets) => self.datasets.set(Some(datasets)),
                Err(request_error) => self.last_error.set(Some(request_error)),
            }
        });
    }

    /// Inserts a new dataset at the front.
    pub(crate) fn add(self, dataset: DatasetSummary) {
        self.datasets.update(|datasets| {
            let datasets = datasets.get_or_insert_default();
            datasets.retain(|known| known.id != dataset.id);
            datasets.insert(0, dataset);
        });
    }
}

/// Fetches all pages of the dataset list, up to 1,000 datasets.
async fn all_datasets() -> Result<Vec<DatasetSummary>, RequestError> {
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

/// Returns the shared catalogue and fetches it on first use.
pub(crate) fn use_catalogue() -> Catalogue {
    let catalogue: Catalogue = expect_context();
    if !catalogue.is_requested.get_value() {
        catalogue.is_requested.set_value(true);
        catalogue.fetch();
    }
    catalogue
}
