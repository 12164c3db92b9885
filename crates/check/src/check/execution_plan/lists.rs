//! Checks of individual lists, and of channels at sender and receiver.

use std::collections::{BTreeMap, BTreeSet};

use super::demand::{Computation, Demand, Letter, Need, Product, ProductKind};
use super::{At, ExecutionViolation};
use planscope_pipeline::execution_plan::{PlanAction, PlanActionKind, Transfer};

/// Limit on occupied buffers per channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::check) struct BufferUsage {
    pub receives: u32,
    pub sends: u32,
}

/// Runs all static checks of the action lists, by rank.
pub(in crate::check) fn check_lists(
    ranks: &[&[PlanAction]],
    demand: &Demand,
) -> Result<BufferUsage, ExecutionViolation> {
    let mut usage = BufferUsage::default();
    let mut channels: BTreeMap<(usize, usize), Channel> = BTreeMap::new();
    let needed = demand.lanes.iter().flatten().flat_map(|computation| &computation.needs);
    let needed: BTreeSet<Letter> = needed
        .filter_map(|need| match need {
            Need::Sent(letter) => Some(*letter),
            Need::Local(_) => None,
        })
        .collect();
    for (rank, list) in ranks.iter().enumerate() {
        let mut reader = Reader::new(rank, ranks.len(), &demand.lanes[rank], &needed);
        for (index, action) in list.iter().enumerate() {
            let at = At { rank, index };
            reader.read(at, action, list.get(index + 1))?;
            let share = Letter::from_action(rank, action)
                .filter(|_| action.action == PlanActionKind::Isend)
                .and_then(|letter| demand.sends.get(&letter.product))
                .map(|sending| sending.duration_ns.div_ceil(sending.parts.max(1)));
            if share.zip(action.duration_ns).is_some_and(|(share, duration)| share != duration) {
                return Err(ExecutionViolation::Time(at));
            }
        }
        reader.end()?;
        usage.receives = usage.receives.max(reader.usage.receives);
        usage.sends = usage.sends.max(reader.usage.sends);
        for (letter, end) in reader.launches {
            let channel = channels.entry((letter.from, letter.to)).or_default();
            if letter.from == rank { channel.sends.push((letter, end)) } else { channel.receives.push((letter, end)) }
        }
    }
    for (&(from, to), channel) in &channels {
        channel.check(from, to)?;
    }
    Ok(usage)
}

#[derive(Clone, Copy)]
struct End {
    at: At,
    tag: u32,
    bytes: Option<u64>,
}

/// Ordered launches at sender and receiver of a channel.
#[derive(Default)]
struct Channel {
    sends: Vec<(Letter, End)>,
    receives: Vec<(Letter, End)>,
}

impl Channel {
    fn check(&self, from: usize, to: usize) -> Result<(), ExecutionViolation> {
        for (launches, others, peer) in [(&self.sends, &self.receives, to), (&self.receives, &self.sends, from)] {
            let others: BTreeSet<Letter> = others.iter().map(|(letter, _)| *letter).collect();
            if let Some((_, end)) = launches.iter().find(|(letter, _)| !others.contains(letter)) {
                return Err(ExecutionViolation::Unmatched(end.at, peer));
            }
        }
        let differ = |(send, receive): (&(Letter, End), &(Letter, End))| {
            send.0 != receive.0 || send.1.tag != receive.1.tag || send.1.bytes != receive.1.bytes
        };
        match self.sends.iter().zip(&self.receives).position(differ) {
            Some(position) => Err(ExecutionViolation::Order { from, to, position }),
            None => Ok(()),
        }
    }
}

struct Reader<'a> {
    lane: &'a [Computation],
    ranks: usize,
    needed: &'a BTreeSet<Letter>,
    /// Number of computations read.
    done: usize,
    products: BTreeSet<Product>,
    /// Launches in order.
    launches: Vec<(Letter, End)>,
    /// Launches with no wait so far.
    open: BTreeMap<Letter, (At, Transfer)>,
    launched: BTreeSet<Letter>,
    received: BTreeSet<Letter>,
    /// Receives in use, by peer.
    receiving: BTreeMap<usize, u32>,
    sending: BTreeMap<usize, u32>,
    usage: BufferUsage,
    rank: usize,
    now_ns: u64,
    /// True if the previous action overlaps this one.
    overlaps: bool,
    /// Batches so far. `open_batch` is the batch that may continue.
    batches: BTreeSet<u32>,
    open_batch: Option<u32>,
}

impl<'a> Reader<'a> {
    fn new(rank: usize, ranks: usize, lane: &'a [Computation], needed: &'a BTreeSet<Letter>) -> Self {
        Self {
            lane,
            ranks,
            needed,
            done: 0,
            products: BTreeSet::new(),
            launches: Vec::new(),
            open: BTreeMap::new(),
            launched: BTreeSet::new(),
            received: BTreeSet::new(),
            receiving: BTreeMap::new(),
            sending: BTreeMap::new(),
            usage: BufferUsage::default(),
            rank,
            now_ns: 0,
            overlaps: false,
            batches: BTreeSet::new(),
            open_batch: None,
        }
    }

