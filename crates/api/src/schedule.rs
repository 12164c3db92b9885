//! Schedule kinds for pickers. Request and response types for schedule comparisons are in
//! [`crate::planner::schedule_comparison`].

use crate::planner::schedule::{ChunksRule, ScheduleKind};
use serde::{Deserialize, Serialize};

/// All schedule kinds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleKinds {
    /// Kinds in display order.
    pub kinds: Vec<ScheduleOption>,
}

/// A schedule kind and its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleOption {
    /// Identifier.
    pub id: ScheduleKind,
    /// Display name.
    pub title: String,
    /// Publication.
    pub source: String,
    /// Default number of model chunks per rank.
    pub chunks: u32,
    /// Properties.
    pub traits: Vec<ScheduleTrait>,
    /// Bubble formula for equal times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bubble: Option<String>,
    /// Memory formula, in stage activations on the rank with the highest peak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Conditions for both formulas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<String>,
}

/// A property or option of a schedule kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleTrait {
    /// The number of chunks can be set.
    AnyChunks,
    /// Microbatches pass through the chunks in groups.
    Groups,
    /// Weight gradients are separate actions.
    SplitBackward,
    /// Forwards and backwards overlap.
    Overlaps,
    /// The schedule depends on times and memory limit. Other kinds have a fixed order per shape.
    MadeToMeasure,
}

impl ScheduleKinds {
    /// Returns all kinds.
    pub fn all() -> Self {
        Self { kinds: ScheduleKind::ALL.into_iter().map(ScheduleOption::from_kind).collect() }
    }
}

impl ScheduleOption {
    fn from_kind(kind: ScheduleKind) -> Self {
        let form = kind.closed_form();
        let traits = [
            (matches!(kind.chunks_rule(), ChunksRule::Any { .. }), ScheduleTrait::AnyChunks),
            (kind.has_groups(), ScheduleTrait::Groups),
            (kind.splits_backward(), ScheduleTrait::SplitBackward),
            (kind.overlaps(), ScheduleTrait::Overlaps),
            (kind.is_cost_dependent(), ScheduleTrait::MadeToMeasure),
        ];
        Self {
            id: kind,
            title: kind.title().to_owned(),
            source: kind.source().to_owned(),
            chunks: kind.chunks(None) as u32,
            traits: traits.into_iter().filter_map(|(is_so, item)| is_so.then_some(item)).collect(),
            bubble: form.map(|form| form.bubble.to_owned()),
            memory: form.map(|form| form.memory.to_owned()),
            conditions: form.map(|form| form.conditions.to_owned()),
        }
    }
}
