//! What pickers offer: presets and uploaded datasets, fetched once and shared by all pages.

use std::sync::Arc;

use api::dataset::{DatasetList, DatasetSummary};
use api::gallery::Presets;
use api::path;
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
}

impl Catalogue {
    /// Starts to fetch everything.
    pub(crate) fn new() -> Self {
        let catalogue =
            Self { presets: RwSignal::new(None), datasets: RwSignal::new(None), failure: RwSignal::new(None) };
        catalogue.fetch();
        catalogue
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
            match client::get::<DatasetList>(path::DATASETS).await {
                Ok(list) => self.datasets.set(Some(list.datasets)),
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

/// What pickers offer.
pub(crate) fn use_catalogue() -> Catalogue {
    expect_context()
}
