//! What the page starts with: a link, a ready scenario, a dataset, the draft, or the first of the gallery.

use api::gallery::Gallery;
use api::path;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::{Value, json};

use super::modalities::leave_out_unread;
use super::{Explore, PlanState};
use crate::answered;
use crate::client::{self, Failure};
use crate::field_errors::FieldErrors;
use crate::mixture::{WeightedDataset, of_datasets};
use crate::recent;
use crate::storage;
use crate::undo::History;

/// The ready scenario that a new one starts from.
const FIRST: &str = "llama-2-7b-long-documents";

/// What a new scenario starts from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Start {
    /// The draft, or where there is none, a ready scenario.
    Draft,
    /// A ready scenario.
    Ready(String),
    /// The draft on an uploaded dataset.
    Dataset(String),
    /// The draft on a mixture of uploaded datasets.
    Mixture(Vec<WeightedDataset>),
}

impl Explore {
    /// Opens a stored scenario by identifier or prefix.
    pub(crate) fn open(self, id: String) {
        let open = |stored: &StoredScenario| stored.id.starts_with(&id);
        if self.stored.with_untracked(|stored| stored.as_ref().is_some_and(open))
            && self.result.with_untracked(Option::is_some)
        {
            if self.arrived.with_value(|fragment| fragment.as_ref().is_some_and(|fragment| fragment.len() > 1)) {
                self.read_address();
            }
            // Soon, not now: the address bar may still hold the page that is being left.
            self.write_address_soon();
            return;
        }
        let generation = self.clear();
        self.named.set_value(id.clone());
        spawn_local(async move {
            let answer = client::get::<StoredScenario>(&path::scenario(&id)).await;
            if !self.is_current(generation) {
                return;
            }
            match answer {
                Ok(stored) => self.open_stored(generation, &id, stored).await,
                Err(failure) => {
                    if matches!(failure.status(), Some(404 | 410)) {
                        recent::forget(&id);
                    }
                    self.fail(failure);
                }
            }
        });
    }

    /// Opens what the address bar names after a step through the browser's history, unless it is open.
    ///
    /// The router may believe that it stands there already, for addresses are written without it.
    pub(crate) fn open_stepped(self) {
        let location = window().location();
        let (Ok(page), links) = (location.pathname(), path::share("")) else { return };
        let Some(id) = page.strip_prefix(&links).filter(|id| !id.is_empty()) else { return };
        let is_here = self.stored.with_untracked(|stored| {
            self.named.with_value(|named| stands_at(stored.as_ref().map(|stored| stored.id.as_str()), named, id))
        });
        if !is_here {
            self.arrived.set_value(Some(location.hash().unwrap_or_default()));
            self.open(id.to_owned());
        }
    }

    async fn open_stored(self, generation: u64, named: &str, stored: StoredScenario) {
        let id = stored.id.clone();
        recent::remember(&stored);
        // A stored outcome is shown as it is, by whichever engine; only without one is the scenario planned.
        // Both are asked for under the name in the link, as `start.js` has done already.
        let outcome = answered::stored(named).await;
        if !self.is_current(generation) {
            return;
        }
        // The editor is made while the timelines are on their way.
        let fill = move || {
            self.scenario.set(serde_json::to_value(&stored.scenario).unwrap_or(Value::Null));
            self.stored.set(Some(stored));
            self.write_address();
        };
        match outcome {
            Ok(Some(outcome)) => self.show_beside(generation, outcome, fill).await,
            Ok(None) => {
                fill();
                self.plan(generation, id).await;
            }
            Err(failure) => {
                fill();
                self.fail(failure);
            }
        }
    }

    /// Starts a scenario.
    pub(crate) fn start(self, start: Start) {
        let generation = self.clear();
        spawn_local(async move {
            let scenario = match &start {
                Start::Draft | Start::Dataset(_) | Start::Mixture(_) => match draft() {
                    Some(draft) => Ok(draft),
                    None => ready(FIRST).await.map(untitled),
                },
                Start::Ready(slug) => ready(slug).await,
            };
            if !self.is_current(generation) {
                return;
            }
            match scenario {
                Ok(mut scenario) => {
                    match start {
                        Start::Dataset(id) => {
                            use_dataset(&mut scenario, &id);
                            scenario = untitled(scenario);
                        }
                        Start::Mixture(parts) => {
                            crate::pointer::set(&mut scenario, "/workload/samples", of_datasets(&parts));
                            leave_out_unread(&mut scenario);
                            scenario = untitled(scenario);
                        }
                        Start::Draft | Start::Ready(_) => {}
                    }
                    self.scenario.set(scenario);
                    self.send(generation);
                }
                Err(failure) => self.fail(failure),
            }
        });
    }

