//! Galvatron's profile of hardware: times of collectives, and bandwidths.
//!
//! Both come from nccl-tests (galvatron/core/profiler/hardware_profiler.py). Times are out of place, in milliseconds,
//! sizes in MiB; of an all-to-all, the size is what one device sends: 1 GiB among 8 takes 4.8 ms, 195 GB/s on the bus,
//! where an eighth of it would be 24 GB/s inside a node. A bandwidth is the average bus bandwidth in GB/s over all sizes
//! that were tried, from which no time of any one of them follows.

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};
use planner::units::Seconds;

use super::json::{Leaf, Pairs};
use super::ledger::Ledger;
use super::refused::Refused;
use super::{Format, Hints, Profile, ProfileError};

const MEBIBYTE: f64 = 1_048_576.0;

/// What a key says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Key {
    /// The time of a collective, in milliseconds.
    Time { operation: Operation, ranks: u32, mebibytes: u32 },
    /// An average over sizes.
    Bandwidth,
}

impl Key {
    /// Reads keys like `allreduce_size_8_64MB_time`, `allreduce_size_8_consec_1` and `pp_size_4`.
    pub(super) fn read(key: &str) -> Option<Self> {
        if let Some(stages) = key.strip_prefix("pp_size_") {
            return stages.parse::<u32>().is_ok().then_some(Self::Bandwidth);
        }
        let (collective, rest) = key.split_once("_size_")?;
        let (ranks, rest) = rest.split_once('_')?;
        let operation = match collective {
            "allreduce" => Operation::AllReduce,
            "all2all" => Operation::AllToAll,
            "allgather" => Operation::AllGather,
            "reducescatter" => Operation::ReduceScatter,
            _ => return None,
        };
        let ranks = ranks.parse().ok()?;
        if rest.starts_with("consec_") {
            return Some(Self::Bandwidth);
        }
        let mebibytes = rest.strip_suffix("MB_time")?.parse().ok()?;
        Some(Self::Time { operation, ranks, mebibytes })
    }
}

/// Reads every key.
pub(super) fn read(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let Pairs(pairs): Pairs<Leaf> =
        serde_json::from_str(text).map_err(|error| ProfileError::Json { detail: error.to_string() })?;
    let mut ledger = Ledger::new(Format::Galvatron);
    let device = hints.device(&mut ledger);
    let mut node = Node::new(hints);
    for (key, value) in pairs {
        let place = || key.chars().take(80).collect::<String>();
        let sample = match Key::read(&key) {
            Some(Key::Time { operation, ranks, mebibytes }) => value.positive(place).and_then(|milliseconds| {
                if mebibytes == 0 {
                    return Err(Refused::new("a message without bytes", place()));
                }
                ledger.assume("times are in milliseconds and MB are MiB; of an all-to-all, what one device sends");
                let bytes = f64::from(mebibytes) * MEBIBYTE;
                let ranks_per_node = node.holds(ranks, &mut ledger);
                Ok(Sample {
                    kernel: Kernel::Collective(Collective { operation, bytes, ranks, ranks_per_node }),
                    time: Seconds::from_secs(milliseconds * 1e-3),
                })
            }),
            Some(Key::Bandwidth) => Err(Refused::new(
                "a bandwidth without a message size",
                match value {
                    Leaf::Number(bandwidth) => format!("{key}: {bandwidth} GB/s on the bus, averaged over sizes"),
                    Leaf::Other(what) => format!("{key}: {what}"),
                },
            )),
            None => Err(Refused::new("a key that is not understood", place())),
        };
        ledger.take(place, sample)?;
    }
    ledger.finish(device)
}

/// Devices of a node, which the file leaves out.
#[derive(Debug)]
struct Node {
    size: Option<u32>,
    source: &'static str,
}

impl Node {
    fn new(hints: &Hints) -> Self {
        match (hints.ranks_per_node, hints.ranks_per_node_of_name()) {
            (Some(size), _) => Self { size: Some(size), source: "as given" },
            (None, Some(size)) => Self { size: Some(size), source: "by the file's name" },
            (None, None) => Self { size: None, source: "" },
        }
    }

    /// Devices of a group that are on one node.
    fn holds(&mut self, ranks: u32, ledger: &mut Ledger) -> u32 {
        if let Some(size) = self.size {
            ledger.assume(format!("a node has {size} devices, {}, and groups fill nodes", self.source));
            ranks.min(size)
        } else {
            ledger.assume("all devices of a group are on one node");
            ranks
        }
    }
}
