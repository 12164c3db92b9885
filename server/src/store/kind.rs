//! Kinds of things that people delete and bring back.

use std::fmt;

/// A kind of thing that leaves a word when it is deleted, and can come back until it is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A scenario, with its outcomes.
    Scenario,
    /// A dataset.
    Dataset,
    /// A run, with its log and its points.
    Run,
    /// A trace.
    Trace,
    /// A profile, with its files.
    Profile,
    /// A sweep, with its rows.
    Sweep,
}

impl Kind {
    /// What it is called to people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::Dataset => "dataset",
            Self::Run => "run",
            Self::Trace => "trace",
            Self::Profile => "profile",
            Self::Sweep => "sweep",
        }
    }

    /// The path that brings one back by POST.
    pub fn restore(self, id: &str) -> String {
        match self {
            Self::Scenario => api::path::scenario_restore(id),
            Self::Dataset => api::path::dataset_restore(id),
            Self::Run => api::path::run_restore(id),
            Self::Trace => api::path::trace_restore(id),
            Self::Profile => api::path::profile_restore(id),
            Self::Sweep => api::path::sweep_restore(id),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
