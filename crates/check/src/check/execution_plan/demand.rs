//! Requirements from a timeline: ordered stages with their inputs.

use std::collections::{BTreeMap, BTreeSet};

use super::ExecutionViolation;
use planscope_core::timeline::{SpanKind, Timeline};
use planscope_pipeline::execution_plan::{Ending, Payload, PlanAction, PlanActionKind};

/// Requirements for a timeline.
pub(in crate::check) struct Demand {
    /// Ordered computations per rank.
    pub lanes: Vec<Vec<Computation>>,
    /// Duration and part count per sent result.
    pub sends: BTreeMap<Product, Sending>,
    /// Rank, kind, start and duration of actions following the stages.
    endings: Vec<(u32, u8, u64, u64)>,
    /// Number of computations per meeting: ranks of a group start these together.
    pub meetings: Vec<usize>,
    /// True if a result with a send is available on its own rank when it is sent, as in the
    /// simulator. Otherwise it is available when it is computed.
    pub sends_before_use: bool,
    /// Send time in ns per result that no other rank receives: a colocated module regroups its
    /// tensors between the devices of the rank.
    pub local_sends: BTreeMap<Product, u64>,
}

pub(in crate::check) struct Computation {
    pub kind: PlanActionKind,
    pub product: Product,
    pub with_next: bool,
    pub start_ns: u64,
    pub duration_ns: u64,
    pub needs: Vec<Need>,
    /// Index into [`Demand::meetings`], if other ranks start together with this one.
    pub meeting: Option<usize>,
}

/// Result of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) struct Product {
    pub kind: ProductKind,
    pub stage: u32,
    pub microbatch: u32,
}

/// Kinds of results. A full backward produces both gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) enum ProductKind {
    Activation,
    InputGradient,
    WeightGradient,
}

/// Input of a computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::check) enum Need {
    /// Result from the same rank.
    Local(Product),
    /// Result from another rank.
    Sent(Letter),
}

/// A tensor transfer between two stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::check) struct Letter {
    pub from: usize,
    pub product: Product,
    pub to: usize,
    /// Consumer stage and microbatch.
    pub goal: (u32, u32),
}

/// Send of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::check) struct Sending {
    pub duration_ns: u64,
    /// Number of destination stages.
    pub parts: u64,
}

impl Letter {
    /// Returns the transfer launched or awaited by an action. `None` for a stage.
    pub(super) fn from_action(rank: usize, action: &PlanAction) -> Option<Self> {
        let transfer = action.transfer?;
        let product_kind = match transfer.payload {
            Payload::Activation => ProductKind::Activation,
            Payload::Gradient => ProductKind::InputGradient,
        };
        let (local, other) = ((action.stage, action.microbatch), (transfer.peer_stage, transfer.peer_microbatch));
        let ((from, source), (to, goal)) = match action.action {
            PlanActionKind::Isend | PlanActionKind::WaitIsend => ((rank, local), (transfer.peer as usize, other)),
            _ => ((transfer.peer as usize, other), (rank, local)),
        };
        Some(Self { from, product: Product { kind: product_kind, stage: source.0, microbatch: source.1 }, to, goal })
    }
}

impl Demand {
    pub(super) fn from_timeline(timeline: &Timeline) -> Result<Self, ExecutionViolation> {
        let overlapped: BTreeSet<u32> = timeline.overlapped.iter().copied().collect();
        let mut lanes: Vec<Vec<Computation>> =
            (0..timeline.ranks as usize).map(|rank| lane(timeline, rank, &overlapped)).collect();
        let mut stage_ranks = BTreeMap::new();
        for (rank, lane) in lanes.iter().enumerate() {
            stage_ranks.extend(lane.iter().map(|item| ((item.product.microbatch, item.product.stage), rank)));
        }
        let mut paths = MicrobatchPaths { stage_ranks, into: BTreeMap::new(), from: BTreeMap::new() };
        for join in &timeline.joins {
            paths.into.entry(join.into).or_default().push(join.from);
            paths.from.entry(join.from).or_default().push(join.into);
        }
        let mut sends = paths.add_needs(&mut lanes)?;
        for rank in 0..timeline.ranks as usize {
            for span in timeline.communication_lane(rank) {
                let product_kind = match SpanKind::from_index(timeline.kind[span]) {
                    Some(SpanKind::SendForward) => ProductKind::Activation,
                    _ => ProductKind::InputGradient,
                };
                let product =
                    Product { kind: product_kind, stage: timeline.stage[span], microbatch: timeline.microbatch[span] };
                if let Some(sending) = sends.get_mut(&product) {
                    sending.duration_ns = timeline.duration_ns[span];
                }
            }
        }
        let mut endings = Vec::new();
        for rank in 0..timeline.ranks {
            for span in timeline.compute_lane(rank as usize) {
                let kind = timeline.kind[span];
                if kind == SpanKind::GradientSync as u8 || kind == SpanKind::Optimizer as u8 {
                    endings.push((rank, kind, timeline.start_ns[span], timeline.duration_ns[span]));
                }
            }
        }
        Ok(Self { lanes, sends, endings, meetings: Vec::new(), sends_before_use: false, local_sends: BTreeMap::new() })
    }

