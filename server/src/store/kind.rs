//! Kinds of objects that can be deleted and restored.

use std::fmt;

/// Kind of object. A deleted object can be restored before it is purged; a tombstone remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A scenario with outcomes.
    Scenario,
    /// A dataset.
    Dataset,
    /// A run with log and points.
    Run,
    /// A trace.
    Trace,
    /// A profile with files.
    Profile,
    /// A sweep with rows.
    Sweep,
}

impl Kind {
    /// Returns the display name.
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

    /// Returns the path that restores an object by POST.
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
