//! Opens stored, new and contained scenarios: executes the effects of [`super::document`].

use api::path;
use api::scenario::{ScenarioIdentity, StoredScenario};
use leptos::prelude::*;
use leptos::task::spawn_local;
use serde_json::Value;

use super::creation::{self, Start};
use super::document::{Command, Effect, Response};
use super::{Explore, request, timelines};
use crate::client::{self, Body};
use crate::field_errors::FieldErrors;
use crate::undo::History;
use crate::{outcome_fetch, recent, storage};

impl Explore {
    /// Opens a stored scenario by identifier or prefix.
    pub(crate) fn open(self, id: String) {
        let is_open = self.stored.with_untracked(|stored| stored.as_ref().is_some_and(|it| it.id.starts_with(&id)));
        let is_shown = is_open && self.result.with_untracked(Option::is_some);
        let has_view = self.arrived.with_value(|link| link.as_ref().is_some_and(|link| link.len() > 1));
        self.document_command(Command::Open { name: id, is_shown, has_view });
    }

    /// Opens the scenario in the address bar after a history navigation, unless it is already open.
    ///
    /// The router may have the same location already, because pages write addresses without the
    /// router.
    pub(crate) fn open_stepped(self) {
        let location = window().location();
        let (Ok(page), links) = (location.pathname(), path::share("")) else { return };
        let Some(id) = page.strip_prefix(&links).filter(|id| !id.is_empty()) else { return };
        let is_here = self.stored.with_untracked(|stored| {
            let stored_id = stored.as_ref().map(|stored| stored.id.as_str());
            self.document.with_value(|document| document.is_same(stored_id, id))
        });
        if !is_here {
            self.arrived.set_value(Some(location.hash().unwrap_or_default()));
            self.open(id.to_owned());
        }
    }

    /// Creates a scenario.
    pub(crate) fn start(self, start: Start) {
        self.document_command(Command::Create(start));
    }

    /// Opens a scenario from a self-contained link. If the server has an outcome, the page shows
    /// it. Otherwise the scenario is stored on planning.
    ///
    /// `fragment` is the link's fragment without the `#`.
    pub(crate) fn start_unsaved(self, scenario: Value, fragment: String) {
        self.document_command(Command::OpenContained(scenario));
        self.unsaved.set(Some(fragment));
    }

    /// Imports a scenario from a file as one edit and plans it.
    pub(crate) fn import(self, scenario: Value) {
        self.edit("", |present| *present = scenario);
    }

    /// Deletes the draft and starts from the default gallery scenario.
    pub(crate) fn start_afresh(self) {
        storage::forget(storage::DRAFT);
        self.start(Start::Draft);
    }

    pub(super) fn document_command(self, command: Command) {
        let effects = self.document.try_update_value(|document| document.command(command)).unwrap_or_default();
        self.execute_document(effects);
    }

    fn document_respond(self, number: u64, response: Response) {
        let effects = self.document.try_update_value(|document| document.respond(number, response));
        self.execute_document(effects.unwrap_or_default());
    }

    fn execute_document(self, effects: Vec<Effect>) {
        let number = self.document.with_value(super::document::Document::number);
        for effect in effects {
            self.execute_document_effect(number, effect);
        }
    }

    fn execute_document_effect(self, number: u64, effect: Effect) {
        match effect {
            Effect::ReadView => self.read_address(),
            // The write is delayed, because the address bar may still contain the previous page.
            Effect::WriteAddress => self.write_address_soon(),
            Effect::Clear => self.clear(),
            Effect::FetchScenario { name } => spawn_local(async move {
                let result = client::get::<StoredScenario>(&path::scenario(&name)).await;
                self.document_respond(number, Response::Fetched(result.map(Box::new)));
            }),
            Effect::FetchOutcome { name } => spawn_local(async move {
                let result = outcome_fetch::stored(&name).await;
                self.document_respond(number, Response::OutcomeFetched(result.map(|outcome| outcome.map(Box::new))));
            }),
            Effect::CreateScenario(start) => spawn_local(async move {
                let result = creation::create(start).await;
                self.document_respond(number, Response::Created(result));
            }),
            Effect::Identify(scenario) => spawn_local(async move {
                let (url, body) = (path::SCENARIO_IDENTITY, Body::Json(scenario.to_string()));
                let result = client::send::<ScenarioIdentity>("POST", url, body).await;
                self.document_respond(number, Response::Identified(result));
            }),
            Effect::Remember(stored) => recent::remember(&stored),
            Effect::Forget { name } => recent::forget(&name),
            Effect::ShowOutcome(outcome) => self.show((*outcome).into()),
            Effect::ShowStored(stored) => {
                self.scenario.set(serde_json::to_value(&stored.scenario).unwrap_or(Value::Null));
                self.unsaved.set(None);
                self.stored.set(Some(*stored));
                self.write_address();
            }
            Effect::ShowCreated(scenario) => {
                self.scenario.set(scenario);
                self.plan_respond(self.request_number(), request::Response::ScenarioCreated);
            }
            Effect::ShowContained(scenario) => {
                self.scenario.set(scenario);
                self.plan_respond(self.request_number(), request::Response::ContainedShown);
            }
            Effect::Plan { scenario } => {
                self.plan_respond(self.request_number(), request::Response::OutcomeMissing { scenario });
            }
            Effect::Fail(error) => self.plan_respond(self.request_number(), request::Response::Failed(error)),
        }
    }

    fn clear(self) {
        self.cancel_preview();
        self.history.set_value(History::default());
        self.undoable.set((false, false));
        self.errors.set(FieldErrors::default());
        self.unreadable.set(FieldErrors::default());
        self.unsaved.set(None);
        self.scenario.set(Value::Null);
        self.stored.set(None);
        self.result.set(None);
        self.is_preview.set(false);
        self.set_displayed(timelines::DisplayedIteration::default());
        self.selection.set(None);
        self.hover.set(None);
        self.read_address();
        self.plan_command(request::Command::Open);
    }
}
