//! Output of nccl-tests and rccl-tests: text with comment lines, or JSON (`-J`).
//!
//! The parser uses the out-of-place time, in the header's unit or in microseconds. `size` refers to
//! the larger buffer: the full vector for all-gather and reduce-scatter, the send buffer per device
//! for all-to-all. Device and node counts come from lines `Rank 3 Group 0 ... on HOST device 3
//! [...] NVIDIA H100 80GB HBM3`, and the collective from the program name. The collective spans the
//! devices in one group.

use std::collections::{BTreeMap, BTreeSet};

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};
use planner::units::Seconds;
use serde::Deserialize;

use super::ledger::Ledger;
use super::refused::Rejection;
use super::{Format, Hints, Profile, ProfileError};

const MICROSECOND: f64 = 1e-6;
/// Minimum bandwidth in GB/s to derive the device count from two decimals.
const MIN_BANDWIDTH: f64 = 10.0;
/// Relative tolerance for the ratio of two bandwidths.
const RATIO_TOLERANCE: f64 = 0.02;
/// Minimum bandwidth in GB/s to compare it with size and time.
const MIN_COMPARED: f64 = 0.1;
/// Ratio of printed bandwidth to size / time that indicates a wrong time unit.
const OTHER_UNIT: f64 = 100.0;

/// Typical devices per node. More devices span several nodes, or a rack with different links.
const USUAL_NODE: u32 = 8;

/// Message if the program's own result check failed.
const FAILED: &str = "the program found wrong values in its results (Out of bounds values: FAILED): do not trust the times of \
                      this machine before that is explained";

/// Text before the program name.
const STARTING: &str = "Collective test starting:";

/// True if a comment line contains the column names.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| columns(body(line)).is_some())
}

/// Removes rank prefixes from `mpirun --tag-output` (`[1,0]<stdout>:`), `srun -l` (`0: `) and
/// others.
fn body(line: &str) -> &str {
    let line = line.trim();
    if let Some((_, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(">:")) {
        return rest.trim();
    }
    let is_tag =
        |tag: &str| !tag.is_empty() && tag.len() < 40 && !tag.contains(|c: char| c.is_whitespace() || c == '#');
    match line.split_once(": ") {
        Some((tag, rest)) if is_tag(tag) => rest.trim(),
        _ => line,
    }
}

/// Returns the column names if the line is the header.
fn columns(line: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = line.strip_prefix('#')?.split_whitespace().collect();
    let is_header = names.first() == Some(&"size") && names.contains(&"count") && names.contains(&"busbw");
    is_header.then_some(names)
}

/// Returns the collective for a program, file or column name; `Some(None)` for a collective that
/// training plans do not use.
#[expect(clippy::option_option, reason = "unknown, known but not planned, and planned are three cases")]
pub(super) fn operation(name: &str) -> Option<Option<Operation>> {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let known = [
        ("allreduce", Some(Operation::AllReduce)),
        ("allgather", Some(Operation::AllGather)),
        ("reducescatter", Some(Operation::ReduceScatter)),
        ("alltoall", Some(Operation::AllToAll)),
        ("all2all", Some(Operation::AllToAll)),
        ("sendrecv", Some(Operation::SendReceive)),
        ("broadcast", None),
        ("hypercube", None),
        ("reduceperf", None),
        ("gatherperf", None),
        ("scatterperf", None),
    ];
    known.into_iter().find(|(word, _)| plain.contains(word)).map(|(_, operation)| operation)
}

/// One program run.
#[derive(Debug, Default)]
#[expect(clippy::option_option, reason = "as of `operation`")]
struct Test {
    operation: Option<Option<Operation>>,
    /// Devices and hosts by group. `NCCL_TESTS_SPLIT` creates several groups.
    groups: BTreeMap<u32, Group>,
    /// Time unit in seconds, if the header contains it.
    unit: Option<f64>,
    rows: Vec<Row>,
}

/// Devices that run a collective together.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Group {
    ranks: u32,
    hosts: BTreeSet<String>,
}

impl Group {
    fn add(&mut self, hostname: String) {
        self.ranks += 1;
        self.hosts.insert(hostname);
    }
}

/// Result for one message size.
#[derive(Debug)]
struct Row {
    location: String,
    measured: Result<Measured, Rejection>,
}

#[derive(Debug, Clone)]
struct Measured {
    bytes: f64,
    seconds: f64,
    algorithm: f64,
    bus: f64,
    reduces: bool,
}