    /// Shows a scenario that came with a link; it is stored when it is planned.
    ///
    /// `fragment` is that of the link, without its mark.
    pub(crate) fn start_unsaved(self, scenario: Value, fragment: String) {
        self.clear();
        self.scenario.set(scenario);
        self.unsaved.set(Some(fragment));
        self.state.set(PlanState::Idle);
    }

    /// Takes a scenario from a file, as one more edit, and plans it.
    pub(crate) fn import(self, scenario: Value) {
        self.edit("", |present| *present = scenario);
    }

    /// Throws the draft away and starts from a ready scenario.
    pub(crate) fn start_afresh(self) {
        storage::forget(storage::DRAFT);
        self.start(Start::Draft);
    }

    fn clear(self) -> u64 {
        self.abandon_job();
        self.abandon_what_if();
        self.history.set_value(History::default());
        self.undoable.set((false, false));
        self.errors.set(FieldErrors::default());
        self.unreadable.set(FieldErrors::default());
        self.unsaved.set(None);
        self.scenario.set(Value::Null);
        self.stored.set(None);
        self.named.set_value(String::new());
        self.result.set(None);
        self.tried.set(false);
        self.set_shown(super::Shown::default());
        self.selection.set(None);
        self.hover.set(None);
        self.read_address();
        self.state.set(PlanState::Opening);
        let generation = self.next_generation();
        self.opened.set_value(generation);
        generation
    }
}

/// Whether what is open, or on its way under the name of its link, is what a link names.
fn stands_at(stored: Option<&str>, opening: &str, link: &str) -> bool {
    stored.map_or(opening == link, |id| id.starts_with(link))
}

/// Names an uploaded dataset as the source of samples; its images are those of the file, if the model reads any.
pub(crate) fn use_dataset(scenario: &mut Value, id: &str) {
    crate::pointer::set(scenario, "/workload/samples", json!({"kind": "dataset", "id": id}));
    leave_out_unread(scenario);
}

fn draft() -> Option<Value> {
    let draft: Value = serde_json::from_str(&storage::read(storage::DRAFT)?).ok()?;
    // A draft of another format would only give errors that nobody can mend here.
    (draft["schema"] == api::planner::scenario::SCHEMA).then_some(draft)
}

fn untitled(mut scenario: Value) -> Value {
    crate::pointer::remove(&mut scenario, "/title");
    scenario
}

async fn ready(slug: &str) -> Result<Value, Failure> {
    let gallery = client::get::<Gallery>(path::GALLERY).await?;
    let entry = gallery.entries.iter().find(|entry| entry.slug == slug).or(gallery.entries.first());
    let entry = entry.ok_or_else(|| Failure::Unreadable("the gallery is empty".to_owned()))?;
    serde_json::to_value(&entry.scenario).map_err(|error| Failure::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_or_on_its_way_is_not_opened_again() {
        assert!(stands_at(Some("abcdefghijkl"), "", "abcdefghij"));
        assert!(!stands_at(Some("abcdefghijkl"), "zzzzzzzzzz", "zzzzzzzzzz"), "that was opened before an edit");
        assert!(stands_at(None, "abcdefghij", "abcdefghij"));
        assert!(!stands_at(None, "zzzzzzzzzz", "abcdefghij"));
    }

    #[test]
    fn a_dataset_brings_its_images_to_a_model_that_reads_them() {
        let images = json!({"kind": "uniform", "min": 0, "max": 32});
        let drawn = json!({"kind": "drawn", "text_tokens": {"kind": "constant", "value": 1}, "images": images});
        let mut scenario = json!({"model": {"modules": [{"role": "vision_encoder"}, {"role": "backbone"}]}, "workload": {"samples": drawn}});
        let mut text_only = json!({"model": {"modules": [{"role": "backbone"}]}, "workload": {"samples": drawn}});
        use_dataset(&mut scenario, "abc");
        use_dataset(&mut text_only, "abc");
        assert_eq!(scenario["workload"]["samples"], json!({"kind": "dataset", "id": "abc"}));
        let none = json!({"kind": "constant", "value": 0});
        assert_eq!(text_only["workload"]["samples"], json!({"kind": "dataset", "id": "abc", "images": none}));
    }
}
