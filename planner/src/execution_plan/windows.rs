//! Where buffers allow a receive to be launched, and where they ask a send to be done.
//!
//! A *slot* is a place in a rank's order of units: slot `s` is before unit `s`, behind unit `s - 1`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::Buffers;
use super::work::{Message, Work};

/// Slots of every message.
pub(super) struct Windows {
    /// The receiver's slot in which its `irecv` is launched.
    pub launch: Vec<usize>,
    /// The receiver's slot in which it must have been launched: something in the channel's order from it on is needed.
    pub need: Vec<usize>,
    /// The sender's slot in which its `wait_isend` stands.
    pub release: Vec<usize>,
}

impl Windows {
    pub(super) fn of(work: &Work, buffers: Buffers) -> Self {
        let mut windows = Self {
            launch: vec![0; work.messages.len()],
            need: work.messages.iter().map(|message| message.to.unit).collect(),
            release: work.messages.iter().map(|message| work.ranks[message.from.rank].len()).collect(),
        };
        for channel in &work.channels {
            let messages = &work.messages[channel.clone()];
            let need = &mut windows.need[channel.clone()];
            for place in (1..need.len()).rev() {
                need[place - 1] = need[place - 1].min(need[place]);
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

/// The earliest slot of each `irecv` at which no more units than `limit` have something launched for them and have not
/// run; never later than needed.
fn launches(messages: &[Message], need: &[usize], limit: NonZeroU32, launch: &mut [usize]) {
    let mut waiting: BTreeSet<usize> = BTreeSet::new();
    let mut slot = 0;
    for (place, message) in messages.iter().enumerate() {
        waiting.insert(message.to.unit);
        while waiting.len() > limit.get() as usize && slot < need[place] {
            let first = waiting.pop_first().expect("more than the limit");
            slot = (first + 1).min(need[place]);
        }
        launch[place] = slot;
    }
}

/// The slot of each `wait_isend`: before the unit that computes into the buffer again.
fn releases(messages: &[Message], limit: NonZeroU32, release: &mut [usize]) {
    let mut units: Vec<usize> = messages.iter().map(|message| message.from.unit).collect();
    units.dedup();
    let mut own = 0;
    for (slot, message) in release.iter_mut().zip(messages) {
        own += usize::from(message.from.unit != units[own]);
        if let Some(&again) = units.get(own + limit.get() as usize) {
            *slot = again;
        }
    }
}
