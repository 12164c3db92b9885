//! What conductor and ranks tell each other: JSON, a line a message, over a connection of each rank.

use std::io::{self, BufRead, Write};
use std::net::{SocketAddr, TcpStream};

use planner::execution_plan::{Ending, PlanAction};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a rank reads from its standard input: whom to call, and how to be believed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Greeting {
    pub(super) rank: u32,
    pub(super) conductor: SocketAddr,
    pub(super) secret: String,
}

/// From the conductor to a rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum ToRank {
    /// Where the ranks listen, by rank, and how large messages are.
    Peers { ports: Vec<u16>, content: Content },
    /// What to do in the next iteration.
    Part(Part),
    /// Begin, at a moment of the common clock.
    Begin { at_ns: u64 },
    /// Say where you stand.
    Where,
    /// It is over.
    End,
}

/// What a rank does in one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) iteration: u32,
    /// How many times faster than planned.
    pub(super) speed: f64,
    pub(super) actions: Vec<PlanAction>,
    pub(super) endings: Vec<Ending>,
}

/// How large messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Content {
    /// Bytes of a tensor that one byte stands for.
    pub(super) divisor: u64,
    /// Bytes of a message where the plan does not say the tensor's.
    pub(super) unknown: u32,
    /// Most bytes of a message.
    pub(super) most: u32,
}

impl Content {
    /// Bytes sent for a tensor of that size.
    pub(super) fn of(self, bytes: Option<u64>) -> u32 {
        let scaled = bytes.map_or(u64::from(self.unknown), |bytes| bytes / self.divisor.max(1));
        scaled.min(u64::from(self.most)) as u32
    }
}

/// From a rank to the conductor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum FromRank {
    /// Who calls, and where it listens.
    Hello { rank: u32, secret: String, port: u16 },
    /// It has its list and its connections.
    Ready,
    /// What happened.
    Happened(Vec<Record>),
    /// The iteration is over; processor time used by the process so far.
    Done { processor_ns: u64 },
    /// Index of the action that it is at; the length of its list where it has come to the end.
    At { index: u32 },
    /// What is wrong, in words.
    Fault(String),
}

/// One action, or one transfer, as it happened; times are those of the common clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Index in the rank's list, or behind its end for endings. That of an `isend` or `irecv` is for its transfer.
    pub(super) index: u32,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

/// Sends a message.
pub(super) fn tell(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// Reads the next message; `None` at the end.
pub(super) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if from.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&line)?))
}

/// A connection whose small messages are not held back.
pub(super) fn prompt(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_scaled_and_capped() {
        let content = Content { divisor: 1024, unknown: 4096, most: 65_536 };
        // 32 MiB / 1024 = 32 KiB; 1 GiB / 1024 = 1 MiB, cut to 64 KiB.
        for (bytes, expected) in [(None, 4096), (Some(32 << 20), 32 << 10), (Some(1 << 30), 65_536), (Some(9), 0)] {
            assert_eq!(content.of(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn messages_come_one_by_one() {
        let mut wire = Vec::new();
        tell(&mut wire, &ToRank::Where).unwrap();
        tell(&mut wire, &ToRank::Begin { at_ns: u64::MAX }).unwrap();
        let mut reader = &wire[..];
        assert_eq!(hear::<ToRank>(&mut reader).unwrap(), Some(ToRank::Where));
        assert_eq!(hear::<ToRank>(&mut reader).unwrap(), Some(ToRank::Begin { at_ns: u64::MAX }));
        assert_eq!(hear::<ToRank>(&mut reader).unwrap(), None);
    }
}
