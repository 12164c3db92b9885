//! Positions for launch and `wait_*` actions under the buffer limits.
//!
//! A slot is a position in a rank's unit order: slot `s` is between unit `s - 1` and unit `s`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::Buffers;
use super::work::{Message, Work};

/// Slots per message.
pub(super) struct Windows {
    /// Receiver slot that launches the `irecv`.
    pub launch: Vec<usize>,
    /// Latest receiver slot for the launch: the unit in this slot consumes this message or a later
    /// message from the channel.
    pub need: Vec<usize>,
    /// Sender slot that contains the `wait_isend`.
    pub release: Vec<usize>,
}

impl Windows {
    pub(super) fn new(work: &Work, buffers: Buffers) -> Self {
        let mut windows = Self {
            launch: vec![0; work.messages.len()],
            need: work.messages.iter().map(|message| message.to.unit).collect(),
            release: work.messages.iter().map(|message| work.ranks[message.from.rank].len()).collect(),
        };
        for channel in &work.channels {
            let messages = &work.messages[channel.clone()];
            let need = &mut windows.need[channel.clone()];
            for index in (1..need.len()).rev() {
                need[index - 1] = need[index - 1].min(need[index]);
            }
            if let Some(limit) = buffers.receive {
                launches(messages, need, limit, &mut windows.launch[channel.clone()]);
            }
            if let Some(limit) = buffers.send {
                releases(messages, limit, &mut windows.release[channel.clone()]);
            }
        }
        windows
    }
}

/// Computes the earliest launch slot for each `irecv` at which at most `limit` pending units have
/// launched receives. A launch is never later than its consumer.
fn launches(messages: &[Message], need: &[usize], limit: NonZeroU32, launch: &mut [usize]) {
    let mut waiting: BTreeSet<usize> = BTreeSet::new();
    let mut slot = 0;
    for (index, message) in messages.iter().enumerate() {
        waiting.insert(message.to.unit);
        while waiting.len() > limit.get() as usize && slot < need[index] {
            let first = waiting.pop_first().expect("more than the limit");
            slot = (first + 1).min(need[index]);
        }
        launch[index] = slot;
    }
}

/// Computes the slot for each `wait_isend`: before the unit that reuses the buffer.
fn releases(messages: &[Message], limit: NonZeroU32, release: &mut [usize]) {
    let mut units: Vec<usize> = messages.iter().map(|message| message.from.unit).collect();
    units.dedup();
    let mut unit = 0;
    for (slot, message) in release.iter_mut().zip(messages) {
        unit += usize::from(message.from.unit != units[unit]);
        if let Some(&again) = units.get(unit + limit.get() as usize) {
            *slot = again;
        }
    }
}
