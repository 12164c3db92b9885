//! The post of a rank: what it has launched, what has come, and who is told of it.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use planner::execution_plan::{Payload, PlanAction};

use super::clock;
use super::control::Content;
use super::journal::Journal;
use super::parcel::{self, Label, Parcel};
use super::stream::{self, Ready};

/// What threads of a rank share about its transfers of the present iteration.
#[derive(Debug)]
pub(super) struct Post {
    journal: Arc<Journal>,
    state: Mutex<State>,
    /// Something that the walker may wait for has changed.
    changed: Condvar,
    /// Something that the stream may take has changed.
    offered: Condvar,
}

#[derive(Debug, Default)]
struct State {
    iteration: u32,
    outgoing: BTreeMap<u32, Outgoing>,
    incoming: BTreeMap<u32, Incoming>,
    /// Launches of every batch: whether it sends, the peer, the place in the channel.
    batches: BTreeMap<u32, Vec<(bool, u32, usize)>>,
    /// Sends launched so far.
    launches: usize,
    /// When the stream is free.
    free_ns: u64,
    fault: Option<String>,
    /// Nothing more is sent.
    closed: bool,
}

/// A channel to another rank.
#[derive(Debug, Default)]
struct Outgoing {
    connection: Option<Arc<TcpStream>>,
    launches: Vec<Launch>,
    /// When the receiver launched its ends.
    ready: Vec<u64>,
}

#[derive(Debug)]
struct Launch {
    index: u32,
    label: Label,
    bytes: u32,
    launched_ns: u64,
    ready: Ready,
    /// From when to when it is sent.
    sent: Option<(u64, u64)>,
}

/// A channel from another rank.
#[derive(Debug, Default)]
struct Incoming {
    connection: Option<Arc<TcpStream>>,
    /// Index and label of every launch, and when it was.
    expected: Vec<(u32, Label, u64)>,
    /// How many of these the sender has been told.
    told: usize,
    /// When each was there.
    come: BTreeMap<usize, u64>,
}

/// A launch of a send, as its list says it.
pub(super) struct Posting<'a> {
    pub(super) index: u32,
    pub(super) action: &'a PlanAction,
    /// How long the transfer takes at the speed of the rehearsal, in ns.
    pub(super) share_ns: u64,
}

impl Post {
    pub(super) fn new(journal: Arc<Journal>) -> Self {
        Self { journal, state: Mutex::default(), changed: Condvar::new(), offered: Condvar::new() }
    }

    /// Forgets the transfers of the iteration before.
    pub(super) fn turn_to(&self, iteration: u32) {
        let mut state = self.state();
        for channel in state.outgoing.values_mut() {
            (channel.launches, channel.ready) = (Vec::new(), Vec::new());
        }
        for channel in state.incoming.values_mut() {
            (channel.expected, channel.told, channel.come) = (Vec::new(), 0, BTreeMap::new());
        }
        let State { outgoing, incoming, closed, .. } = std::mem::take(&mut *state);
        *state = State { iteration, outgoing, incoming, closed, ..State::default() };
    }

    /// Whether there is a connection to that rank already.
    pub(super) fn reaches(&self, peer: u32) -> bool {
        self.state().outgoing.get(&peer).is_some_and(|channel| channel.connection.is_some())
    }

    /// A connection to another rank is open.
    pub(super) fn connect(&self, peer: u32, connection: Arc<TcpStream>) {
        self.state().outgoing.entry(peer).or_default().connection = Some(connection);
    }

    /// A connection from another rank is open.
    pub(super) fn accept(&self, peer: u32, connection: Arc<TcpStream>) {
        let mut state = self.state();
        let channel = state.incoming.entry(peer).or_default();
        channel.connection = Some(connection);
        channel.tell();
    }

    /// Launches a send.
    pub(super) fn send(&self, posting: &Posting<'_>, content: Content) -> Result<(), String> {
        let Posting { index, action, share_ns } = *posting;
        let mut state = self.state();
        let (iteration, order) = (state.iteration, state.launches);
        let transfer = action.transfer.ok_or("a send that goes nowhere")?;
        let channel = state.outgoing.entry(transfer.peer).or_default();
        let place = channel.launches.len();
        let label = Label::of(action, iteration, place as u32, true).ok_or("a send that goes nowhere")?;
        let ready = Ready { order, since_ns: 0, result: (transfer.payload, action.stage, action.microbatch), share_ns };
        let (bytes, launched_ns) = (content.of(transfer.bytes), clock::now());
        channel.launches.push(Launch { index, label, bytes, launched_ns, ready, sent: None });
        state.batches.entry(transfer.batch).or_default().push((true, transfer.peer, place));
        state.launches += 1;
        drop(state);
        self.offered.notify_one();
        Ok(())
    }

    /// Launches a receive.
    pub(super) fn receive(&self, index: u32, action: &PlanAction) -> Result<(), String> {
        let mut state = self.state();
        let iteration = state.iteration;
        let transfer = action.transfer.ok_or("a receive from nowhere")?;
        let channel = state.incoming.entry(transfer.peer).or_default();
        let place = channel.expected.len();
        let label = Label::of(action, iteration, place as u32, false).ok_or("a receive from nowhere")?;
        channel.expected.push((index, label, clock::now()));
        channel.tell();
        state.batches.entry(transfer.batch).or_default().push((false, transfer.peer, place));
        Ok(())
    }

