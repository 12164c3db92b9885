//! Steps that begin again in each epoch.

use std::collections::BTreeMap;

use crate::log::point::Point;
use crate::log::report::Report;

/// Maximum number of epochs with separate offsets.
const MAX_EPOCHS: usize = 100_000;

/// Steps before each epoch, if the log numbers steps within the epoch.
#[derive(Debug, Clone, Default)]
pub(super) struct Epochs {
    offsets: BTreeMap<u64, u64>,
    last: Option<Last>,
}

/// Last row of the current epoch.
#[derive(Debug, Clone, Copy)]
struct Last {
    epoch: u64,
    /// Step in the log.
    step: u64,
    /// Steps between the last two rows; 0 for the first row.
    interval: u64,
    has_loss: bool,
}

impl Epochs {
    /// Numbers the step of a row on from earlier epochs.
    pub(super) fn number(&mut self, point: &mut Point, report: &mut Report) {
        let epoch = point.others.iter().find(|other| other.name.eq_ignore_ascii_case("epoch")).map(|other| other.value);
        let Some(epoch) = epoch.filter(|epoch| epoch.fract() == 0.0 && (0.0..1e9).contains(epoch)) else { return };
        let (epoch, step, has_loss) = (epoch as u64, point.step, point.loss.is_some());
        let now = Last { epoch, step, interval: 0, has_loss };
        let Some(last) = &mut self.last else {
            self.offsets.insert(epoch, 0);
            self.last = Some(now);
            return;
        };
        if let Some(offset) = self.offsets.get(&epoch) {
            point.step = step.saturating_add(*offset);
            if epoch == last.epoch && step > last.step {
                *last = Last { interval: step - last.step, has_loss: last.has_loss || has_loss, ..now };
            }
            return;
        }
        if epoch < last.epoch || self.offsets.len() >= MAX_EPOCHS {
            return;
        }
        let before = self.offsets.get(&last.epoch).copied().unwrap_or_default();
        // An evaluation after the last step can have the number of the next epoch.
        let is_same = step == last.step && has_loss && last.has_loss;
        let mut offset = before;
        if step < last.step || is_same {
            let interval = if last.interval > 0 { last.interval } else { step.max(1) };
            offset = before.saturating_add(last.step + interval - step);
            report.assume(
                "the steps begin again in each epoch: they are numbered on from the last row of the epoch before",
            );
        }
        self.offsets.insert(epoch, offset);
        *last = Last { interval: last.interval, ..now };
        point.step = step.saturating_add(offset);
    }
}
