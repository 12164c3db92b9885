//! Simulated and rehearsed times side by side.

use std::fmt;

use serde::Serialize;

use super::agreement::Iteration;
use super::tempo::{AGREEMENT, Tempo};

/// How a rehearsal compares with the simulation. All times are rehearsed times multiplied by the speed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How many times faster than planned.
    pub speed: f64,
    /// Median of how much later than asked a sleeper of this machine wakes, in us.
    pub sleep_us: f64,
    /// Mean of what a message takes, empty and of the largest size, in us.
    pub message_us: [f64; 2],
    /// Share of the machine's one core that a rank used on average.
    pub processor_share: f64,
    /// Every iteration.
    pub iterations: Vec<Compared>,
    /// Every rank, its times averaged over the iterations.
    pub ranks: Vec<ComparedRank>,
    /// Whether every iteration agrees within 3 %.
    pub agrees: bool,
    /// What speaks against the times, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// An iteration.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// Simulated time, in ms.
    pub simulated_ms: f64,
    /// Rehearsed time, in ms.
    pub rehearsed_ms: f64,
    /// (rehearsed - simulated) / simulated.
    pub difference: f64,
}

/// A rank.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ComparedRank {
    /// The rank.
    pub rank: usize,
    /// When it is done.
    #[serde(flatten)]
    pub end: Compared,
    /// How much later than planned any of its computations ended at most, in ms.
    pub latest_ms: f64,
}

impl Compared {
    fn of(simulated_ns: f64, rehearsed_ns: f64) -> Self {
        let difference = if simulated_ns > 0.0 { rehearsed_ns / simulated_ns - 1.0 } else { 0.0 };
        Self { simulated_ms: simulated_ns / 1e6, rehearsed_ms: rehearsed_ns / 1e6, difference }
    }
}

impl Report {
    /// Of iterations that took so many nanoseconds of real time, in which every rank used so much of a processor.
    pub(super) fn new(tempo: &Tempo, iterations: &[Iteration<'_>], real_ns: u64, processor_ns: &[u64]) -> Self {
        let compared: Vec<Compared> = iterations
            .iter()
            .map(|iteration| {
                let (simulated, rehearsed) = iteration.makespans();
                Compared::of(simulated, rehearsed)
            })
            .collect();
        let count = iterations.len().max(1) as f64;
        let ranks = (0..processor_ns.len()).map(|rank| {
            let tallies = || iterations.iter().map(|iteration| iteration.ranks[rank]);
            let planned: f64 = tallies().map(|tally| tally.planned_ns).sum();
            let ended: f64 = tallies().map(|tally| tally.ended_ns).sum();
            let latest = tallies().map(|tally| tally.latest_ns).fold(f64::NEG_INFINITY, f64::max);
            let latest_ms = if latest.is_finite() { latest / 1e6 } else { 0.0 };
            ComparedRank { rank, end: Compared::of(planned / count, ended / count), latest_ms }
        });
        let used: u64 = processor_ns.iter().sum();
        let available = real_ns as f64 * processor_ns.len().max(1) as f64;
        Self {
            speed: tempo.speed,
            sleep_us: tempo.precision.median_ns as f64 / 1e3,
            message_us: [tempo.postage.empty_ns, tempo.postage.full_ns].map(|time| time as f64 / 1e3),
            processor_share: if available > 0.0 { used as f64 / available } else { 0.0 },
            ranks: ranks.collect(),
            agrees: compared.iter().all(|one| one.difference.abs() <= AGREEMENT),
            iterations: compared,
            warning: tempo.warning(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str, one: &Compared, latest: Option<f64>| {
            let latest = latest.map(|latest| format!("{latest:12.3}")).unwrap_or_default();
            let (simulated, rehearsed, difference) = (one.simulated_ms, one.rehearsed_ms, one.difference * 100.0);
            writeln!(f, "{name:<14}{simulated:>14.3}{rehearsed:>14.3}{difference:>10.2} %{latest}")
        };
        writeln!(f, "{:<14}{:>14}{:>14}{:>12}{:>12}", "", "simulated/ms", "rehearsed/ms", "difference", "latest/ms")?;
        for compared in &self.ranks {
            row(f, &format!("rank {}", compared.rank), &compared.end, Some(compared.latest_ms))?;
        }
        for (iteration, compared) in self.iterations.iter().enumerate() {
            row(f, &format!("iteration {}", iteration + 1), compared, None)?;
        }
        let verdict = if self.agrees { "agree within 3 %" } else { "differ by more than 3 %" };
        writeln!(
            f,
            "Simulated and rehearsed times {verdict}. Speed {:.4}; sleepers wake {:.0} us late, messages take {:.0} to {:.0} us; \
             a rank used {:.2} % of a core.",
            self.speed,
            self.sleep_us,
            self.message_us[0],
            self.message_us[1],
            self.processor_share * 100.0
        )?;
        if let Some(warning) = &self.warning {
            writeln!(f, "Warning: {warning}.")?;
        }
        Ok(())
    }
}
