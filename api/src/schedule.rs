//! The kinds of schedules that pickers offer. Question and answer of the bench are the planner's own types
//! ([`planner::schedule_comparison`]).

use planner::schedule::{ChunksRule, ScheduleKind};
use serde::{Deserialize, Serialize};

/// Every kind of schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleKinds {
    /// In the order in which pickers show them.
    pub kinds: Vec<ScheduleChoice>,
}

/// A kind of schedule, and what a question may say of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleChoice {
    /// Identifier.
    pub id: ScheduleKind,
    /// Shown name.
    pub title: String,
    /// Where it was published.
    pub source: String,
    /// Model chunks of a rank where the question says nothing.
    pub chunks: u32,
    /// What is particular about it.
    pub traits: Vec<ScheduleTrait>,
    /// Formula of the bubble with equal times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bubble: Option<String>,
    /// Formula of the memory, in activations of one stage on the fullest rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// When both hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<String>,
}

/// What a kind of schedule is or takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ScheduleTrait {
    /// The question may say another number of chunks.
    AnyChunks,
    /// Microbatches go through the chunks in groups.
    Groups,
    /// Gradients of weights are actions of their own.
    SplitBackward,
    /// Forwards and backwards run overlapped.
    Overlaps,
    /// It is made for the times and the memory cap; the others have one order for each shape.
    MadeToMeasure,
}

impl ScheduleKinds {
    /// Every kind.
    pub fn all() -> Self {
        Self { kinds: ScheduleKind::ALL.into_iter().map(ScheduleChoice::of).collect() }
    }
}

impl ScheduleChoice {
    fn of(kind: ScheduleKind) -> Self {
        let form = kind.closed_form();
        let traits = [
            (matches!(kind.chunks_rule(), ChunksRule::Any { .. }), ScheduleTrait::AnyChunks),
            (kind.has_groups(), ScheduleTrait::Groups),
            (kind.splits_backward(), ScheduleTrait::SplitBackward),
            (kind.overlaps(), ScheduleTrait::Overlaps),
            (kind.is_made_to_measure(), ScheduleTrait::MadeToMeasure),
        ];
        Self {
            id: kind,
            title: kind.title().to_owned(),
            source: kind.source().to_owned(),
            chunks: kind.chunks(None) as u32,
            traits: traits.into_iter().filter_map(|(is_so, of)| is_so.then_some(of)).collect(),
            bubble: form.map(|form| form.bubble.to_owned()),
            memory: form.map(|form| form.memory.to_owned()),
            conditions: form.map(|form| form.conditions.to_owned()),
        }
    }
}