impl Measured {
    fn new(
        location: &str,
        bytes: f64,
        seconds: Option<f64>,
        [algorithm, bus]: [f64; 2],
        redop: &str,
    ) -> Result<Self, Rejection> {
        let seconds = seconds.ok_or_else(|| Rejection::new("a row without an out-of-place time", location))?;
        if bytes <= 0.0 || seconds <= 0.0 || !seconds.is_finite() {
            return Err(Rejection::new("a size or a time that is zero, negative or not finite", location));
        }
        let factor = bytes / seconds / 1e9 / algorithm;
        if algorithm >= MIN_COMPARED && !(1.0 / OTHER_UNIT..=OTHER_UNIT).contains(&factor) {
            return Err(Rejection::new(
                "size over time is not the bandwidth of the row: the time has another unit",
                location,
            ));
        }
        let reduces = !redop.is_empty() && redop != "none";
        Ok(Self { bytes, seconds, algorithm, bus, reduces })
    }
}

pub(super) fn read(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let mut ledger = Ledger::new(Format::NcclTests);
    let mut device = None;
    let mut test = Test::default();
    let mut header: Vec<String> = Vec::new();
    // A file may contain output from several programs.
    let end = |test: &mut Test, ledger: &mut Ledger| {
        if test.rows.is_empty() { Ok(()) } else { std::mem::take(test).finish(hints, ledger) }
    };
    for (number, line) in text.lines().enumerate() {
        let line = body(line);
        if let Some(names) = columns(line) {
            header = names.into_iter().map(str::to_owned).collect();
        } else if line.starts_with('#') {
            if line.contains("nThread") || line.contains(STARTING) {
                end(&mut test, &mut ledger)?;
            }
            if line.contains("Out of bounds values") && line.contains("FAILED") {
                ledger.assume(FAILED);
            }
            if let Some(name) = line.split_once(STARTING).map(|(_, name)| name) {
                test.operation = operation(name);
            }
            if let Some(unit) = unit(line) {
                test.unit = Some(unit);
            }
            if let Some((group, hostname, name)) = rank_line(line) {
                test.groups.entry(group).or_default().add(hostname.to_owned());
                let known = device.get_or_insert_with(|| name.to_owned());
                if known != name {
                    return Err(ProfileError::TwoDevices { first: known.clone(), second: name.to_owned() });
                }
            }
        } else if let Some(word) = line.split_whitespace().find(|word| word.ends_with("_perf")) {
            end(&mut test, &mut ledger)?;
            test.operation = operation(word).or(test.operation);
        } else if line.starts_with(|c: char| c.is_ascii_digit()) && !header.is_empty() {
            let location = format!("row {}", number + 1);
            let measured = row(line, &header, test.unit.unwrap_or(MICROSECOND), &location);
            test.rows.push(Row { location, measured });
            if test.rows.len() > super::MAX_VALUES {
                return Err(ProfileError::TooManyValues);
            }
        }
    }
    test.finish(hints, &mut ledger)?;
    let device = device.or_else(|| hints.device(&mut ledger));
    ledger.finish(device)
}

/// Parses group, host and device name in `#  Rank  3 Group  0 Pid 99 on host device  3 [0000:61:00]
/// NVIDIA H100 80GB HBM3`.
fn rank_line(line: &str) -> Option<(u32, &str, &str)> {
    let rest = line.trim_start_matches('#').trim().strip_prefix("Rank")?;
    let (before, rest) = rest.split_once(" on ")?;
    let (hostname, rest) = rest.trim().split_once(" device ")?;
    let (_, name) = rest.split_once(']')?;
    let group = before.split_once("Group").and_then(|(_, after)| after.split_whitespace().next()?.parse().ok());
    Some((group.unwrap_or(0), hostname.trim(), name.trim()))
}

/// Parses the time unit in the line after the column names: `#  (B)  (elements)  (us)  (GB/s)`.
fn unit(line: &str) -> Option<f64> {
    let terms = || line.split_whitespace();
    terms().find(|word| *word == "(B)")?;
    terms().find_map(|word| match word {
        "(ns)" => Some(1e-9),
        "(us)" => Some(MICROSECOND),
        "(ms)" => Some(1e-3),
        "(s)" | "(sec)" => Some(1.0),
        _ => None,
    })
}

fn row(line: &str, header: &[String], unit: f64, location: &str) -> Result<Measured, Rejection> {
    let cells: Vec<&str> = line.split_whitespace().collect();
    let cell = |name: &str| header.iter().position(|column| column == name).and_then(|at| cells.get(at).copied());
    let number = |name: &str| cell(name).and_then(|cell| cell.parse::<f64>().ok()).filter(|value| value.is_finite());
    let description = || format!("{location}: {}", line.chars().take(60).collect::<String>());
    let bytes = number("size").ok_or_else(|| Rejection::new("a row without a size", description()))?;
    let bandwidths = ["algbw", "busbw"].map(|name| number(name).unwrap_or_default());
    let time = number("time").or_else(|| number("cputime"));
    // The first such column belongs to the out-of-place run.
    if number("#wrong").is_some_and(|wrong| wrong > 0.0) {
        return Err(wrong(description()));
    }
    Measured::new(&description(), bytes, time.map(|time| time * unit), bandwidths, cell("redop").unwrap_or_default())
}

