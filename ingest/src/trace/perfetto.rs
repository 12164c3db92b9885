//! Perfetto's packets, in the subset that Planscope writes: descriptors of tracks, slices, counters and arrows.
//!
//! `Trace {1 packet}`, `TracePacket {8 timestamp, 11 track_event, 60 track_descriptor}`, `TrackDescriptor {1 uuid, 2 name,
//! 5 parent_uuid, 8 counter}`, `TrackEvent {9 type, 11 track_uuid, 22 categories, 23 name, 30 counter_value,
//! 44 double_counter_value, 47 flow_ids, 48 terminating_flow_ids}`. Times are in nanoseconds.

use std::collections::HashMap;
use std::io::Read;

use super::build::Builder;
use super::kind::Kind;
use super::messages::Messages;
use super::table::Format;
use super::{Limits, Trace, TraceError};
use crate::protobuf::{Broken, Value, fields, varint};

/// The tag of a packet: field 1, bytes.
const PACKET: u8 = 0x0a;

/// Whether the bytes start like a trace: a packet of whose fields the first is one of a packet's.
pub(super) fn starts(head: &[u8]) -> bool {
    let Some((&PACKET, rest)) = head.split_first() else { return false };
    let Some((length, used)) = varint(rest) else { return false };
    let packet = &rest[used..];
    let packet = &packet[..packet.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    let known = |field: Result<(u32, Value<'_>), Broken>| {
        field.is_ok_and(|(number, _)| matches!(number, 3 | 6 | 8 | 10 | 11 | 12 | 13 | 33..=60 | 79 | 87))
    };
    // A packet longer than what is seen breaks off in its last field.
    fields(packet).next().is_some_and(known)
}

/// What is known of a track.
#[derive(Debug, Clone, Default)]
struct Track {
    name: String,
    parent: Option<u64>,
}

/// Reads a trace.
pub(super) fn read(source: impl Read, limits: &Limits) -> Result<Trace, TraceError> {
    let mut builder = Builder::new(limits);
    let mut tracks: HashMap<u64, Track> = HashMap::new();
    let mut messages = Messages::new(source, limits);
    while let Some(packet) = messages.next(Some(PACKET))? {
        builder.report.events += 1;
        let taken = take(packet, &mut tracks, &mut builder, limits);
        builder.report.bytes = messages.offset;
        if let Err(Broken { offset }) = taken {
            return Err(messages.broken(format!("byte {offset} of it is no field")));
        }
    }
    builder.report.cut = messages.cut;
    builder.report.bytes = messages.offset;
    builder.finish(Format::Perfetto)
}

fn take(
    packet: &[u8],
    tracks: &mut HashMap<u64, Track>,
    builder: &mut Builder<'_>,
    limits: &Limits,
) -> Result<(), Broken> {
    let (mut time, mut event, mut descriptor) = (None, None, None);
    for field in fields(packet) {
        match field? {
            (8, value) => time = value.varint(),
            (11, value) => event = value.bytes(),
            (60, value) => descriptor = value.bytes(),
            _ => {}
        }
    }
    if let Some(descriptor) = descriptor {
        return describe(descriptor, tracks, builder, limits);
    }
    match (event, time) {
        (Some(event), Some(time)) => take_event(event, time, tracks, builder),
        (Some(_), None) => {
            builder.report.skip("an event without a time");
            Ok(())
        }
        (None, _) => {
            builder.report.skip("packets of other kinds are not shown");
            Ok(())
        }
    }
}

fn describe(
    descriptor: &[u8],
    tracks: &mut HashMap<u64, Track>,
    builder: &mut Builder<'_>,
    limits: &Limits,
) -> Result<(), Broken> {
    let mut uuid = None;
    let mut track = Track::default();
    for field in fields(descriptor) {
        match field? {
            (1, value) => uuid = value.varint(),
            (2, value) => track.name = value.text().unwrap_or_default().chars().take(limits.name_bytes / 4).collect(),
            (5, value) => track.parent = value.varint(),
            _ => {}
        }
    }
    match uuid {
        Some(uuid) if tracks.len() < limits.threads => {
            tracks.insert(uuid, track);
            builder.report.used += 1;
        }
        Some(_) => builder.report.skip("there are more threads than are kept"),
        None => builder.report.skip("a track without an identifier"),
    }
    Ok(())
}

fn take_event(event: &[u8], time: u64, tracks: &HashMap<u64, Track>, builder: &mut Builder<'_>) -> Result<(), Broken> {
    let (mut phase, mut uuid) = (0, 0);
    let (mut name, mut category) = (None, None);
    let mut counter = None;
    let (mut starting, mut ending) = (Vec::new(), Vec::new());
    for field in fields(event) {
        match field? {
            (9, value) => phase = value.varint().unwrap_or_default(),
            (11, value) => uuid = value.varint().unwrap_or_default(),
            (22, value) => category = value.text(),
            (23, value) => name = value.text(),
            (30, value) => counter = value.varint().map(|value| value.cast_signed() as f64),
            (44, value) => counter = value.double().filter(|value| value.is_finite()),
            (47, Value::Fixed64(flow)) => starting.push(flow),
            (48, Value::Fixed64(flow)) => ending.push(flow),
            _ => {}
        }
    }
    if i64::try_from(time).is_err() {
        builder.report.skip("a time that is not a number in range");
        return Ok(());
    }
    let unknown = Track::default();
    let track = tracks.get(&uuid).unwrap_or(&unknown);
    // The track above is the process; a track by itself is both.
    let parent = track.parent.filter(|parent| *parent != uuid).and_then(|parent| Some((parent, tracks.get(&parent)?)));
    let (group, group_name) = parent.map_or((uuid, &track.name), |(parent, track)| (parent, &track.name));
    let (group, own) = (group.to_string(), uuid.to_string());
    let process = (group.as_str(), group.as_str());
    if phase == 4 {
        let kept = counter.is_some_and(|value| builder.counter(process, &track.name, &track.name, time, value));
        if kept {
            builder.report.used += 1;
        } else {
            builder.report.skip("a counter without a number");
        }
        return Ok(());
    }
    let Some(thread) = builder.thread(process, (&own, &own)) else {
        builder.report.skip("there are more threads than are kept");
        return Ok(());
    };
    if let Some(row) = builder.thread_mut(thread).filter(|row| row.name.is_none() && !track.name.is_empty()) {
        row.name = Some(track.name.clone());
    }
    if let Some(row) = builder.process(process.0, process.1).filter(|row| row.name.is_none() && !group_name.is_empty())
    {
        row.name = Some(group_name.clone());
    }
    let category = category.unwrap_or_default();
    match phase {
        1 => {
            let text = name.unwrap_or_default();
            let clipped = builder.clip(&text).to_owned();
            let name = builder.name(&clipped);
            builder.begin(thread, time, name, Kind::of(&category, &clipped));
        }
        2 => builder.end(thread, time, None),
        _ => {
            builder.report.skip("instants have no duration and are not shown");
            return Ok(());
        }
    }
    for flow in starting {
        builder.flow(&flow.to_string(), thread, time, true, true);
    }
    for flow in ending {
        builder.flow(&flow.to_string(), thread, time, false, true);
    }
    Ok(())
}
