//! vTrain all-reduce tables, one file per GPU count: nccl-tests columns as CSV.
//!
//! The table contains out-of-place time and bus bandwidth, then in-place time and bus bandwidth.
//! The out-of-place time is used. Both agree within 5 % in the published files, and the minimum of
//! two noisy times would be biased.
//!
//! No column contains the GPU count n. It is derived from bus bandwidth x time / size = 2 (n - 1) /
//! n.

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};

use super::cells::Cells;
use super::ledger::Ledger;
use super::plausible::bus_bytes;
use super::refused::Rejection;
use super::table::{Row, Table};
use super::{Hints, ProfileError};

const SIZE: &str = "size(b)";
/// First of two columns with this name: out-of-place.
const TIME: &str = "time(ns)";
const BUS: &str = "busbw(gb/s)";
const NANOSECOND: f64 = 1e-9;
/// Minimum bus bandwidth. Below it, two decimals are not precise enough to derive the group size.
const MIN_BUS: f64 = 10.0;
/// Maximum relative difference between time and bus bandwidth. 7 and 8 GPUs differ by 2 %.
const AGREE: f64 = 0.01;

pub(super) fn read(table: &mut Table<'_>, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    for column in [SIZE, TIME] {
        if !table.has(column) {
            return Err(ProfileError::MissingColumn { format: ledger.format(), column: column.to_owned() });
        }
    }
    ledger.assume("sizes are in bytes and times in nanoseconds, as the header says");
    ledger.assume("the out-of-place time is used, not the in-place one");
    let mut rows = Vec::new();
    let mut implied = Vec::new();
    while let Some(row) = table.next_row()? {
        let measured = Measured::read(&row);
        if let Ok(Measured { ranks: Some(ranks), .. }) = measured {
            implied.push(ranks);
        }
        rows.push((row.describe(TIME), measured));
        if rows.len() > super::MAX_VALUES {
            return Err(ProfileError::TooManyValues);
        }
    }
    let ranks = ranks(hints, &mut implied, ledger).ok_or(ProfileError::NoRanks)?;
    let ranks_per_node = hints.ranks_per_node.map_or(ranks, |limit| limit.min(ranks));
    if hints.ranks_per_node.is_none() {
        ledger.assume("all devices are on one node");
    }
    for (location, measured) in rows {
        let sample = measured.and_then(|measured| measured.sample(ranks, ranks_per_node, &location));
        ledger.take(|| location.clone(), sample)?;
    }
    Ok(())
}

/// Returns the device count from the hints, the bus bandwidths, or the file name, in this order.
fn ranks(hints: &Hints, implied: &mut [f64], ledger: &mut Ledger) -> Option<u32> {
    if hints.ranks.is_some() {
        return hints.ranks;
    }
    implied.sort_by(f64::total_cmp);
    if let Some(&median) = implied.get(implied.len() / 2) {
        let ranks = median.round() as u32;
        ledger.assume(format!("{ranks} devices took part, because bus bandwidth x time / size is 2 (n - 1) / n"));
        return Some(ranks);
    }
    let ranks = hints.ranks_in_name()?;
    ledger.assume(format!("{ranks} devices took part, by the file's name"));
    Some(ranks)
}

/// A parsed row.
#[derive(Debug)]
struct Measured {
    bytes: f64,
    seconds: f64,
    /// Bus bandwidth in bytes/s, if precise enough.
    bus: Option<f64>,
    /// Device count derived from the bus bandwidth.
    ranks: Option<f64>,
}

impl Measured {
    fn read(row: &Row<'_>) -> Result<Self, Rejection> {
        let bytes = row.size(SIZE)?;
        let seconds = row.time(TIME, NANOSECOND)?.secs();
        let bus = match row.optional(BUS)? {
            Some(_) => Some(row.positive(BUS)?).filter(|&bus| bus >= MIN_BUS).map(|bus| bus * 1e9),
            None => None,
        };
        // Inverts 2 (n - 1) / n = share. Only shares for two or more devices, up to a bound, are
        // usable.
        let ranks = bus.map(|bus| 2.0 / (2.0 - bus * seconds / bytes)).filter(|ranks| (1.9..200.0).contains(ranks));
        Ok(Self { bytes, seconds, bus, ranks })
    }

    fn sample(&self, ranks: u32, ranks_per_node: u32, location: &str) -> Result<Sample, Rejection> {
        let Self { bytes, seconds, .. } = *self;
        let collective = Collective { operation: Operation::AllReduce, bytes, ranks, ranks_per_node };
        if let Some(bus) = self.bus {
            let expected = bus_bytes(&collective) / seconds;
            if (bus / expected - 1.0).abs() > AGREE {
                let [bus, expected] = [bus / 1e9, expected / 1e9];
                return Err(Rejection::new(
                    "time and bus bandwidth contradict each other",
                    format!("{location}: {bus:.2} GB/s, but {expected:.2} follow from the time and {ranks} devices"),
                ));
            }
        }
        let time = planner::units::Seconds::from_secs(seconds);
        Ok(Sample { kernel: Kernel::Collective(collective), time })
    }
}