/// Error for a row with incorrect collective results.
fn wrong(location: String) -> Rejection {
    Rejection::new("a row whose results are wrong (#wrong is not 0)", location)
}

impl Test {
    /// Returns the devices in one group. Concurrent groups must have equal sizes.
    fn group(&self, ledger: &mut Ledger) -> Result<Group, ProfileError> {
        let mut groups = self.groups.values();
        let Some(first) = groups.next() else { return Ok(Group::default()) };
        let shape = |group: &Group| (group.ranks, group.hosts.len());
        if groups.any(|group| shape(group) != shape(first)) {
            return Err(ProfileError::UnequalGroups);
        }
        if self.groups.len() > 1 {
            ledger.assume(format!(
                "{} groups of {} devices run at the same time: a collective has the devices of one group",
                self.groups.len(),
                first.ranks
            ));
        }
        Ok(first.clone())
    }

    fn finish(self, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        ledger.assume(match self.unit {
            Some(unit) if unit > MICROSECOND => "the out-of-place time is used, in the unit of the header",
            _ => "the out-of-place time is used, in microseconds",
        });
        let group = self.group(ledger)?;
        let named = self.operation.or_else(|| {
            let by_name = operation(&hints.name);
            if by_name.is_some() {
                ledger.assume("the collective is that of the file's name");
            }
            by_name
        });
        let clear: Vec<&Measured> = self
            .rows
            .iter()
            .filter_map(|row| row.measured.as_ref().ok())
            .filter(|measured| measured.algorithm >= MIN_BANDWIDTH && measured.bus > 0.0)
            .collect();
        let mut ratios: Vec<f64> = clear.iter().map(|measured| measured.bus / measured.algorithm).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios.get(ratios.len() / 2).copied();
        let reduces = clear.iter().all(|measured| measured.reduces);
        let known = if group.ranks > 0 { Some(group.ranks) } else { hints.ranks };
        let operation = match named {
            Some(operation) => operation,
            None => Some(by_ratio(ratio, known, reduces).ok_or(ProfileError::NoCollective)?),
        };
        let Some(operation) = operation else {
            for row in self.rows {
                let rejection = Rejection::new("a collective that training plans do not hold", row.location.clone());
                ledger.take(|| row.location.clone(), Err(rejection))?;
            }
            return Ok(());
        };
        let by_bandwidth = || {
            let ranks = ratio.and_then(|ratio| ranks_by(operation, ratio))?;
            Some((ranks, format!("{ranks} devices took part, by the ratio of the two bandwidths")))
        };
        let ranks = if let Some(ranks) = known {
            // The printed ratio depends on the number of participating devices.
            let is_other = ratio.is_some_and(|ratio| !matches_ratio(operation, ranks, ratio));
            match by_bandwidth().filter(|_| is_other) {
                Some((other, reason)) => {
                    ledger.assume(format!("{reason}; the lines of the ranks or the given number are {ranks}"));
                    other
                }
                None => ranks,
            }
        } else if operation == Operation::SendReceive {
            ledger.assume("a send and receive has two ends");
            2
        } else {
            let (ranks, reason) = by_bandwidth().ok_or(ProfileError::NoRanks)?;
            ledger.assume(reason);
            ranks
        };
        let ranks_per_node = match (hints.ranks_per_node, group.hosts.len() as u32) {
            (Some(stated), _) => stated.min(ranks),
            (None, 0) if hints.ranks_per_node_in_name().is_some() => {
                let stated = hints.ranks_per_node_in_name().unwrap_or(ranks);
                ledger.assume(format!("a node has {stated} devices, by the file's name"));
                stated.clamp(1, ranks)
            }
            (None, 0) if ranks > USUAL_NODE => return Err(ProfileError::NoNodes { ranks }),
            (None, 0) => {
                ledger.assume("all devices are on one node");
                ranks
            }
            (None, hosts) => (known.unwrap_or(ranks) / hosts).max(1),
        };
        // A send and receive involves two devices, regardless of concurrent pairs.
        let ranks = if operation == Operation::SendReceive { 2 } else { ranks };
        let ranks_per_node = ranks_per_node.min(ranks);
        for Row { location, measured } in self.rows {
            let sample = measured.and_then(|measured| {
                if ranks < 2 {
                    return Err(Rejection::new("a collective of one device", location.clone()));
                }
                let bytes = measured.bytes;
                let kernel = Kernel::Collective(Collective { operation, bytes, ranks, ranks_per_node });
                Ok(Sample { kernel, time: Seconds::from_secs(measured.seconds) })
            });
            ledger.take(|| location.clone(), sample)?;
        }
        Ok(())
    }
}

