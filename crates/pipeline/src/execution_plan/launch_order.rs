//! Orders the launches on all ranks to avoid deadlocks.
//!
//! All ranks execute, ignoring time, until all block. Then the algorithm splits the blocking batch,
//! or launches a receive early.

use super::CompileError;
use super::windows::Windows;
use super::work::Work;

/// Launches per slot on a rank, in order.
pub(super) type Program = Vec<Vec<Launch>>;

/// Launch for a message end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launch {
    pub operation: Operation,
    /// Batch index, in global creation order.
    pub batch: usize,
}

/// A message end: send or receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Send(usize),
    Receive(usize),
}

/// Returns a program per rank.
pub(super) fn order_launches(work: &Work, windows: &Windows) -> Result<Vec<Program>, CompileError> {
    let mut order = LaunchOrder::new(work, windows);
    order.run()?;
    Ok(order.finished())
}

/// Operations per rank and slot.
struct BySlot(Vec<Vec<Vec<Operation>>>);

impl BySlot {
    fn new(work: &Work) -> Self {
        Self(work.ranks.iter().map(|units| vec![Vec::new(); units.len() + 1]).collect())
    }

    fn add(&mut self, rank: usize, slot: usize, operation: Operation) {
        self.0[rank][slot].push(operation);
    }

    fn get(&self, rank: usize, slot: usize) -> &[Operation] {
        &self.0[rank][slot]
    }
}

/// Operations that launch and complete together.
#[derive(Default)]
struct Batch {
    members: Vec<Operation>,
    /// Members whose remote end is not launched yet.
    open: usize,
}

struct LaunchOrder<'a> {
    work: &'a Work,
    windows: &'a Windows,
    /// Launches due per slot.
    due: BySlot,
    /// `wait_*` actions before the unit in each slot.
    waits: BySlot,
    /// Current slot per rank, and whether its due launches are done.
    at: Vec<(usize, bool)>,
    /// Batch that contains the send, per message; `receive_batch` likewise.
    send_batch: Vec<Option<usize>>,
    receive_batch: Vec<Option<usize>>,
    batches: Vec<Batch>,
    programs: Vec<Vec<Vec<Operation>>>,
    /// Ranks that can possibly advance.
    runnable: Vec<usize>,
}

impl<'a> LaunchOrder<'a> {
    fn new(work: &'a Work, windows: &'a Windows) -> Self {
        let (mut due, mut waits) = (BySlot::new(work), BySlot::new(work));
        for (index, message) in work.messages.iter().enumerate() {
            waits.add(message.from.rank, windows.release[index], Operation::Send(index));
            waits.add(message.to.rank, message.to.unit, Operation::Receive(index));
        }
        // Sends precede receives. Sends use computation order, receives use consumption order.
        let mut order: Vec<usize> = (0..work.messages.len()).collect();
        order.sort_by_key(|&index| (work.messages[index].from.span, index));
        for &index in &order {
            let from = work.messages[index].from;
            due.add(from.rank, from.unit + 1, Operation::Send(index));
        }
        order.sort_by_key(|&index| (windows.need[index], index));
        for &index in &order {
            due.add(work.messages[index].to.rank, windows.launch[index], Operation::Receive(index));
        }
        Self {
            work,
            windows,
            due,
            waits,
            at: vec![(0, false); work.ranks.len()],
            send_batch: vec![None; work.messages.len()],
            receive_batch: vec![None; work.messages.len()],
            batches: Vec::new(),
            programs: BySlot::new(work).0,
            runnable: (0..work.ranks.len()).rev().collect(),
        }
    }

    fn run(&mut self) -> Result<(), CompileError> {
        loop {
            while let Some(rank) = self.runnable.pop() {
                while self.step(rank) {}
            }
            let stuck: Vec<usize> = (0..self.at.len()).filter(|&rank| self.is_blocked(rank)).collect();
            let Some(&first) = stuck.first() else { return Ok(()) };
            if !self.split_blocking_batch(&stuck) && !self.launch_blocked_receive(&stuck) {
                return Err(CompileError::Circular { rank: first, index: self.at[first].0 });
            }
        }
    }

    /// Launches the due operations and advances by a slot. Returns false if the rank blocks or has
    /// finished.
    fn step(&mut self, rank: usize) -> bool {
        let (slot, launched) = self.at[rank];
        if !launched {
            self.at[rank].1 = true;
            self.launch_due(rank, slot);
        }
        let goes_on = slot < self.work.ranks[rank].len() && !self.is_blocked(rank);
        if goes_on {
            self.at[rank] = (slot + 1, false);
        }
        goes_on
    }

    fn operation_batch(&self, operation: Operation) -> Option<usize> {
        match operation {
            Operation::Send(index) => self.send_batch[index],
            Operation::Receive(index) => self.receive_batch[index],
        }
    }

    fn is_met(&self, operation: Operation) -> bool {
        let (Operation::Send(index) | Operation::Receive(index)) = operation;
        self.send_batch[index].is_some() && self.receive_batch[index].is_some()
    }

