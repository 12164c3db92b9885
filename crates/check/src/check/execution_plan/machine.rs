//! Simulation of all ranks, using lists, channels and a send stream per rank.
//!
//! A rank processes actions sequentially. Launches take no time. A transfer is ready when sender
//! and receiver have launched it. A rank sends the results of a single action at a time, in launch
//! order. Ready parts of the same result are sent in a single step. Waits return when all transfers
//! in the batch are done. A send that no other rank receives is launched at the end of its
//! computation and needs no receiver. If all receives are launched before the corresponding sends, these rules
//! equal those of the simulator.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::demand::{Computation, Demand, Letter, Need, Product, ProductKind, Sending};
use super::{At, ExecutionViolation};
use planscope_pipeline::execution_plan::{PlanAction, PlanActionKind};

/// Simulated times in ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::check) struct Walk {
    /// End of the last computation.
    pub end: u64,
    /// Start per computation, by rank.
    pub starts: Vec<Vec<u64>>,
}

/// Runs the lists of all ranks to the end.
pub(in crate::check) fn walk(ranks: &[&[PlanAction]], demand: &Demand) -> Result<Walk, ExecutionViolation> {
    let mut machine = Machine::new(ranks, demand);
    while let Some(Reverse((now, event))) = machine.events.pop() {
        machine.now = now;
        match event {
            Event::Arrived(transfer) => machine.arrived(transfer),
            Event::Free(rank) => machine.sending[rank] = false,
            Event::Computed(transfer) => machine.launched(transfer),
            Event::Go(rank) => machine.go(rank),
            Event::Send(rank) => machine.send(rank),
        }
    }
    match machine.circle() {
        Some(circle) => Err(ExecutionViolation::Deadlock(circle)),
        None => Ok(Walk { end: machine.end, starts: machine.starts }),
    }
}

/// Returns the result of a computation and the time of its send, if no other rank receives it.
fn local_send(action: &PlanAction, demand: &Demand) -> Option<(Product, u64)> {
    let kind = match action.action {
        PlanActionKind::ForwardStage => ProductKind::Activation,
        PlanActionKind::BackwardStage | PlanActionKind::InputGradStage => ProductKind::InputGradient,
        _ => return None,
    };
    let product = Product { kind, stage: action.stage, microbatch: action.microbatch };
    demand.local_sends.get(&product).map(|&duration_ns| (product, duration_ns))
}

/// Simulation event. Simultaneous events are processed in declaration order, so that a stream
/// considers all ready transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrived(usize),
    /// The send stream of a rank is free.
    Free(usize),
    /// The result of a local send is computed.
    Computed(usize),
    /// A rank can continue.
    Go(usize),
    /// The send stream of a rank can start a transfer.
    Send(usize),
}

struct Travel {
    letter: Letter,
    sending: Sending,
    /// Launch positions of sender and receiver.
    ends: [At; 2],
    /// Batches of sender and receiver.
    batches: [usize; 2],
    /// Number of missing launches.
    missing: u8,
    /// Position in the sender's launches.
    order: usize,
    done: bool,
}

/// Computations that start together, as soon as all their ranks have come.
#[derive(Debug, Clone, Default)]
struct Meeting {
    come: usize,
    waiting: Vec<usize>,
}

struct Machine<'a> {
    plan: &'a [&'a [PlanAction]],
    demand: &'a Demand,
    now: u64,
    end: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    travels: Vec<Travel>,
    /// Transfer launched or awaited by an action, by rank and action.
    travel_at: Vec<Vec<usize>>,
    /// Unfinished transfers and all transfers, by batch.
    open: Vec<(usize, Vec<usize>)>,
    /// Current action index and busy time, by rank.
    at: Vec<usize>,
    active_until: Vec<u64>,
    /// Starts of the computations so far, by rank.
    starts: Vec<Vec<u64>>,
    meetings: Vec<Meeting>,
    /// Meeting that a rank has come to, by rank.
    met: Vec<Option<usize>>,
    /// Transfers of a result.
    by_product: BTreeMap<Product, Vec<usize>>,
    /// Transfer of a result that no other rank receives.
    local: BTreeMap<Product, usize>,
    /// Stream state and ready transfers, by rank.
    sending: Vec<bool>,
    ready: Vec<BTreeSet<(usize, usize)>>,
}

