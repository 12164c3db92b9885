//! Converts launch programs to action lists.

use super::launch_order::{Operation, Program};
use super::windows::Windows;
use super::work::{Unit, Work};
use super::{Buffers, Ending, ExecutionPlan, PlanAction, PlanActionKind, Transfer};
use planscope_core::timeline::{SpanKind, Timeline};

/// Writes the actions per rank, slot by slot.
pub(super) fn list(
    timeline: &Timeline,
    work: &Work,
    windows: &Windows,
    programs: &[Program],
    buffers: Buffers,
) -> ExecutionPlan {
    let mut tags = vec![0; work.messages.len()];
    for channel in &work.channels {
        for (tag, index) in channel.clone().enumerate() {
            tags[index] = tag as u32;
        }
    }
    let mut waits: Vec<Vec<Vec<Operation>>> =
        work.ranks.iter().map(|units| vec![Vec::new(); units.len() + 1]).collect();
    for index in 0..work.messages.len() {
        waits[work.messages[index].from.rank][windows.release[index]].push(Operation::Send(index));
    }
    for (index, message) in work.messages.iter().enumerate() {
        waits[message.to.rank][message.to.unit].push(Operation::Receive(index));
    }
    let ranks = work.ranks.iter().zip(programs).zip(&waits);
    let lists = ranks.map(|((units, program), waits)| {
        let mut lister = Lister::new(timeline, work, &tags);
        for slot in 0..=units.len() {
            lister.launch(&program[slot]);
            lister.wait(&waits[slot]);
            if let Some(unit) = units.get(slot) {
                lister.compute(unit);
            }
        }
        lister.list
    });
    let ends = work.ranks.iter().flatten().map(|unit| unit.end_ns);
    let planned_ns = ends.max().unwrap_or(0);
    ExecutionPlan { buffers, planned_ns, ranks: lists.collect(), endings: endings(timeline) }
}

fn endings(timeline: &Timeline) -> Vec<Ending> {
    let rank_endings = |rank: usize| {
        timeline.compute_lane(rank).filter_map(move |span| {
            let kind = SpanKind::from_index(timeline.kind[span])?;
            matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer).then(|| Ending {
                rank: rank as u32,
                kind,
                start_ns: timeline.start_ns[span],
                duration_ns: timeline.duration_ns[span],
            })
        })
    };
    (0..timeline.ranks as usize).flat_map(rank_endings).collect()
}

struct Lister<'a> {
    timeline: &'a Timeline,
    work: &'a Work,
    tags: &'a [u32],
    list: Vec<PlanAction>,
    /// End time for the most recent computation in the list.
    now_ns: u64,
    /// Batches created for this rank.
    batches: u32,
    last_batch: Option<usize>,
    /// Local batch per message end; the key is true for sends.
    message_batches: std::collections::BTreeMap<(bool, usize), u32>,
}

impl<'a> Lister<'a> {
    fn new(timeline: &'a Timeline, work: &'a Work, tags: &'a [u32]) -> Self {
        let message_batches = std::collections::BTreeMap::new();
        Self { timeline, work, tags, list: Vec::new(), now_ns: 0, batches: 0, last_batch: None, message_batches }
    }

    fn launch(&mut self, launches: &[super::launch_order::Launch]) {
        for launch in launches {
            if self.last_batch.replace(launch.batch) != Some(launch.batch) {
                self.batches += 1;
            }
            self.message_batches.insert(key(launch.operation), self.batches - 1);
            let kind = match launch.operation {
                Operation::Send(_) => PlanActionKind::Isend,
                Operation::Receive(_) => PlanActionKind::Irecv,
            };
            self.push(kind, launch.operation);
        }
    }

    fn wait(&mut self, operations: &[Operation]) {
        for &operation in operations {
            let kind = match operation {
                Operation::Send(_) => PlanActionKind::WaitIsend,
                Operation::Receive(_) => PlanActionKind::WaitIrecv,
            };
            self.push(kind, operation);
        }
    }

    fn push(&mut self, kind: PlanActionKind, operation: Operation) {
        let (local, peer, index) = match operation {
            Operation::Send(index) => (self.work.messages[index].from, self.work.messages[index].to, index),
            Operation::Receive(index) => (self.work.messages[index].to, self.work.messages[index].from, index),
        };
        let transfer = Transfer {
            payload: self.work.messages[index].payload,
            peer: peer.rank as u32,
            peer_stage: peer.stage,
            peer_microbatch: peer.microbatch,
            tag: self.tags[index],
            batch: self.message_batches[&key(operation)],
            bytes: None,
        };
        let duration_ns = (kind == PlanActionKind::Isend).then_some(self.work.messages[index].duration_ns);
        self.list.push(PlanAction {
            start_ns: self.now_ns,
            duration_ns,
            action: kind,
            stage: local.stage,
            microbatch: local.microbatch,
            with_next: false,
            transfer: Some(transfer),
        });
    }

    fn compute(&mut self, unit: &Unit) {
        for span in unit.first..=unit.last {
            let action = match SpanKind::from_index(self.timeline.kind[span]) {
                Some(SpanKind::Forward) => PlanActionKind::ForwardStage,
                Some(SpanKind::InputGrad) => PlanActionKind::InputGradStage,
                Some(SpanKind::WeightGrad) => PlanActionKind::WeightGradStage,
                _ => PlanActionKind::BackwardStage,
            };
            self.list.push(PlanAction {
                start_ns: self.timeline.start_ns[span],
                duration_ns: Some(self.timeline.duration_ns[span]),
                action,
                stage: self.timeline.stage[span],
                microbatch: self.timeline.microbatch[span],
                with_next: span < unit.last,
                transfer: None,
            });
        }
        self.now_ns = unit.end_ns;
    }
}

const fn key(operation: Operation) -> (bool, usize) {
    match operation {
        Operation::Send(index) => (false, index),
        Operation::Receive(index) => (true, index),
    }
}
