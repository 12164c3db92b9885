//! One global batch under a strategy, and the strategy that ends first (Hydraulis, sections 4 and 6).

use super::dispatch::{Dispatch, DispatchError, DispatchSettings, dispatch};
use super::packing::{Packing, PackingSettings, pack};
use super::scheme::SchemeCost;

/// A global batch dealt to pipelines and packed in each.
#[derive(Debug, Clone, PartialEq)]
pub struct Assignment {
    /// Who trains what.
    pub dispatch: Dispatch,
    /// Of every pipeline its microbatches, with places in the global batch; none for a pipeline without sequences.
    pub packings: Vec<Option<Packing>>,
    /// When the slowest pipeline is done, by Eq. 1.
    pub seconds: f64,
}

impl Assignment {
    /// Seconds of every pipeline, 0 for one without sequences.
    pub fn pipeline_seconds(&self) -> impl Iterator<Item = f64> + '_ {
        self.packings.iter().map(|packing| packing.as_ref().map_or(0.0, |packing| packing.seconds))
    }
}

/// Deals and packs: both stages of the assignment.
pub fn assign(
    lengths: &[u64],
    pipelines: &[SchemeCost],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Result<Assignment, DispatchError> {
    let dispatch = dispatch(lengths, pipelines, dispatching)?;
    let packed = dispatch.pipelines.iter().zip(pipelines).map(|(places, scheme)| {
        let own: Vec<u64> = places.iter().map(|&place| lengths[place as usize]).collect();
        // The dispatch saw to it that everything is legal; what is left is a pipeline without sequences.
        let mut packed = pack(&own, scheme, packing).ok()?;
        for place in packed.microbatches.iter_mut().flatten() {
            *place = places[*place as usize];
        }
        Some(packed)
    });
    let packings: Vec<Option<Packing>> = packed.collect();
    let seconds = packings.iter().flatten().map(|packing| packing.seconds).fold(0.0, f64::max);
    Ok(Assignment { dispatch, packings, seconds })
}

/// The strategy chosen for a global batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Its place among the candidates.
    pub strategy: u32,
    /// What it does.
    pub assignment: Assignment,
    /// Of every candidate its seconds, or why it cannot take the batch.
    pub candidates: Vec<Result<f64, DispatchError>>,
}

/// Assigns a batch under every candidate and takes the one that ends first, the first of equals; none where none can take
/// the batch.
pub fn choose(
    lengths: &[u64],
    strategies: &[Vec<SchemeCost>],
    dispatching: DispatchSettings,
    packing: PackingSettings,
) -> Option<Choice> {
    let mut best: Option<(u32, Assignment)> = None;
    let mut candidates = Vec::with_capacity(strategies.len());
    for (place, pipelines) in strategies.iter().enumerate() {
        let assigned = assign(lengths, pipelines, dispatching, packing);
        candidates.push(assigned.as_ref().map(|assignment| assignment.seconds).map_err(Clone::clone));
        if let Ok(assignment) = assigned
            && best.as_ref().is_none_or(|(_, best)| assignment.seconds < best.seconds)
        {
            best = Some((place as u32, assignment));
        }
    }
    best.map(|(strategy, assignment)| Choice { strategy, assignment, candidates })
}