impl<'a> Machine<'a> {
    fn new(plan: &'a [&'a [PlanAction]], demand: &'a Demand) -> Self {
        let ranks = plan.len();
        let mut numbers: BTreeMap<Letter, usize> = BTreeMap::new();
        let mut batches: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let (mut travels, mut open): (Vec<Travel>, Vec<(usize, Vec<usize>)>) = (Vec::new(), Vec::new());
        let mut travel_at = Vec::with_capacity(ranks);
        for (rank, list) in plan.iter().enumerate() {
            let mut rank_travels = Vec::with_capacity(list.len());
            for (index, action) in list.iter().enumerate() {
                let (Some(letter), Some(transfer)) = (Letter::from_action(rank, action), action.transfer) else {
                    rank_travels.push(usize::MAX);
                    continue;
                };
                let number = *numbers.entry(letter).or_insert_with(|| {
                    let sending = demand.sends.get(&letter.product).copied().unwrap_or_default();
                    let nowhere = At { rank, index };
                    let ends = [nowhere; 2];
                    travels.push(Travel { letter, sending, ends, batches: [0; 2], missing: 2, order: 0, done: false });
                    travels.len() - 1
                });
                rank_travels.push(number);
                if action.action.launches() {
                    let batch = *batches.entry((rank, transfer.batch)).or_insert_with(|| {
                        open.push((0, Vec::new()));
                        open.len() - 1
                    });
                    open[batch].0 += 1;
                    open[batch].1.push(number);
                    let end = usize::from(action.action == PlanActionKind::Irecv);
                    let travel = &mut travels[number];
                    (travel.ends[end], travel.batches[end]) = (At { rank, index }, batch);
                    if end == 0 {
                        travel.order = index;
                    }
                }
            }
            travel_at.push(rank_travels);
        }
        let mut local: BTreeMap<Product, usize> = BTreeMap::new();
        for (rank, list) in plan.iter().enumerate() {
            for (index, action) in list.iter().enumerate() {
                let Some((product, duration_ns)) = local_send(action, demand) else { continue };
                let number = travels.len();
                // Nothing waits for this batch.
                open.push((2, vec![number]));
                let batch = open.len() - 1;
                let letter = Letter { from: rank, product, to: rank, goal: (product.stage, product.microbatch) };
                let (sending, ends) = (Sending { duration_ns, parts: 1 }, [At { rank, index }; 2]);
                travels.push(Travel {
                    letter,
                    sending,
                    ends,
                    batches: [batch; 2],
                    missing: 1,
                    order: index,
                    done: false,
                });
                local.insert(product, number);
            }
        }
        let mut by_product: BTreeMap<Product, Vec<usize>> = BTreeMap::new();
        for (number, travel) in travels.iter().enumerate() {
            by_product.entry(travel.letter.product).or_default().push(number);
        }
        Self {
            plan,
            demand,
            now: 0,
            end: 0,
            events: (0..ranks).map(|rank| Reverse((0, Event::Go(rank)))).collect(),
            travels,
            travel_at,
            open,
            at: vec![0; ranks],
            active_until: vec![0; ranks],
            starts: vec![Vec::new(); ranks],
            meetings: vec![Meeting::default(); demand.meetings.len()],
            met: vec![None; ranks],
            by_product,
            local,
            sending: vec![false; ranks],
            ready: vec![BTreeSet::new(); ranks],
        }
    }

    fn soon(&mut self, after: u64, event: Event) {
        self.events.push(Reverse((self.now.saturating_add(after), event)));
    }

    /// Processes a rank's actions until an action takes time or blocks.
    fn go(&mut self, rank: usize) {
        while self.active_until[rank] <= self.now
            && let Some(action) = self.plan[rank].get(self.at[rank])
        {
            if action.action.computes() {
                if !self.may_start(rank) {
                    return;
                }
                let unit = self.next_unit(rank);
                let mut duration: u64 = 0;
                for computation in unit {
                    self.starts[rank].push(self.now.saturating_add(duration));
                    duration = duration.saturating_add(computation.duration_ns);
                    self.at[rank] += 1;
                }
                self.active_until[rank] = self.now.saturating_add(duration);
                self.end = self.end.max(self.active_until[rank]);
                // The results of an overlapped pair are available at its common end.
                for computation in unit {
                    if let Some(&number) = self.local.get(&computation.product) {
                        self.soon(duration, Event::Computed(number));
                    }
                }
                if duration > 0 {
                    self.soon(duration, Event::Go(rank));
                }
            } else if action.action.launches() {
                let number = self.travel_at[rank][self.at[rank]];
                self.at[rank] += 1;
                self.launched(number);
            } else if self.open[self.waited(rank)].0 == 0 {
                self.at[rank] += 1;
            } else {
                return;
            }
        }
    }

    /// Returns the computations that a rank starts next: one, or an overlapped pair.
    fn next_unit(&self, rank: usize) -> &'a [Computation] {
        let rest = &self.demand.lanes[rank][self.starts[rank].len()..];
        let pair = rest.iter().take_while(|computation| computation.with_next).count() + 1;
        &rest[..pair.min(rest.len())]
    }

    /// Returns an unfinished transfer of a local input. A result with a send is available when it is
    /// sent, as in the simulator.
    fn unsent_input(&self, rank: usize) -> Option<usize> {
        if !self.demand.sends_before_use {
            return None;
        }
        let unit = self.next_unit(rank).iter();
        let inputs = unit.flat_map(|computation| computation.needs.iter().map(move |need| (computation, need)));
        inputs.into_iter().find_map(|(computation, need)| {
            let Need::Local(product) = need else { return None };
            let own = (computation.product.stage, computation.product.microbatch);
            if (product.stage, product.microbatch) == own {
                return None;
            }
            self.by_product.get(product)?.iter().copied().find(|&number| !self.travels[number].done)
        })
    }

    /// Returns whether the inputs of the next computation are available, and all ranks that start
    /// it together have come.
    fn may_start(&mut self, rank: usize) -> bool {
        if self.unsent_input(rank).is_some() {
            return false;
        }
        let Some(number) = self.next_unit(rank).first().and_then(|computation| computation.meeting) else {
            return true;
        };
        let expected = self.demand.meetings[number];
        if self.met[rank].replace(number) != Some(number) {
            let meeting = &mut self.meetings[number];
            meeting.come += 1;
            if meeting.come < expected {
                meeting.waiting.push(rank);
            } else {
                for other in std::mem::take(&mut meeting.waiting) {
                    self.soon(0, Event::Go(other));
                }
            }
        }
        self.meetings[number].come >= expected
    }

    /// Returns the batch that blocks a rank.
    fn waited(&self, rank: usize) -> usize {
        let travel = &self.travels[self.travel_at[rank][self.at[rank]]];
        travel.batches[usize::from(travel.letter.from != rank)]
    }

    fn launched(&mut self, number: usize) {
        let travel = &mut self.travels[number];
        travel.missing -= 1;
        if travel.missing > 0 {
            return;
        }
        if travel.sending.duration_ns == 0 {
            self.soon(0, Event::Arrived(number));
        } else {
            let from = travel.letter.from;
            self.ready[from].insert((travel.order, number));
            self.soon(0, Event::Send(from));
        }
    }

    /// Starts the earliest launched transfer that is ready, including all ready parts of the same
    /// result.
    fn send(&mut self, rank: usize) {
        if self.sending[rank] {
            return;
        }
        let Some(&(_, first)) = self.ready[rank].first() else { return };
        let product: Product = self.travels[first].letter.product;
        let together: Vec<(usize, usize)> = self.ready[rank]
            .iter()
            .copied()
            .filter(|&(_, other)| self.travels[other].letter.product == product)
            .collect();
        let Sending { duration_ns, parts } = self.travels[first].sending;
        let share = u128::from(duration_ns) * together.len() as u128;
        let lasts = share.div_ceil(u128::from(parts.max(1))) as u64;
        for (order, number) in together {
            self.ready[rank].remove(&(order, number));
            self.soon(lasts, Event::Arrived(number));
        }
        self.sending[rank] = true;
        self.soon(lasts, Event::Free(rank));
        self.soon(lasts, Event::Send(rank));
    }

    fn arrived(&mut self, number: usize) {
        self.travels[number].done = true;
        let Letter { from, to, .. } = self.travels[number].letter;
        for batch in self.travels[number].batches {
            self.open[batch].0 -= 1;
        }
        self.soon(0, Event::Go(from));
        self.soon(0, Event::Go(to));
    }

    /// Returns a cycle of blocked ranks if the simulation is stuck.
    fn circle(&self) -> Option<Vec<At>> {
        let stuck = |rank: &usize| self.at[*rank] < self.plan[*rank].len();
        let mut rank = (0..self.at.len()).find(stuck)?;
        let mut path: Vec<At> = Vec::new();
        loop {
            if let Some(start) = path.iter().position(|at| at.rank == rank) {
                return Some(path.split_off(start));
            }
            path.push(At { rank, index: self.at[rank] });
            match self.blocker(rank) {
                Some(other) => rank = other,
                // The awaited rank has ended.
                None => return Some(path),
            }
        }
    }

    /// Returns a rank that a blocked rank waits for.
    fn blocker(&self, rank: usize) -> Option<usize> {
        let missing = |number: usize| {
            let travel = &self.travels[number];
            let late = |end: &&At| self.at[end.rank] <= end.index;
            // An unfinished transfer has a missing launch on one of both ranks.
            let other = travel.ends.iter().filter(|end| end.rank != rank).find(late).map(|end| end.rank);
            other.filter(|_| !travel.done)
        };
        if !self.plan[rank][self.at[rank]].action.computes() {
            return self.open[self.waited(rank)].1.iter().copied().find_map(missing);
        }
        if let Some(number) = self.unsent_input(rank) {
            return missing(number);
        }
        let meeting = self.next_unit(rank).first()?.meeting?;
        (0..self.plan.len()).find(|&other| {
            let rest = &self.demand.lanes[other][self.starts[other].len()..];
            self.met[other] != Some(meeting) && rest.iter().any(|computation| computation.meeting == Some(meeting))
        })
    }
}
