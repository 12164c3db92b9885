//! All ranks at work: lists, channels, and one sending stream for every rank.
//!
//! A rank takes its actions one after the other. A launch takes no time. A transfer is ready when both its ends are
//! launched; a rank sends one action's results at a time, of those that are ready the one launched first, and parts of
//! one result that are ready together go together. A wait ends when all transfers of its batch are done. These are the
//! simulator's rules where every receive has been launched before its send.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use super::demand::{Demand, Letter, Product, Sending};
use super::{At, ExecutionViolation};
use crate::execution_plan::{ExecutionPlan, PlanActionKind};

/// Walks to the end of all lists; when the last stage ends, in ns.
pub(super) fn walk(plan: &ExecutionPlan, demand: &Demand) -> Result<u64, ExecutionViolation> {
    let mut machine = Machine::new(plan, demand);
    while let Some(Reverse((now, event))) = machine.events.pop() {
        machine.now = now;
        match event {
            Event::Arrived(transfer) => machine.arrived(transfer),
            Event::Free(rank) => machine.sending[rank] = false,
            Event::Go(rank) => machine.go(rank),
            Event::Send(rank) => machine.send(rank),
        }
    }
    machine.circle().map_or(Ok(machine.end), |circle| Err(ExecutionViolation::Deadlock(circle)))
}

/// What happens; of what happens at one time first what comes first here, so that a stream sees all that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A transfer is done.
    Arrived(usize),
    /// A rank's stream is free.
    Free(usize),
    /// A rank may go on.
    Go(usize),
    /// A rank's stream takes what is ready.
    Send(usize),
}

struct Travel {
    letter: Letter,
    sending: Sending,
    /// Where its ends are launched; the sender's first.
    ends: [At; 2],
    /// Batches of its ends.
    batches: [usize; 2],
    /// Ends that are not launched.
    missing: u8,
    /// Place among the sender's launches.
    order: usize,
    done: bool,
}

struct Machine<'a> {
    plan: &'a ExecutionPlan,
    demand: &'a Demand,
    now: u64,
    end: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    travels: Vec<Travel>,
    /// Of every rank and action, the transfer that it launches or waits for.
    travel_at: Vec<Vec<usize>>,
    /// Transfers of every batch that are not done, and all of them.
    open: Vec<(usize, Vec<usize>)>,
    /// Index of each rank's present action, and until when it computes.
    at: Vec<usize>,
    busy: Vec<u64>,
    /// Computations that each rank has begun.
    begun: Vec<usize>,
    /// Whether each rank's stream is taken, and what is ready for it.
    sending: Vec<bool>,
    ready: Vec<BTreeSet<(usize, usize)>>,
}

impl<'a> Machine<'a> {
    fn new(plan: &'a ExecutionPlan, demand: &'a Demand) -> Self {
        let ranks = plan.ranks.len();
        let mut numbers: BTreeMap<Letter, usize> = BTreeMap::new();
        let mut batches: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let (mut travels, mut open): (Vec<Travel>, Vec<(usize, Vec<usize>)>) = (Vec::new(), Vec::new());
        let mut travel_at = Vec::with_capacity(ranks);
        for (rank, list) in plan.ranks.iter().enumerate() {
            let mut of_rank = Vec::with_capacity(list.len());
            for (index, action) in list.iter().enumerate() {
                let (Some(letter), Some(transfer)) = (Letter::of(rank, action), action.transfer) else {
                    of_rank.push(usize::MAX);
                    continue;
                };
                let number = *numbers.entry(letter).or_insert_with(|| {
                    let sending = demand.sends.get(&letter.product).copied().unwrap_or_default();
                    let nowhere = At { rank, index };
                    let ends = [nowhere; 2];
                    travels.push(Travel { letter, sending, ends, batches: [0; 2], missing: 2, order: 0, done: false });
                    travels.len() - 1
                });
                of_rank.push(number);
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
            travel_at.push(of_rank);
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
            busy: vec![0; ranks],
            begun: vec![0; ranks],
            sending: vec![false; ranks],
            ready: vec![BTreeSet::new(); ranks],
        }
    }

    fn soon(&mut self, after: u64, event: Event) {
        self.events.push(Reverse((self.now.saturating_add(after), event)));
    }

    /// Takes a rank's actions until one takes time or must wait.
    fn go(&mut self, rank: usize) {
        while self.busy[rank] <= self.now
            && let Some(action) = self.plan.ranks[rank].get(self.at[rank])
        {
            if action.action.computes() {
                let lane = &self.demand.lanes[rank];
                let mut duration: u64 = 0;
                loop {
                    let computation = &lane[self.begun[rank]];
                    duration = duration.saturating_add(computation.duration_ns);
                    self.begun[rank] += 1;
                    self.at[rank] += 1;
                    if !computation.with_next {
                        break;
                    }
                }
                self.busy[rank] = self.now.saturating_add(duration);
                self.end = self.end.max(self.busy[rank]);
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

    /// The batch that a rank's present action waits for.
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

    /// Starts what is ready and was launched first, with all that is ready of the same result.
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

    /// Ranks that wait for each other when nothing happens any more, each before the one that it waits for.
    fn circle(&self) -> Option<Vec<At>> {
        let stuck = |rank: &usize| self.at[*rank] < self.plan.ranks[*rank].len();
        let mut rank = (0..self.at.len()).find(stuck)?;
        let mut path: Vec<At> = Vec::new();
        loop {
            if let Some(start) = path.iter().position(|at| at.rank == rank) {
                return Some(path.split_off(start));
            }
            path.push(At { rank, index: self.at[rank] });
            // Of a batch that is not done there is a transfer whose other end is still to be launched.
            let open = self.open[self.waited(rank)].1.iter().map(|&number| &self.travels[number]);
            let other = open.filter(|travel| !travel.done).find_map(|travel| {
                let other = travel.ends[usize::from(travel.letter.from == rank)];
                (self.at[other.rank] <= other.index).then_some(other.rank)
            });
            rank = other?;
        }
    }
}
