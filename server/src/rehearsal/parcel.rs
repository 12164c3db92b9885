//! What travels between ranks: parcels with a header, and the receiver's word that it is ready for the next.

use std::io::{self, Read, Write};

use planner::execution_plan::{Payload, PlanAction};

/// Begins every parcel: a stream that lost its place is found at once.
const MAGIC: u32 = 0x504c_5343;
const HEADER: usize = 56;
/// No parcel is larger.
pub(super) const LARGEST: u32 = 1 << 20;

/// Which tensor a parcel is, as both ends name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) iteration: u32,
    /// Place among the parcels of its channel in this iteration.
    pub(super) place: u32,
    /// The plan's own number of it.
    pub(super) tag: u32,
    pub(super) payload: Payload,
    /// Stage and microbatch of the sender.
    pub(super) from: (u32, u32),
    /// Stage and microbatch of the receiver.
    pub(super) to: (u32, u32),
}

impl Label {
    /// The label that a launch asks for, `place` launches of its channel standing before it; `None` for a stage.
    pub(super) fn of(action: &PlanAction, iteration: u32, place: u32, sends: bool) -> Option<Self> {
        let transfer = action.transfer?;
        let own = (action.stage, action.microbatch);
        let peer = (transfer.peer_stage, transfer.peer_microbatch);
        let (from, to) = if sends { (own, peer) } else { (peer, own) };
        Some(Self { iteration, place, tag: transfer.tag, payload: transfer.payload, from, to })
    }
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tag, payload, from, to, .. } = self;
        write!(f, "the {} of stage {}, microbatch {}", payload.name(), from.0, from.1)?;
        write!(f, ", for stage {}, microbatch {} (tag {tag})", to.0, to.1)
    }
}

/// A parcel that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parcel {
    pub(super) label: Label,
    /// When its transfer began, in ns of the common clock.
    pub(super) begin_ns: u64,
    /// Until when it lasts.
    pub(super) due_ns: u64,
}

/// Sends a parcel with so many bytes of content.
pub(super) fn send(mut to: impl Write, parcel: &Parcel, bytes: u32) -> io::Result<()> {
    let Label { iteration, place, tag, payload, from, to: goal } = parcel.label;
    let kind = u32::from(payload == Payload::Gradient);
    let mut message = Vec::with_capacity(HEADER + bytes as usize);
    for word in [MAGIC, iteration, place, tag, kind, from.0, from.1, goal.0, goal.1, bytes] {
        message.extend_from_slice(&word.to_le_bytes());
    }
    message.extend_from_slice(&parcel.begin_ns.to_le_bytes());
    message.extend_from_slice(&parcel.due_ns.to_le_bytes());
    message.resize(HEADER + bytes as usize, place as u8);
    to.write_all(&message)
}

/// Receives a parcel; its content is looked at and dropped.
pub(super) fn receive(mut from: impl Read, content: &mut Vec<u8>) -> io::Result<Parcel> {
    let mut header = [0; HEADER];
    from.read_exact(&mut header)?;
    let word = |index: usize| u32::from_le_bytes(header[4 * index..4 * index + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    let bytes = word(9);
    if word(0) != MAGIC || bytes > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that is no parcel"));
    }
    content.resize(bytes as usize, 0);
    from.read_exact(content)?;
    let place = word(2);
    if content.iter().any(|&byte| byte != place as u8) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the content of a parcel is not what was sent"));
    }
    let payload = if word(4) == 0 { Payload::Activation } else { Payload::Gradient };
    let label =
        Label { iteration: word(1), place, tag: word(3), payload, from: (word(5), word(6)), to: (word(7), word(8)) };
    Ok(Parcel { label, begin_ns: long(40), due_ns: long(48) })
}

/// The receiver's word that it launched its next receive, and when.
pub(super) fn send_ready(mut to: impl Write, at_ns: u64) -> io::Result<()> {
    to.write_all(&at_ns.to_le_bytes())
}

/// When the receiver launched its next receive.
pub(super) fn receive_ready(mut from: impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parcel_arrives_as_it_was_sent() {
        let label = Label { iteration: 3, place: 300, tag: 7, payload: Payload::Gradient, from: (5, 1), to: (4, 9) };
        let parcel = Parcel { label, begin_ns: u64::MAX - 1, due_ns: 12 };
        let mut wire = Vec::new();
        send(&mut wire, &parcel, 100).unwrap();
        assert_eq!(wire.len(), HEADER + 100);
        let mut content = Vec::new();
        assert_eq!(receive(&wire[..], &mut content).unwrap(), parcel);
        // 300 = 44 modulo 256.
        assert_eq!(content, [44; 100]);
        for (at, byte) in [(0, 0), (HEADER + 50, 1), (39, 255)] {
            let mut broken = wire.clone();
            broken[at] = byte;
            assert_eq!(receive(&broken[..], &mut content).unwrap_err().kind(), io::ErrorKind::InvalidData, "{at}");
        }
        assert!(receive(&wire[..wire.len() - 1], &mut content).is_err());
    }
}
