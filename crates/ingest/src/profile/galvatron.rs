//! Galvatron hardware profile: collective times and bandwidths.
//!
//! Both are measured with nccl-tests (galvatron/core/profiler/hardware_profiler.py). Times are
//! out-of-place in milliseconds, sizes are in MiB. For all-to-all, the size is the send buffer per
//! device: 1 GiB among 8 devices takes 4.8 ms, a bus bandwidth of 195 GB/s. One eighth of this size
//! would give 24 GB/s inside a node. A bandwidth is the mean bus bandwidth in GB/s over message
//! sizes from 16 to 512 MiB. It is converted to the time of a 128 MiB message. `consec_1` groups
//! adjacent devices, `consec_0` distributes a group over the nodes, and `pp_size_N` is a send
//! between two of N stages.

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};
use planner::units::Seconds;

use super::json::{Leaf, Pairs};
use super::ledger::Ledger;
use super::plausible::bus_bytes;
use super::refused::Rejection;
use super::{Format, Hints, Profile, ProfileError};

const MEBIBYTE: f64 = 1_048_576.0;

/// Parsed profile key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Key {
    /// Collective time in milliseconds.
    Time { operation: Operation, ranks: u32, mebibytes: u32 },
    /// Mean all-reduce bus bandwidth in GB/s.
    Bandwidth { ranks: u32, consecutive: bool },
    /// Mean bandwidth between adjacent stages in GB/s, for a pipeline with `stages` stages.
    Pipeline { stages: u32 },
}

impl Key {
    /// Parses keys such as `allreduce_size_8_64MB_time`, `allreduce_size_8_consec_1` and
    /// `pp_size_4`.
    pub(super) fn read(key: &str) -> Option<Self> {
        if let Some(stages) = key.strip_prefix("pp_size_") {
            return stages.parse().ok().map(|stages| Self::Pipeline { stages });
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
        if let Some(consecutive) = rest.strip_prefix("consec_") {
            return (operation == Operation::AllReduce)
                .then_some(Self::Bandwidth { ranks, consecutive: consecutive == "1" });
        }
        let mebibytes = rest.strip_suffix("MB_time")?.parse().ok()?;
        Some(Self::Time { operation, ranks, mebibytes })
    }
}

pub(super) fn read(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let Pairs(pairs): Pairs<Leaf> =
        serde_json::from_str(text).map_err(|error| ProfileError::Json { detail: error.to_string() })?;
    let mut ledger = Ledger::new(Format::Galvatron);
    let device = hints.device(&mut ledger);
    let mut node = Node::new(hints);
    for (key, value) in pairs {
        let location = || key.chars().take(80).collect::<String>();
        let sample = match Key::read(&key) {
            Some(Key::Time { operation, ranks, mebibytes }) => value.positive(location).and_then(|milliseconds| {
                if mebibytes == 0 {
                    return Err(Rejection::new("a message without bytes", location()));
                }
                ledger.assume("times are in milliseconds and MB are MiB; of an all-to-all, what one device sends");
                let bytes = f64::from(mebibytes) * MEBIBYTE;
                let ranks_per_node = node.holds(ranks, &mut ledger);
                Ok(Sample {
                    kernel: Kernel::Collective(Collective { operation, bytes, ranks, ranks_per_node }),
                    time: Seconds::from_secs(milliseconds * 1e-3),
                })
            }),
            Some(Key::Bandwidth { ranks, consecutive }) => value.positive(location).and_then(|bandwidth| {
                let (nodes, on_a_node) = (node.nodes(), node.holds(ranks, &mut ledger));
                let ranks_per_node = if consecutive { on_a_node } else { on_a_node.min((ranks / nodes).max(1)) };
                by_bandwidth(Operation::AllReduce, ranks, ranks_per_node, bandwidth, location, &mut ledger)
            }),
            Some(Key::Pipeline { stages }) => value.positive(location).and_then(|bandwidth| {
                node.holds(stages, &mut ledger);
                let ranks_per_node = if node.nodes() > 1 { 1 } else { 2 };
                by_bandwidth(Operation::SendReceive, 2, ranks_per_node, bandwidth, location, &mut ledger)
            }),
            None => Err(Rejection::new("a key that is not understood", location())),
        };
        ledger.take(location, sample)?;
    }
    ledger.finish(device)
}

/// Returns the time of a 128 MiB message for a bus bandwidth in GB/s.
fn by_bandwidth(
    operation: Operation,
    ranks: u32,
    ranks_per_node: u32,
    bandwidth: f64,
    location: impl Fn() -> String,
    ledger: &mut Ledger,
) -> Result<Sample, Rejection> {
    if ranks < 2 {
        return Err(Rejection::new("a group of one device", location()));
    }
    ledger.assume("a bandwidth is taken for a message of 128 MiB, the middle of Galvatron's sizes of 16 to 512 MiB");
    let collective = Collective { operation, bytes: 128.0 * MEBIBYTE, ranks, ranks_per_node };
    let time = Seconds::from_secs(bus_bytes(&collective) / (bandwidth * 1e9));
    Ok(Sample { kernel: Kernel::Collective(collective), time })
}

/// Devices per node, which the file does not contain.
#[derive(Debug)]
struct Node {
    size: Option<u32>,
    source: &'static str,
    nodes: Option<u32>,
}

impl Node {
    fn new(hints: &Hints) -> Self {
        let nodes = hints.nodes_in_name();
        match (hints.ranks_per_node, hints.ranks_per_node_in_name()) {
            (Some(size), _) => Self { size: Some(size), source: "as given", nodes },
            (None, Some(size)) => Self { size: Some(size), source: "by the file's name", nodes },
            (None, None) => Self { size: None, source: "", nodes },
        }
    }

    /// Returns the node count; 1 if the file name does not contain it.
    fn nodes(&self) -> u32 {
        self.nodes.unwrap_or(1).max(1)
    }

    /// Returns the number of group members per node.
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
