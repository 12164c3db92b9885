//! What a transfer costs on this machine beside the time that the plan gives it.
//!
//! A transfer of a rehearsal is a message that leaves at once and a moment until which it lasts. Where the message takes
//! longer than the planned transfer, at the speed of the rehearsal, the rest is lateness. It is measured between two
//! [posts](super::post) of this process, which hand a message on as those of two ranks do.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use planner::execution_plan::{Payload, PlanAction, PlanActionKind, Transfer};

use super::clock;
use super::control::{Content, prompt};
use super::journal::Journal;
use super::post::{Post, Posting};

/// Messages of either size that are sent.
const TRIALS: u32 = 25;
/// Between two of them, so that threads have gone to sleep as those of ranks have.
const PAUSE: Duration = Duration::from_millis(1);
/// Number of the sender and of the receiver.
const ENDS: [u32; 2] = [0, 1];

/// Mean time from the launch of a receive until its rank goes on, where the send is launched already and the transfer itself takes
/// no time: the sender hears of it, and the message comes. Where the receive is launched first it is about half of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Postage {
    /// Of an empty message, in ns.
    pub empty_ns: u64,
    /// Of one of the most bytes that a message has, in ns.
    pub full_ns: u64,
    /// Most bytes that a message has.
    pub most: u32,
}

impl Postage {
    /// That of a message of so many bytes, in ns.
    pub fn of(self, bytes: u32) -> f64 {
        let share = if self.most == 0 { 0.0 } else { f64::from(bytes.min(self.most)) / f64::from(self.most) };
        self.empty_ns as f64 + share * (self.full_ns as f64 - self.empty_ns as f64)
    }
}

/// Measures it, for about a tenth of a second. Without sockets there is none; nor is there a rehearsal then, which says so.
pub(super) fn measure(most: u32) -> Postage {
    let measured = Pair::open().and_then(|pair| {
        let (empty_ns, full_ns) = (pair.mean(0)?, pair.mean(most)?);
        // On a busy machine the smaller one may come out slower by chance.
        Ok(Postage { empty_ns, full_ns: full_ns.max(empty_ns), most })
    });
    measured.unwrap_or(Postage { most, ..Postage::default() })
}

/// Two posts and the connection between them.
struct Pair {
    sender: Arc<Post>,
    receiver: Arc<Post>,
    connections: [Arc<TcpStream>; 2],
}

impl Pair {
    fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let near = Arc::new(prompt(TcpStream::connect(listener.local_addr()?)?)?);
        let far = Arc::new(prompt(listener.accept()?.0)?);
        // Journals of posts that nobody conducts are never sent.
        let post = || io::Result::Ok(Arc::new(Post::new(Arc::new(Journal::new(near.try_clone()?)))));
        let pair = Self { sender: post()?, receiver: post()?, connections: [near, far] };
        let [near, far] = &pair.connections;
        pair.sender.connect(ENDS[1], Arc::clone(near));
        pair.receiver.accept(ENDS[0], Arc::clone(far));
        let (sender, words) = (Arc::clone(&pair.sender), Arc::clone(near));
        thread::spawn(move || sender.take_word(ENDS[1], &words));
        let (receiver, messages) = (Arc::clone(&pair.receiver), Arc::clone(far));
        thread::spawn(move || receiver.take_in(ENDS[0], &messages));
        let sender = Arc::clone(&pair.sender);
        thread::spawn(move || sender.send_on());
        Ok(pair)
    }

    /// Mean time of a message with so many bytes, in ns.
    fn mean(&self, bytes: u32) -> io::Result<u64> {
        let content = Content { divisor: 1, unknown: bytes, most: bytes };
        let (send, receive) = (action(PlanActionKind::Isend, ENDS[1]), action(PlanActionKind::Irecv, ENDS[0]));
        let mut took_ns = 0;
        for trial in 0..TRIALS {
            self.sender.turn_to(trial);
            self.receiver.turn_to(trial);
            let posting = Posting { index: 0, action: &send, share_ns: 0 };
            self.sender.send(&posting, content).map_err(io::Error::other)?;
            thread::sleep(PAUSE);
            let began_ns = clock::now();
            self.receiver.receive(0, &receive).map_err(io::Error::other)?;
            self.receiver.wait(0).map_err(io::Error::other)?;
            took_ns += clock::now() - began_ns;
        }
        Ok(took_ns / u64::from(TRIALS))
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.sender.close();
        for connection in &self.connections {
            // Ends the threads that read it; it may be broken already.
            drop(connection.shutdown(Shutdown::Both));
        }
    }
}

/// One end of a transfer with that rank.
fn action(action: PlanActionKind, peer: u32) -> PlanAction {
    let transfer = Transfer {
        payload: Payload::Activation,
        peer,
        peer_stage: 0,
        peer_microbatch: 0,
        tag: 0,
        batch: 0,
        bytes: None,
    };
    PlanAction {
        start_ns: 0,
        duration_ns: None,
        action,
        stage: 0,
        microbatch: 0,
        with_next: false,
        transfer: Some(transfer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cost_by_their_size() {
        let postage = Postage { empty_ns: 100, full_ns: 300, most: 1000 };
        // Half-way between the two at half the bytes; never more than the largest.
        for (bytes, expected) in [(0, 100.0), (500, 200.0), (1000, 300.0), (4000, 300.0)] {
            assert!((postage.of(bytes) - expected).abs() < 1e-9, "{bytes}");
        }
        assert!((Postage { empty_ns: 7, ..Postage::default() }.of(9) - 7.0).abs() < 1e-9);
    }

    #[test]
    fn a_message_takes_some_time() {
        let postage = measure(4096);
        assert!(postage.empty_ns > 0 && postage.full_ns >= postage.empty_ns, "{postage:?}");
    }
}