    /// Waits until both ends of all transfers of a batch are launched and what is received has come; returns until when
    /// the transfers last.
    pub(super) fn wait(&self, batch: u32) -> Result<u64, String> {
        let mut state = self.state();
        loop {
            if let Some(fault) = &state.fault {
                return Err(fault.clone());
            }
            let launches = state.batches.get(&batch).ok_or("it waits for what it has not launched")?;
            match state.until(launches) {
                Some(until) => return Ok(until),
                None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for every batch.
    pub(super) fn wait_for_all(&self) -> Result<u64, String> {
        let batches: Vec<u32> = self.state().batches.keys().copied().collect();
        batches.into_iter().try_fold(0, |until, batch| Ok(until.max(self.wait(batch)?)))
    }

    /// Reads what another rank sends, until the connection ends.
    pub(super) fn take_in(&self, peer: u32, connection: &TcpStream) {
        let mut reader = std::io::BufReader::with_capacity(64 << 10, connection);
        let mut content = Vec::new();
        loop {
            match parcel::receive(&mut reader, &mut content) {
                Ok(parcel) => self.come(peer, &parcel),
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    return self.fail(format!("from rank {peer} came {error}"));
                }
                // The conductor knows how ranks end.
                Err(_) => return,
            }
        }
    }

    /// Reads when the other end launches its receives, until the connection ends.
    pub(super) fn take_word(&self, peer: u32, mut connection: &TcpStream) {
        while let Ok(at_ns) = parcel::receive_ready(&mut connection) {
            self.state().outgoing.entry(peer).or_default().ready.push(at_ns);
            self.offered.notify_one();
        }
    }

    /// Ends the sending.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.offered.notify_all();
    }

    /// Sends what is ready, one result at a time, until it is closed.
    pub(super) fn send_on(&self) {
        let mut state = self.state();
        while !state.closed {
            let (ready, places) = state.ready();
            let Some(next) = stream::next(state.free_ns, &ready) else {
                state = self.offered.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let now = clock::now();
            if next.begin_ns > now {
                let busy = Duration::from_nanos(next.begin_ns - now);
                state = self.offered.wait_timeout(state, busy).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if next.due_ns > next.begin_ns {
                state.free_ns = next.due_ns;
            }
            let mut letters = Vec::with_capacity(next.members.len());
            for &member in &next.members {
                let (peer, place) = places[member];
                let Some(channel) = state.outgoing.get_mut(&peer) else { continue };
                let launch = &mut channel.launches[place];
                launch.sent = Some((next.begin_ns, next.due_ns));
                self.journal.note(launch.index, next.begin_ns, next.due_ns);
                let parcel = Parcel { label: launch.label, begin_ns: next.begin_ns, due_ns: next.due_ns };
                letters.extend(channel.connection.clone().map(|connection| (connection, parcel, launch.bytes, peer)));
            }
            drop(state);
            self.changed.notify_all();
            for (connection, parcel, bytes, peer) in letters {
                if let Err(error) = parcel::send(&*connection, &parcel, bytes) {
                    self.fail(format!("cannot send to rank {peer}: {error}"));
                }
            }
            state = self.state();
        }
    }

    fn come(&self, peer: u32, parcel: &Parcel) {
        let at_ns = clock::now();
        let mut state = self.state();
        let Some(channel) = state.incoming.get_mut(&peer) else { return };
        let place = parcel.label.place as usize;
        let expected = channel.expected.get(place).copied();
        match expected {
            Some((index, label, _)) if label == parcel.label => {
                let there = at_ns.max(parcel.due_ns);
                channel.come.insert(place, there);
                self.journal.note(index, parcel.begin_ns, there);
                drop(state);
                self.changed.notify_all();
            }
            Some((_, label, _)) => {
                drop(state);
                self.fail(format!(
                    "message {place} from rank {peer} is out of order: it expects {label}, and got {}",
                    parcel.label
                ));
            }
            None => {
                drop(state);
                self.fail(format!("message {place} from rank {peer} came before its receive was launched"));
            }
        }
    }

    /// Ends every wait.
    fn fail(&self, fault: String) {
        self.state().fault.get_or_insert(fault);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Until when launches last; `None` while that is not known.
    fn until(&self, launches: &[(bool, u32, usize)]) -> Option<u64> {
        let end = |&(sends, peer, place): &(bool, u32, usize)| {
            if sends {
                self.outgoing.get(&peer)?.launches[place].sent.map(|(_, due_ns)| due_ns)
            } else {
                self.incoming.get(&peer)?.come.get(&place).copied()
            }
        };
        launches.iter().map(end).try_fold(0, |until, end| Some(end?.max(until)))
    }

    /// Transfers that are launched at both ends and not begun, with peer and place of each.
    fn ready(&self) -> (Vec<Ready>, Vec<(u32, usize)>) {
        let mut found = (Vec::new(), Vec::new());
        for (&peer, channel) in &self.outgoing {
            for (place, (launch, &since_ns)) in channel.launches.iter().zip(&channel.ready).enumerate() {
                if launch.sent.is_none() {
                    found.0.push(Ready { since_ns: since_ns.max(launch.launched_ns), ..launch.ready });
                    found.1.push((peer, place));
                }
            }
        }
        found
    }
}

impl Incoming {
    /// Tells the sender of what it has not been told.
    fn tell(&mut self) {
        let Some(connection) = &self.connection else { return };
        for (_, _, at_ns) in &self.expected[self.told..] {
            // The conductor knows how ranks end.
            drop(parcel::send_ready(&**connection, *at_ns));
        }
        self.told = self.expected.len();
    }
}

/// The letter of a payload in names of actions.
pub(super) const fn letter(payload: Payload) -> &'static str {
    match payload {
        Payload::Activation => "F",
        Payload::Gradient => "B",
    }
}