    /// Returns whether an incomplete batch blocks the rank in its current slot.
    fn is_blocked(&self, rank: usize) -> bool {
        let done =
            |&operation: &Operation| self.operation_batch(operation).is_some_and(|batch| self.batches[batch].open == 0);
        !self.waits.get(rank, self.at[rank].0).iter().all(done)
    }

    fn launch_due(&mut self, rank: usize, slot: usize) {
        let due = std::mem::take(&mut self.due.0[rank][slot]);
        // Skip receives that were launched early for a blocked sender.
        let due: Vec<Operation> =
            due.into_iter().filter(|&operation| self.operation_batch(operation).is_none()).collect();
        let mut rest = &due[..];
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(self.harmless(rest));
            self.launch(rank, slot, batch);
            rest = behind;
        }
    }

    /// Length of the maximal prefix that can form a batch: the batch must complete before the rank
    /// blocks on it.
    fn harmless(&self, operations: &[Operation]) -> usize {
        let (mut done, mut waited) = (0, u64::MAX);
        let mut fits = |&operation: &Operation| {
            let (Operation::Send(index) | Operation::Receive(index)) = operation;
            let message = &self.work.messages[index];
            let (rank, unit) = match operation {
                Operation::Send(_) => (message.from.rank, self.windows.release[index]),
                Operation::Receive(_) => (message.to.rank, message.to.unit),
            };
            done = done.max(message.arrival_ns);
            waited = waited.min(self.work.ranks[rank].get(unit).map_or(u64::MAX, |unit| unit.start_ns));
            done <= waited
        };
        operations.iter().take_while(|&operation| fits(operation)).count().max(1)
    }

    /// Launches operations as a single batch.
    fn launch(&mut self, rank: usize, slot: usize, operations: &[Operation]) {
        let batch = self.batches.len();
        self.batches.push(Batch { members: operations.to_vec(), open: operations.len() });
        for &operation in operations {
            match operation {
                Operation::Send(index) => self.send_batch[index] = Some(batch),
                Operation::Receive(index) => self.receive_batch[index] = Some(batch),
            }
            self.programs[rank][slot].push(operation);
        }
        for &operation in operations {
            let (Operation::Send(index) | Operation::Receive(index)) = operation;
            if let (Some(send), Some(receive)) = (self.send_batch[index], self.receive_batch[index]) {
                self.batches[send].open -= 1;
                self.batches[receive].open -= 1;
                let message = &self.work.messages[index];
                self.runnable.extend([message.from.rank, message.to.rank]);
            }
        }
    }

    /// Splits an incomplete batch if a rank blocks on a member that is already complete.
    fn split_blocking_batch(&mut self, stuck: &[usize]) -> bool {
        let blocking = stuck.iter().find_map(|&rank| {
            let waits = self.waits.get(rank, self.at[rank].0).iter();
            let batches =
                waits.filter(|&&operation| self.is_met(operation)).filter_map(|&each| self.operation_batch(each));
            batches.into_iter().find(|&batch| self.batches[batch].open > 0).map(|batch| (rank, batch))
        });
        let Some((rank, batch)) = blocking else { return false };
        for operation in std::mem::take(&mut self.batches[batch].members) {
            let number = self.batches.len();
            self.batches.push(Batch { members: vec![operation], open: usize::from(!self.is_met(operation)) });
            match operation {
                Operation::Send(index) => self.send_batch[index] = Some(number),
                Operation::Receive(index) => self.receive_batch[index] = Some(number),
            }
        }
        self.batches[batch].open = 0;
        self.runnable.push(rank);
        true
    }

    /// Launches the receive for a blocked sender at the receiver's current slot, after all earlier
    /// receives on the channel.
    fn launch_blocked_receive(&mut self, stuck: &[usize]) -> bool {
        let sends = stuck.iter().flat_map(|&rank| self.waits.get(rank, self.at[rank].0));
        let unmet = sends.filter_map(|&operation| match operation {
            Operation::Send(index) if self.send_batch[index].is_some() && !self.is_met(operation) => Some(index),
            _ => None,
        });
        let Some(wanted) = unmet.min_by_key(|&index| (self.work.messages[index].arrival_ns, index)) else {
            return false;
        };
        let channel = self.work.channels.partition_point(|channel| channel.end <= wanted);
        let before = self.work.channels[channel].start..=wanted;
        let rank = self.work.messages[wanted].to.rank;
        for index in before.filter(|&index| self.receive_batch[index].is_none()).collect::<Vec<_>>() {
            self.launch(rank, self.at[rank].0, &[Operation::Receive(index)]);
        }
        true
    }

    fn finished(self) -> Vec<Program> {
        let (send, receive) = (&self.send_batch, &self.receive_batch);
        let launch = |operation: Operation| {
            let batch = match operation {
                Operation::Send(index) => send[index],
                Operation::Receive(index) => receive[index],
            };
            Launch { operation, batch: batch.expect("launched") }
        };
        let program = |slots: Vec<Vec<Operation>>| {
            slots.into_iter().map(|operations| operations.into_iter().map(launch).collect()).collect()
        };
        self.programs.into_iter().map(program).collect()
    }
}