    /// Combines computations with their needs and the sends of their results, with the availability of
    /// the simulator.
    pub(in crate::check) fn new(
        lanes: Vec<Vec<Computation>>,
        (sends, local_sends): (BTreeMap<Product, Sending>, BTreeMap<Product, u64>),
        meetings: Vec<usize>,
    ) -> Self {
        Self { lanes, sends, endings: Vec::new(), meetings, sends_before_use: true, local_sends }
    }

    /// Returns true if `endings` equals the actions following the stages.
    pub(super) fn ends_with(&self, endings: &[Ending]) -> bool {
        let given = endings.iter().map(|end| (end.rank, end.kind as u8, end.start_ns, end.duration_ns));
        given.eq(self.endings.iter().copied())
    }
}

fn lane(timeline: &Timeline, rank: usize, overlapped: &BTreeSet<u32>) -> Vec<Computation> {
    let computation = |span: usize| {
        let (kind, product_kind) = match SpanKind::from_index(timeline.kind[span])? {
            SpanKind::Forward => (PlanActionKind::ForwardStage, ProductKind::Activation),
            SpanKind::Backward => (PlanActionKind::BackwardStage, ProductKind::InputGradient),
            SpanKind::InputGrad => (PlanActionKind::InputGradStage, ProductKind::InputGradient),
            SpanKind::WeightGrad => (PlanActionKind::WeightGradStage, ProductKind::WeightGradient),
            _ => return None,
        };
        Some(Computation {
            kind,
            product: Product { kind: product_kind, stage: timeline.stage[span], microbatch: timeline.microbatch[span] },
            with_next: overlapped.contains(&(span as u32)),
            start_ns: timeline.start_ns[span],
            duration_ns: timeline.duration_ns[span],
            needs: Vec::new(),
            meeting: None,
        })
    };
    timeline.compute_lane(rank).filter_map(computation).collect()
}

/// Paths for microbatches through stages, derived from the lanes.
pub(in crate::check) struct MicrobatchPaths {
    /// Rank by (microbatch, stage).
    pub stage_ranks: BTreeMap<(u32, u32), usize>,
    /// Input and output microbatches.
    pub into: BTreeMap<u32, Vec<u32>>,
    pub from: BTreeMap<u32, Vec<u32>>,
}

impl MicrobatchPaths {
    /// Adds the needs of all computations. Returns the sent results with their number of
    /// destinations, without durations.
    pub(in crate::check) fn add_needs(
        &self,
        lanes: &mut [Vec<Computation>],
    ) -> Result<BTreeMap<Product, Sending>, ExecutionViolation> {
        let mut sends: BTreeMap<Product, Sending> = BTreeMap::new();
        for (rank, lane) in lanes.iter_mut().enumerate() {
            for computation in lane {
                computation.needs = self.needs(rank, computation)?;
                for need in &computation.needs {
                    if let Need::Sent(letter) = need {
                        sends.entry(letter.product).or_default().parts += 1;
                    }
                }
            }
        }
        Ok(sends)
    }

    fn ends(&self, microbatch: u32) -> Result<(u32, u32), ExecutionViolation> {
        let mut stages = self.stage_ranks.range((microbatch, 0)..=(microbatch, u32::MAX)).map(|(&(_, stage), _)| stage);
        let Some(first) = stages.next() else {
            return Err(ExecutionViolation::Incomplete { stage: 0, microbatch });
        };
        Ok((first, stages.next_back().unwrap_or(first)))
    }

    fn needs(&self, rank: usize, computation: &Computation) -> Result<Vec<Need>, ExecutionViolation> {
        let Product { kind: product_kind, stage, microbatch } = computation.product;
        let need = |input_kind, stage, microbatch| {
            let product = Product { kind: input_kind, stage, microbatch };
            match self.stage_ranks.get(&(microbatch, stage)) {
                None => Err(ExecutionViolation::Incomplete { stage, microbatch }),
                Some(&from) if from == rank => Ok(Need::Local(product)),
                Some(&from) => {
                    let goal = (computation.product.stage, computation.product.microbatch);
                    Ok(Need::Sent(Letter { from, product, to: rank, goal }))
                }
            }
        };
        let (first, last) = self.ends(microbatch)?;
        let none = Vec::new();
        // Ranks of a group exchange no activations: the backward needs its own forward.
        if computation.meeting.is_some() {
            return match product_kind {
                ProductKind::Activation => Ok(Vec::new()),
                ProductKind::InputGradient => Ok(vec![need(ProductKind::Activation, stage, microbatch)?]),
                ProductKind::WeightGradient => Ok(vec![need(ProductKind::InputGradient, stage, microbatch)?]),
            };
        }
        match product_kind {
            ProductKind::Activation if stage > first => Ok(vec![need(ProductKind::Activation, stage - 1, microbatch)?]),
            ProductKind::Activation => {
                let parts = self.into.get(&microbatch).unwrap_or(&none).iter();
                parts.map(|&part| need(ProductKind::Activation, self.ends(part)?.1, part)).collect()
            }
            ProductKind::InputGradient => {
                let mut needs = vec![need(ProductKind::Activation, stage, microbatch)?];
                if stage < last {
                    needs.push(need(ProductKind::InputGradient, stage + 1, microbatch)?);
                } else {
                    for &consumer in self.from.get(&microbatch).unwrap_or(&none) {
                        needs.push(need(ProductKind::InputGradient, self.ends(consumer)?.0, consumer)?);
                    }
                }
                Ok(needs)
            }
            ProductKind::WeightGradient => Ok(vec![need(ProductKind::InputGradient, stage, microbatch)?]),
        }
    }
}
