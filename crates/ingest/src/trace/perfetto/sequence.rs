//! State of a packet sequence: interned strings, defaults and sequence-scoped clocks.

use std::collections::HashMap;

use crate::protobuf::{Broken, Value, fields};

/// First identifier of sequence-scoped clocks. Smaller identifiers are shared, larger ones global.
const FIRST_SEQUENCE_CLOCK: u64 = 64;
const LAST_SEQUENCE_CLOCK: u64 = 127;
/// Maximum interned strings per sequence, and maximum string length in bytes.
const MAX_TEXTS: usize = 1 << 20;
const MAX_BYTES: usize = 4096;

/// State of a packet sequence. A packet with the flag `SEQ_INCREMENTAL_STATE_CLEARED` resets it.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    names: HashMap<u64, Box<str>>,
    categories: HashMap<u64, Box<str>>,
    /// Track for events without a track.
    pub(super) default_track: Option<u64>,
    default_clock: Option<u64>,
    clocks: HashMap<u64, Clock>,
}

/// A sequence-scoped clock.
#[derive(Debug, Clone, Copy)]
struct Clock {
    unit_ns: u64,
    is_incremental: bool,
    /// Value at the snapshot; for an incremental clock, at the last packet.
    value: u64,
    /// Shared clock time at this value in nanoseconds.
    time_ns: u64,
}

impl Sequence {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds strings from `InternedData {1 event_categories, 2 event_names}` with entries `{1 iid, 2
    /// name}`.
    pub(super) fn intern(&mut self, data: &[u8]) -> Result<(), Broken> {
        for field in fields(data) {
            let (number, Value::Bytes(entry)) = field? else { continue };
            let texts = match number {
                1 => &mut self.categories,
                2 => &mut self.names,
                _ => continue,
            };
            let (mut id, mut text) = (None, None);
            for field in fields(entry) {
                match field? {
                    (1, value) => id = value.varint(),
                    (2, value) => text = value.text(),
                    _ => {}
                }
            }
            if let (Some(id), Some(text)) = (id, text)
                && (texts.len() < MAX_TEXTS || texts.contains_key(&id))
            {
                texts.insert(id, text.chars().take(MAX_BYTES / 4).collect());
            }
        }
        Ok(())
    }

    /// Reads `TracePacketDefaults {11 track_event_defaults {11 track_uuid}, 58
    /// timestamp_clock_id}`.
    pub(super) fn set_defaults(&mut self, defaults: &[u8]) -> Result<(), Broken> {
        (self.default_track, self.default_clock) = (None, None);
        for field in fields(defaults) {
            match field? {
                (11, Value::Bytes(event)) => {
                    for field in fields(event) {
                        if let (11, value) = field? {
                            self.default_track = value.varint();
                        }
                    }
                }
                (58, value) => self.default_clock = value.varint(),
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads `ClockSnapshot {1 clocks {1 clock_id, 2 timestamp, 3 is_incremental, 4
    /// unit_multiplier_ns}}`.
    pub(super) fn snapshot(&mut self, snapshot: &[u8]) -> Result<(), Broken> {
        let mut sequence_clocks = Vec::new();
        let mut shared_ns = None;
        for field in fields(snapshot) {
            let (1, Value::Bytes(clock)) = field? else { continue };
            let (mut id, mut value, mut is_incremental, mut unit_ns) = (0, 0, false, 1);
            for field in fields(clock) {
                match field? {
                    (1, field) => id = field.varint().unwrap_or_default(),
                    (2, field) => value = field.varint().unwrap_or_default(),
                    (3, field) => is_incremental = field.varint() == Some(1),
                    (4, field) => unit_ns = field.varint().unwrap_or(1).max(1),
                    _ => {}
                }
            }
            if (FIRST_SEQUENCE_CLOCK..=LAST_SEQUENCE_CLOCK).contains(&id) {
                sequence_clocks.push((id, Clock { unit_ns, is_incremental, value, time_ns: 0 }));
            } else if id < FIRST_SEQUENCE_CLOCK {
                shared_ns = shared_ns.or(Some(value.saturating_mul(unit_ns)));
            }
        }
        for (id, clock) in sequence_clocks {
            let time_ns = shared_ns.unwrap_or_else(|| clock.value.saturating_mul(clock.unit_ns));
            self.clocks.insert(id, Clock { time_ns, ..clock });
        }
        Ok(())
    }

    /// Returns the packet time on a shared clock in nanoseconds, or `None` for an unknown clock.
    /// Incremental clock timestamps are differences from the previous packet.
    pub(super) fn time(&mut self, timestamp: u64, clock: Option<u64>) -> Option<u64> {
        let Some(id) =
            clock.or(self.default_clock).filter(|id| (FIRST_SEQUENCE_CLOCK..=LAST_SEQUENCE_CLOCK).contains(id))
        else {
            return Some(timestamp);
        };
        let clock = self.clocks.get_mut(&id)?;
        if clock.is_incremental {
            clock.value = clock.value.saturating_add(timestamp);
            clock.time_ns = clock.time_ns.saturating_add(timestamp.saturating_mul(clock.unit_ns));
            return Some(clock.time_ns);
        }
        let (later, units) = (timestamp >= clock.value, timestamp.abs_diff(clock.value));
        let distance = units.saturating_mul(clock.unit_ns);
        Some(if later { clock.time_ns.saturating_add(distance) } else { clock.time_ns.saturating_sub(distance) })
    }

    pub(super) fn name(&self, id: u64) -> Option<&str> {
        self.names.get(&id).map(AsRef::as_ref)
    }

    pub(super) fn category(&self, id: u64) -> Option<&str> {
        self.categories.get(&id).map(AsRef::as_ref)
    }
}