    fn read(&mut self, at: At, action: &PlanAction, next: Option<&PlanAction>) -> Result<(), ExecutionViolation> {
        if action.start_ns < self.now_ns {
            return Err(ExecutionViolation::Time(at));
        }
        self.now_ns = action.start_ns;
        let letter = Letter::from_action(self.rank, action);
        let is_valid = action.transfer.is_none_or(|transfer| {
            let peer = transfer.peer as usize;
            peer != self.rank && peer < self.ranks && !action.with_next
        });
        if action.action.computes() == letter.is_some() || !is_valid {
            return Err(ExecutionViolation::Malformed(at));
        }
        let (Some(letter), Some(transfer)) = (letter, action.transfer) else {
            self.open_batch = None;
            return self.compute(at, action, next);
        };
        match action.action {
            PlanActionKind::Isend | PlanActionKind::Irecv => self.launch(at, action.action, letter, transfer),
            _ => self.wait(at, action.action, letter, transfer),
        }
    }

    fn compute(&mut self, at: At, action: &PlanAction, next: Option<&PlanAction>) -> Result<(), ExecutionViolation> {
        let is_it = |candidate: &Computation| {
            candidate.kind == action.action
                && (candidate.product.stage, candidate.product.microbatch) == (action.stage, action.microbatch)
        };
        let (before, behind) = self.lane.split_at(self.done);
        let Some(computation) = behind.first().filter(|head| is_it(head)) else {
            return Err(if before.iter().any(is_it) {
                ExecutionViolation::Repeated(at)
            } else if behind.iter().any(is_it) {
                ExecutionViolation::Reordered(at)
            } else {
                ExecutionViolation::Foreign(at)
            });
        };
        if action.with_next != computation.with_next
            || (action.with_next && !next.is_some_and(|next| next.action.computes()))
        {
            return Err(ExecutionViolation::Torn(at));
        }
        if action.start_ns != computation.start_ns
            || action.duration_ns.is_some_and(|duration| duration != computation.duration_ns)
        {
            return Err(ExecutionViolation::Time(at));
        }
        for need in &computation.needs {
            let there = match need {
                Need::Local(product) => self.products.contains(product),
                Need::Sent(letter) => self.received.contains(letter),
            };
            if !there {
                return Err(ExecutionViolation::Unfed(at));
            }
            if let Need::Sent(letter) = need {
                *self.receiving.entry(letter.from).or_default() -= 1;
            }
        }
        // An overlapped pair starts at the same time, so actions in a pair cannot depend on each
        // other.
        if self.overlaps {
            let first = self.done.checked_sub(1).map(|first| self.lane[first].product);
            if computation.needs.iter().any(|need| matches!(need, Need::Local(product) if Some(*product) == first)) {
                return Err(ExecutionViolation::Unfed(at));
            }
        }
        self.overlaps = action.with_next;
        self.products.insert(computation.product);
        if computation.kind == PlanActionKind::BackwardStage {
            self.products.insert(Product { kind: ProductKind::WeightGradient, ..computation.product });
        }
        self.done += 1;
        Ok(())
    }

    fn launch(
        &mut self,
        at: At,
        action: PlanActionKind,
        letter: Letter,
        transfer: Transfer,
    ) -> Result<(), ExecutionViolation> {
        if !self.needed.contains(&letter) {
            return Err(ExecutionViolation::Unneeded(at));
        }
        if action == PlanActionKind::Isend && !self.products.contains(&letter.product) {
            return Err(ExecutionViolation::Unmade(at));
        }
        if !self.launched.insert(letter) {
            return Err(ExecutionViolation::Repeated(at));
        }
        if self.open_batch != Some(transfer.batch) && !self.batches.insert(transfer.batch) {
            return Err(ExecutionViolation::Batch(at));
        }
        self.open_batch = Some(transfer.batch);
        self.open.insert(letter, (at, transfer));
        self.launches.push((letter, End { at, tag: transfer.tag, bytes: transfer.bytes }));
        let (by_peer, max_count, peer) = if action == PlanActionKind::Isend {
            (&mut self.sending, &mut self.usage.sends, letter.to)
        } else {
            (&mut self.receiving, &mut self.usage.receives, letter.from)
        };
        let count = by_peer.entry(peer).or_default();
        *count += 1;
        *max_count = (*max_count).max(*count);
        Ok(())
    }

    fn wait(
        &mut self,
        at: At,
        action: PlanActionKind,
        letter: Letter,
        transfer: Transfer,
    ) -> Result<(), ExecutionViolation> {
        self.open_batch = None;
        match self.open.remove(&letter) {
            Some((_, launched)) if launched == transfer => {}
            None if self.launched.contains(&letter) => return Err(ExecutionViolation::Repeated(at)),
            _ => return Err(ExecutionViolation::Unstarted(at)),
        }
        if action == PlanActionKind::WaitIsend {
            *self.sending.entry(letter.to).or_default() -= 1;
        } else {
            self.received.insert(letter);
        }
        Ok(())
    }

    fn end(&self) -> Result<(), ExecutionViolation> {
        if let Some(missing) = self.lane.get(self.done) {
            let Product { stage, microbatch, .. } = missing.product;
            return Err(ExecutionViolation::Missing { rank: self.rank, stage, microbatch });
        }
        match self.open.values().map(|(at, _)| *at).min() {
            Some(at) => Err(ExecutionViolation::Unwaited(at)),
            None => Ok(()),
        }
    }
}
