//! State machine that opens a stored scenario, a new scenario or the scenario of a self-contained
//! link.
//!
//! The machine has no side effects. [`super::open`] executes its effects and reports their results.

use api::job::StoredOutcome;
use api::scenario::{ScenarioIdentity, StoredScenario};
use serde_json::Value;

use super::creation::Start;
use crate::client::RequestError;

/// Event of the user.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Command {
    /// Opens a stored scenario by identifier or prefix.
    Open {
        name: String,
        /// True if this scenario and its outcome are shown.
        is_shown: bool,
        /// True if the followed link describes a view.
        has_view: bool,
    },
    /// Creates a scenario.
    Create(Start),
    /// Shows the scenario of a self-contained link.
    OpenContained(Value),
    /// The user edits the open scenario.
    Edit,
}

/// Result of an effect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Response {
    Fetched(Result<Box<StoredScenario>, RequestError>),
    /// Stored outcome of the scenario, or `None` if it is not planned.
    OutcomeFetched(Result<Option<Box<StoredOutcome>>, RequestError>),
    Created(Result<Value, RequestError>),
    Identified(Result<ScenarioIdentity, RequestError>),
}

/// Action that the page executes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Effect {
    /// Reads the view from the link.
    ReadView,
    /// Writes the address after the router has changed it.
    WriteAddress,
    /// Clears the page and starts a planning request in the phase "opening".
    Clear,
    FetchScenario {
        name: String,
    },
    /// Fetches the stored outcome. The name is the one in the link, so that the request matches the
    /// prefetched response of `start.js`.
    FetchOutcome {
        name: String,
    },
    CreateScenario(Start),
    /// Asks the server whether it has an outcome of this scenario.
    Identify(Value),
    /// Adds the scenario to the recent scenarios.
    Remember(Box<StoredScenario>),
    /// Removes a deleted or unknown scenario from the recent scenarios.
    Forget {
        name: String,
    },
    /// Shows an outcome after its timelines are loaded.
    ShowOutcome(Box<StoredOutcome>),
    /// Fills the editor with a stored scenario.
    ShowStored(Box<StoredScenario>),
    /// Fills the editor with a new scenario and plans it.
    ShowCreated(Value),
    /// Fills the editor with the scenario of a link and does not plan it.
    ShowContained(Value),
    /// Plans a stored scenario without an outcome.
    Plan {
        scenario: String,
    },
    Fail(RequestError),
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Empty,
    /// Fetches a stored scenario. `is_contained` is true if its self-contained link is shown.
    Fetching {
        name: String,
        is_contained: bool,
    },
    /// Fetches the outcome of a stored scenario.
    FetchingOutcome {
        stored: Box<StoredScenario>,
    },
    /// Creates a new scenario.
    Creating,
    /// Shows the scenario of a self-contained link, and asks the server for its outcome.
    Identifying,
    Open,
}

/// The open scenario.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    number: u64,
    /// Identifier or prefix of the opened scenario; empty for new scenarios.
    name: String,
    state: State,
}

impl Default for Document {
    fn default() -> Self {
        Self { number: 0, name: String::new(), state: State::Empty }
    }
}

impl Document {
    /// Number of the current command. Effects report it with their result.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Returns true if a link refers to the open scenario or to the scenario that is loading.
    /// `stored` is the identifier of the scenario in the editor.
    pub(super) fn is_same(&self, stored: Option<&str>, link: &str) -> bool {
        stored.map_or(self.name == link, |id| id.starts_with(link))
    }

    /// Handles an event of the user.
    pub(super) fn command(&mut self, command: Command) -> Vec<Effect> {
        let (name, state, effects) = match command {
            Command::Open { is_shown: true, has_view, .. } => {
                let view = has_view.then_some(Effect::ReadView);
                return view.into_iter().chain([Effect::WriteAddress]).collect();
            }
            Command::Edit => (std::mem::take(&mut self.name), State::Open, Vec::new()),
            Command::Open { name, .. } => {
                let state = State::Fetching { name: name.clone(), is_contained: false };
                (name.clone(), state, vec![Effect::Clear, Effect::FetchScenario { name }])
            }
            Command::Create(start) => {
                (String::new(), State::Creating, vec![Effect::Clear, Effect::CreateScenario(start)])
            }
            Command::OpenContained(scenario) => {
                let effects = vec![Effect::Clear, Effect::ShowContained(scenario.clone()), Effect::Identify(scenario)];
                (String::new(), State::Identifying, effects)
            }
        };
        self.number += 1;
        self.name = name;
        self.state = state;
        effects
    }

    /// Handles the result of an effect of command `number`.
    pub(super) fn respond(&mut self, number: u64, response: Response) -> Vec<Effect> {
        if number != self.number {
            return Vec::new();
        }
        let (state, effects) = match (std::mem::replace(&mut self.state, State::Empty), response) {
            (State::Fetching { name, is_contained: _ }, Response::Fetched(Ok(stored))) => {
                let effects = vec![Effect::Remember(stored.clone()), Effect::FetchOutcome { name }];
                (State::FetchingOutcome { stored }, effects)
            }
            // The scenario of the link stays in the editor.
            (State::Fetching { is_contained: true, .. }, Response::Fetched(Err(_))) => (State::Open, Vec::new()),
            (State::Fetching { name, .. }, Response::Fetched(Err(error))) => {
                let is_gone = matches!(error.status(), Some(404 | 410));
                let forget = is_gone.then_some(Effect::Forget { name });
                (State::Empty, forget.into_iter().chain([Effect::Fail(error)]).collect())
            }
            (State::FetchingOutcome { stored }, Response::OutcomeFetched(result)) => {
                let effects = match result {
                    // The timelines load while the editor is filled.
                    Ok(Some(outcome)) => vec![Effect::ShowOutcome(outcome), Effect::ShowStored(stored)],
                    Ok(None) => {
                        let scenario = stored.id.clone();
                        vec![Effect::ShowStored(stored), Effect::Plan { scenario }]
                    }
                    Err(error) => vec![Effect::ShowStored(stored), Effect::Fail(error)],
                };
                (State::Open, effects)
            }
            (State::Creating, Response::Created(Ok(scenario))) => (State::Open, vec![Effect::ShowCreated(scenario)]),
            (State::Creating, Response::Created(Err(error))) => (State::Empty, vec![Effect::Fail(error)]),
            // Invalid scenarios and scenarios without an outcome stay unplanned.
            (State::Identifying, Response::Identified(Ok(known))) if known.planned => {
                let state = State::Fetching { name: known.id.clone(), is_contained: true };
                (state, vec![Effect::FetchScenario { name: known.id }])
            }
            (State::Identifying, Response::Identified(_)) => (State::Open, Vec::new()),
            (state, _) => (state, Vec::new()),
        };
        self.state = state;
        effects
    }
}

#[cfg(test)]
mod tests;
