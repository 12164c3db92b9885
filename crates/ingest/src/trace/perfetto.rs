//! Perfetto packets with track events: slices, counters and flows.
//!
//! `Trace {1 packet}`, `TracePacket {6 clock_snapshot, 8 timestamp, 10 trusted_packet_sequence_id,
//! 11 track_event, 12 interned_data, 13 sequence_flags, 41 incremental_state_cleared, 58
//! timestamp_clock_id, 59 trace_packet_defaults, 60 track_descriptor}`, `TrackEvent {3
//! category_iids, 6 legacy_event {1 name_iid, 2 phase, 3 duration_us}, 9 type, 10 name_iid, 11
//! track_uuid, 22 categories, 23 name, 30 counter_value, 44 double_counter_value, 47 flow_ids, 48
//! terminating_flow_ids}`. Times are in nanoseconds.
//!
//! Most writers send a name once per packet sequence and then its number. [`Sequence`] resolves the
//! numbers.

mod sequence;
mod tracks;

use std::collections::HashMap;
use std::io::Read;

use super::build::Builder;
use super::kind::Kind;
use super::messages::Messages;
use super::table::Format;
use super::{Limits, Trace, TraceError};
use crate::protobuf::{Broken, Value, fields, varint, varints};
use sequence::Sequence;
use tracks::{Described, Tracks};

/// Packet tag: field 1, length-delimited.
const PACKET: u8 = 0x0a;

/// True if the data starts like a Perfetto trace: a packet with a known first field.
pub(super) fn starts(head: &[u8]) -> bool {
    let Some((&PACKET, rest)) = head.split_first() else { return false };
    let Some((length, used)) = varint(rest) else { return false };
    let packet = &rest[used..];
    let packet = &packet[..packet.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    let known = |field: Result<(u32, Value<'_>), Broken>| {
        field.is_ok_and(|(number, _)| matches!(number, 2 | 3 | 6 | 8 | 10 | 11 | 12 | 13 | 33..=60 | 79 | 87))
    };
    // A packet longer than the buffer is truncated in its last field.
    fields(packet).next().is_some_and(known)
}

/// Packet flag: earlier interned data in this sequence is invalid.
const STATE_CLEARED: u64 = 1;

/// Parser state over all packets.
struct Packets<'b, 'l> {
    tracks: Tracks,
    sequences: HashMap<u64, Sequence>,
    builder: &'b mut Builder<'l>,
    limits: &'b Limits,
}

pub(super) fn read(source: impl Read, limits: &Limits) -> Result<Trace, TraceError> {
    let mut builder = Builder::new(limits);
    let mut messages = Messages::new(source, limits);
    let mut packets = Packets { tracks: Tracks::default(), sequences: HashMap::new(), builder: &mut builder, limits };
    while let Some(packet) = messages.next(Some(PACKET))? {
        packets.builder.report.events += 1;
        let taken = packets.take(packet);
        packets.builder.report.bytes = messages.offset;
        if let Err(Broken { offset }) = taken {
            return Err(messages.broken(format!("byte {offset} of it is no field")));
        }
    }
    builder.report.cut = messages.cut;
    builder.report.bytes = messages.offset;
    builder.finish(Format::Perfetto)
}

impl Packets<'_, '_> {
    fn take(&mut self, packet: &[u8]) -> Result<(), Broken> {
        let (mut time, mut clock, mut sequence, mut cleared) = (None, None, 0, false);
        let (mut event, mut descriptor, mut interned, mut defaults, mut snapshot) = (None, None, None, None, None);
        for field in fields(packet) {
            match field? {
                (6, value) => snapshot = value.bytes(),
                (8, value) => time = value.varint(),
                (10, value) => sequence = value.varint().unwrap_or_default(),
                (11, value) => event = value.bytes(),
                (12, value) => interned = value.bytes(),
                (13, value) => cleared |= value.varint().is_some_and(|flags| flags & STATE_CLEARED != 0),
                (41, value) => cleared |= value.varint() == Some(1),
                (58, value) => clock = value.varint(),
                (59, value) => defaults = value.bytes(),
                (60, value) => descriptor = value.bytes(),
                _ => {}
            }
        }
        if self.sequences.len() >= self.limits.threads && !self.sequences.contains_key(&sequence) {
            self.builder.report.skip("there are more packet sequences than are read");
            return Ok(());
        }
        let state = self.sequences.entry(sequence).or_default();
        if cleared {
            state.clear();
        }
        if let Some(snapshot) = snapshot {
            state.snapshot(snapshot)?;
        }
        if let Some(defaults) = defaults {
            state.set_defaults(defaults)?;
        }
        if let Some(interned) = interned {
            state.intern(interned)?;
        }
        let time_ns = time.map(|time| state.time(time, clock));
        if let Some(descriptor) = descriptor {
            match self.tracks.describe(descriptor, self.limits.threads, self.limits.name_bytes)? {
                Described::Stored => self.builder.report.used += 1,
                Described::TooMany => self.builder.report.skip("there are more threads than can be stored"),
                Described::Anonymous => self.builder.report.skip("a track without an identifier"),
            }
        }
        match (event, time_ns) {
            (Some(event), Some(Some(time_ns))) => self.take_event(event, time_ns, sequence)?,
            (Some(_), Some(None)) => self.builder.report.skip("an event with a clock that the trace does not define"),
            (Some(_), None) => self.builder.report.skip("an event without a time"),
            (None, _) if descriptor.is_some() => {}
            (None, _) if interned.is_some() || defaults.is_some() || snapshot.is_some() => {
                self.builder.report.used += 1;
            }
            (None, _) => self.builder.report.skip("packets of other kinds are not shown"),
        }
        Ok(())
    }

    fn take_event(&mut self, event: &[u8], time_ns: u64, sequence: u64) -> Result<(), Broken> {
        let read = Event::read(event)?;
        if i64::try_from(time_ns).is_err() {
            self.builder.report.skip("a time that is not a number in range");
            return Ok(());
        }
        let Self { tracks, sequences, builder, .. } = self;
        let state = &sequences[&sequence];
        let uuid = read.track.or(state.default_track).unwrap_or_default();
        let (track, group, group_name) = tracks.find(uuid);
        let (group, id) = (group.to_string(), uuid.to_string());
        let process = (group.as_str(), group.as_str());
        if matches!(read.phase, Phase::Counter) {
            let added =
                read.counter.is_some_and(|value| builder.counter(process, &track.name, &track.name, time_ns, value));
            if added {
                builder.report.used += 1;
            } else {
                builder.report.skip("a counter without a number");
            }
            return Ok(());
        }
        let Some(thread) = builder.thread(process, (&id, &id)) else {
            builder.report.skip("there are more threads than can be stored");
            return Ok(());
        };
        if let Some(row) = builder.thread_mut(thread).filter(|row| row.name.is_none() && !track.name.is_empty()) {
            row.name = Some(track.name);
        }
        if let Some(row) =
            builder.process(process.0, process.1).filter(|row| row.name.is_none() && !group_name.is_empty())
        {
            row.name = Some(group_name);
        }
        match read.phase {
            Phase::Begin | Phase::Complete(_) => {
                let category = read.category.as_deref().or(read.category_id.and_then(|id| state.category(id)));
                let interned = read.name_id.and_then(|id| state.name(id));
                let text = match (read.name.as_deref().or(interned), read.name_id) {
                    (Some(text), _) => builder.clip(text).to_owned(),
                    (None, Some(id)) => {
                        builder.report.problem("a name by a number that its sequence does not define");
                        format!("(name {id})")
                    }
                    (None, None) => String::new(),
                };
                let kind = Kind::classify(category.unwrap_or_default(), &text);
                let name = builder.name(&text);
                match read.phase {
                    Phase::Complete(duration_ns) => {
                        builder.slice(thread, time_ns, duration_ns, name, kind);
                    }
                    _ => builder.begin(thread, time_ns, name, kind),
                }
            }
            Phase::End => builder.end(thread, time_ns, None),
            Phase::Counter | Phase::Other => {
                builder.report.skip("instants have no duration and are not shown");
                return Ok(());
            }
        }
        for flow in read.starting {
            builder.flow(&flow.to_string(), thread, time_ns, true, true);
        }
        for flow in read.ending {
            builder.flow(&flow.to_string(), thread, time_ns, false, true);
        }
        Ok(())
    }
}

/// Event phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    Begin,
    End,
    Counter,
    /// A complete slice with duration in nanoseconds, as written by Chrome.
    Complete(u64),
    #[default]
    Other,
}