/// True if a ratio of bus to algorithm bandwidth matches `ranks` devices.
fn matches_ratio(operation: Operation, ranks: u32, ratio: f64) -> bool {
    let share = 1.0 - 1.0 / f64::from(ranks.max(1));
    let expected = match operation {
        Operation::AllReduce => 2.0 * share,
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => share,
        Operation::SendReceive => return true,
    };
    (ratio - expected).abs() <= RATIO_TOLERANCE * expected
}

/// Returns the collective for the ratio of bus to algorithm bandwidth: 2 (n - 1) / n is all-reduce,
/// and among reducing collectives (n - 1) / n is reduce-scatter. Other collectives cannot be
/// distinguished.
fn by_ratio(ratio: Option<f64>, ranks: Option<u32>, reduces: bool) -> Option<Operation> {
    let share = ranks.filter(|&ranks| ranks > 1 && reduces).map(|ranks| 1.0 - 1.0 / f64::from(ranks))?;
    let near = |expected: f64| ratio.is_some_and(|ratio| (ratio / expected - 1.0).abs() < RATIO_TOLERANCE);
    if near(2.0 * share) { Some(Operation::AllReduce) } else { near(share).then_some(Operation::ReduceScatter) }
}

/// Derives the device count from the ratio of bus to algorithm bandwidth.
fn ranks_by(operation: Operation, ratio: f64) -> Option<u32> {
    let ranks = match operation {
        Operation::AllReduce => 2.0 / (2.0 - ratio),
        Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => 1.0 / (1.0 - ratio),
        Operation::SendReceive => 2.0,
    };
    (1.9..200.0).contains(&ranks).then(|| ranks.round() as u32)
}

/// JSON document written by `-J`.
#[derive(Debug, Deserialize)]
struct Document {
    #[serde(default)]
    args: serde_json::Value,
    #[serde(default)]
    config: Config,
    results: Vec<ResultRow>,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(default)]
    devices: Vec<DeviceRow>,
}

#[derive(Debug, Deserialize)]
struct DeviceRow {
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    device_info: String,
    #[serde(default)]
    group: u32,
}

#[derive(Debug, Deserialize)]
struct ResultRow {
    size: f64,
    #[serde(default)]
    redop: String,
    #[serde(default)]
    experiment_name: Option<String>,
    #[serde(default)]
    out_of_place: Option<BufferResult>,
}

#[derive(Debug, Deserialize)]
struct BufferResult {
    #[serde(alias = "cpu_time")]
    time: Option<f64>,
    alg_bw: Option<f64>,
    bus_bw: Option<f64>,
    /// Number of wrong values, or text if results were not checked.
    #[serde(default)]
    nwrong: serde_json::Value,
}

pub(super) fn read_json(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let document: Document =
        serde_json::from_str(text).map_err(|error| ProfileError::Json { detail: error.to_string() })?;
    let mut ledger = Ledger::new(Format::NcclTests);
    let named = document.results.iter().find_map(|row| operation(row.experiment_name.as_deref()?));
    let mut groups = BTreeMap::<u32, Group>::new();
    for device in &document.config.devices {
        groups.entry(device.group).or_default().add(device.hostname.clone());
    }
    let rows = document.results.into_iter().enumerate().map(|(number, row)| {
        let location = format!("result {}", number + 1);
        let wrong_values = row.out_of_place.as_ref().and_then(|result| result.nwrong.as_f64());
        if wrong_values.is_some_and(|count| count > 0.0) {
            let measured = Err(wrong(location.clone()));
            return Row { location, measured };
        }
        let (time, bandwidths) = row.out_of_place.map_or((None, [0.0; 2]), |result| {
            (result.time, [result.alg_bw, result.bus_bw].map(Option::unwrap_or_default))
        });
        let seconds = time.map(|micros| micros * MICROSECOND);
        let measured = Measured::new(&location, row.size, seconds, bandwidths, row.redop.trim());
        Row { location, measured }
    });
    let test = Test {
        operation: named.or_else(|| operation(&document.args.to_string())),
        groups,
        unit: None,
        rows: rows.collect(),
    };
    test.finish(hints, &mut ledger)?;
    let named = document.config.devices.into_iter().map(|device| device.device_info).find(|name| !name.is_empty());
    let device = named.or_else(|| hints.device(&mut ledger));
    ledger.finish(device)
}
