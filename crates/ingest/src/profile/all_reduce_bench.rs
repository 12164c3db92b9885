//! Output of `all_reduce_bench.py`: either a block per rank and trial for a fixed message size
//! (bigscience), or a payload table (later version by the same author).

use planner::calibration::Sample;
use planner::cost::kernel::{Collective, Kernel, Operation};
use planner::units::Seconds;

use super::ledger::Ledger;
use super::plausible::bus_bytes;
use super::refused::Rejection;
use super::{Format, Hints, Profile, ProfileError};

/// Minimum bandwidth in GB/s. Below it, two decimals are not precise enough to derive a time.
const MIN_BANDWIDTH: f64 = 1.0;

/// True if a text is `all_reduce_bench.py` output.
pub(super) fn is(text: &str) -> bool {
    text.contains("algo throughput:") && text.contains("busbw:") || heading(text).is_some()
}

/// Returns the rank count in `The average bandwidth of all_reduce over 4 ranks (5 warmups / 20
/// trials):`.
fn heading(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("bandwidth of all_reduce")?;
    let (_, rest) = rest.split_once("over ")?;
    rest.split_whitespace().next()?.parse().ok()
}

pub(super) fn read(text: &str, hints: &Hints) -> Result<Profile, ProfileError> {
    let mut ledger = Ledger::new(Format::AllReduceBench);
    let device = hints.device(&mut ledger);
    match heading(text) {
        Some(ranks) => table(text, ranks, hints, &mut ledger)?,
        None => blocks(text, hints, &mut ledger)?,
    }
    ledger.finish(device)
}

fn node(ranks: u32, on_a_node: Option<u32>, hints: &Hints, ledger: &mut Ledger) -> u32 {
    if let Some(limit) = hints.ranks_per_node.or(on_a_node) {
        limit.min(ranks)
    } else {
        ledger.assume("all devices are on one node");
        ranks
    }
}

/// Parses rows `| 32KB | 1.85GBps | 1.23GBps |`: payload, bus bandwidth and algorithm bandwidth.
fn table(text: &str, ranks: u32, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let ranks_per_node = node(ranks, None, hints, ledger);
    for (number, line) in text.lines().enumerate() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let ([payload, bus, ..], true) = (&cells[..], line.trim().starts_with('|')) else { continue };
        let Some(bytes) = payload_bytes(payload) else { continue };
        let location = || format!("row {}: {}", number + 1, line.trim().chars().take(60).collect::<String>());
        let bandwidth = bus.strip_suffix("GBps").and_then(|number| number.trim().parse::<f64>().ok());
        let sample = match bandwidth {
            Some(bandwidth) if bandwidth >= MIN_BANDWIDTH && bandwidth.is_finite() && ranks > 1 => {
                let collective = Collective { operation: Operation::AllReduce, bytes, ranks, ranks_per_node };
                let time = Seconds::from_secs(bus_bytes(&collective) / (bandwidth * 1e9));
                Ok(Sample { kernel: Kernel::Collective(collective), time })
            }
            Some(_) => {
                Err(Rejection::new("a bandwidth below 1 GB/s, whose two decimals are too few for a time", location()))
            }
            None => Err(Rejection::new("a row without a bandwidth in GBps", location())),
        };
        ledger.assume("times follow from the bus bandwidth; payloads are in powers of 1,024");
        ledger.take(location, sample)?;
    }
    Ok(())
}

/// Converts a payload such as `32KB` or `1GB` to bytes.
fn payload_bytes(payload: &str) -> Option<f64> {
    let at = payload.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = payload.split_at(at);
    let factor = match unit.trim() {
        "B" => 1.0,
        "KB" | "KiB" => 1024.0,
        "MB" | "MiB" => 1_048_576.0,
        "GB" | "GiB" => 1_073_741_824.0,
        _ => return None,
    };
    number.trim().parse::<f64>().ok().map(|number| number * factor).filter(|bytes| bytes.is_finite() && *bytes >= 1.0)
}

/// Parses blocks per rank and trial.
///
/// ```text
/// 3:
///  duration: 0.0479 sec
///  algo throughput: 1337346013047.7080 bps, 1337.3460 Gbps
///  busbw: 1003.0095  Gbps
/// ```
///
/// The throughput counts the vector twice, in bits, so busbw / throughput is (n - 1) / n.
fn blocks(text: &str, hints: &Hints, ledger: &mut Ledger) -> Result<(), ProfileError> {
    let number = |line: &str, label: &str| -> Option<f64> {
        let (_, rest) = line.trim().split_once(label)?;
        rest.split_whitespace().next()?.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0)
    };
    let (mut throughput, mut bytes, mut on_a_node) = (None, None, 0_u32);
    let mut trials: Vec<(usize, f64, f64)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        bytes = bytes.or_else(|| number(line, "data size:").map(|gigabytes| gigabytes * 1e9));
        on_a_node = on_a_node.max(number(line, "local_rank:").map_or(0, |rank| rank as u32 + 1));
        if let Some(value) = number(line, "algo throughput:") {
            throughput = Some(value);
        } else if let (Some(bus), Some(bits)) = (number(line, "busbw:"), throughput) {
            trials.push((at + 1, bits, bus * 1e9));
            throughput = None;
        }
        if trials.len() > super::MAX_VALUES {
            return Err(ProfileError::TooManyValues);
        }
    }
    let shares = trials.iter().map(|(_, bits, bus)| bus / bits);
    let share = shares.fold(0.0, f64::max);
    let ranks = hints.ranks.or_else(|| {
        let ranks = 1.0 / (1.0 - share);
        (1.9..1000.0).contains(&ranks).then(|| ranks.round() as u32)
    });
    let ranks = ranks.ok_or(ProfileError::NoRanks)?;
    let bytes = bytes.ok_or_else(|| ProfileError::MissingColumn {
        format: Format::AllReduceBench.name(),
        column: "data size".to_owned(),
    })?;
    let ranks_per_node = node(ranks, Some(on_a_node).filter(|&count| count > 0), hints, ledger);
    ledger.assume(format!("{ranks} devices took part, by the ratio of the two bandwidths"));
    ledger.assume("the first trial of every rank is a warm-up and is left out");
    for (index, (line, bits, _)) in trials.iter().enumerate() {
        let location = || format!("row {line}");
        let sample = if index < ranks as usize {
            Err(Rejection::new("the first trial of a rank", location()))
        } else {
            let collective = Collective { operation: Operation::AllReduce, bytes, ranks, ranks_per_node };
            Ok(Sample { kernel: Kernel::Collective(collective), time: Seconds::from_secs(16.0 * bytes / bits) })
        };
        ledger.take(location, sample)?;
    }
    Ok(())
}