#[derive(Debug, Default)]
struct Event {
    phase: Phase,
    track: Option<u64>,
    name: Option<String>,
    name_id: Option<u64>,
    category: Option<String>,
    category_id: Option<u64>,
    counter: Option<f64>,
    starting: Vec<u64>,
    ending: Vec<u64>,
}

impl Event {
    fn read(event: &[u8]) -> Result<Self, Broken> {
        let mut read = Self::default();
        for field in fields(event) {
            match field? {
                (3, value) => read.category_id = read.category_id.or(varints(value).next()),
                (6, Value::Bytes(legacy)) => read.legacy(legacy)?,
                (9, value) => {
                    read.phase = match value.varint() {
                        Some(1) => Phase::Begin,
                        Some(2) => Phase::End,
                        Some(4) => Phase::Counter,
                        _ => Phase::Other,
                    }
                }
                (10, value) => read.name_id = value.varint(),
                (11, value) => read.track = value.varint(),
                (22, value) => read.category = read.category.take().or(value.text().map(Into::into)),
                (23, value) => read.name = value.text().map(Into::into),
                (30, value) => read.counter = value.varint().map(|value| value.cast_signed() as f64),
                (44, value) => read.counter = value.double().filter(|value| value.is_finite()),
                (47, Value::Fixed64(flow)) => read.starting.push(flow),
                (48, Value::Fixed64(flow)) => read.ending.push(flow),
                _ => {}
            }
        }
        Ok(read)
    }

    /// Parses the fields of Chrome's legacy event interface.
    fn legacy(&mut self, legacy: &[u8]) -> Result<(), Broken> {
        let (mut phase, mut micros) = (None, None);
        for field in fields(legacy) {
            match field? {
                (1, value) => self.name_id = self.name_id.or(value.varint()),
                (2, value) => phase = value.varint().and_then(|phase| u8::try_from(phase).ok()),
                (3, value) => micros = value.varint(),
                _ => {}
            }
        }
        if self.phase == Phase::Other {
            self.phase = match phase {
                Some(b'B') => Phase::Begin,
                Some(b'E') => Phase::End,
                Some(b'X') => Phase::Complete(micros.unwrap_or_default().saturating_mul(1000).min(i64::MAX as u64)),
                _ => Phase::Other,
            };
        }
        Ok(())
    }
}
