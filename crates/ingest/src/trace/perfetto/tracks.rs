//! Tracks: names and parent processes or tracks.

use std::collections::HashMap;

use crate::protobuf::{Broken, Value, fields};

#[derive(Debug, Clone, Default)]
pub(super) struct Track {
    /// Track name, or its thread or process name; possibly empty.
    pub(super) name: String,
    parent: Option<u64>,
    /// Process of a thread track.
    thread_process: Option<u64>,
}

/// Tracks by identifier.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    tracks: HashMap<u64, Track>,
    /// Process tracks by process number.
    processes: HashMap<u64, u64>,
}

/// Result of reading a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Described {
    Stored,
    TooMany,
    Anonymous,
}

impl Tracks {
    /// Reads `TrackDescriptor {1 uuid, 2 name, 3 process {1 pid, 6 process_name}, 4 thread {1 pid,
    /// 5 thread_name}, 5 parent_uuid, 10 static_name}`, unless there are already `most` tracks.
    pub(super) fn describe(
        &mut self,
        descriptor: &[u8],
        max_tracks: usize,
        max_bytes: usize,
    ) -> Result<Described, Broken> {
        let clip =
            |value: Value<'_>| -> String { value.text().unwrap_or_default().chars().take(max_bytes / 4).collect() };
        let mut uuid = None;
        let (mut track_name, mut process_name, mut thread_name) = (String::new(), String::new(), String::new());
        let (mut track, mut process) = (Track::default(), None);
        for field in fields(descriptor) {
            match field? {
                (1, value) => uuid = value.varint(),
                (2 | 10, value) => track_name = clip(value),
                (3, Value::Bytes(message)) => {
                    for field in fields(message) {
                        match field? {
                            (1, value) => process = value.varint(),
                            (6, value) => process_name = clip(value),
                            _ => {}
                        }
                    }
                }
                (4, Value::Bytes(message)) => {
                    for field in fields(message) {
                        match field? {
                            (1, value) => track.thread_process = value.varint(),
                            (5, value) => thread_name = clip(value),
                            _ => {}
                        }
                    }
                }
                (5, value) => track.parent = value.varint(),
                _ => {}
            }
        }
        let Some(uuid) = uuid else { return Ok(Described::Anonymous) };
        if self.tracks.len() >= max_tracks && !self.tracks.contains_key(&uuid) {
            return Ok(Described::TooMany);
        }
        track.name =
            [track_name, thread_name, process_name].into_iter().find(|name| !name.is_empty()).unwrap_or_default();
        if let Some(process) = process {
            self.processes.insert(process, uuid);
        }
        // A later descriptor without a name extends the earlier one.
        if let Some(earlier) =
            self.tracks.get(&uuid).filter(|earlier| track.name.is_empty() && !earlier.name.is_empty())
        {
            track.name.clone_from(&earlier.name);
        }
        self.tracks.insert(uuid, track);
        Ok(Described::Stored)
    }

    /// Returns the track with identifier and name of its parent. A root track is its own parent.
    pub(super) fn find(&self, uuid: u64) -> (Track, u64, String) {
        let track = self.tracks.get(&uuid).cloned().unwrap_or_default();
        let process = track.thread_process.and_then(|process| self.processes.get(&process).copied());
        let above = track.parent.or(process).filter(|above| *above != uuid);
        if let Some((above, found)) = above.and_then(|above| Some((above, self.tracks.get(&above)?))) {
            let name = found.name.clone();
            (track, above, name)
        } else {
            let name = track.name.clone();
            (track, uuid, name)
        }
    }
}
