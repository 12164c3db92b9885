//! Candidate strategies for a dataset (Hydraulis Sec. 7).

use super::rounding::round;
use super::scheme::SchemeCost;

/// Resolution for the relaxed dynamic program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProposalSettings {
    /// Length step in tokens.
    pub length_step: u64,
    /// Step for pipelines, as a fraction of a pipeline.
    pub device_step: f64,
}

impl Default for ProposalSettings {
    /// The values in the paper: 128 tokens and 0.1 pipelines.
    fn default() -> Self {
        Self { length_step: 128, device_step: 0.1 }
    }
}

/// Maximum number of length steps. The dynamic program is cubic in this number.
const MAX_STEPS: u64 = 512;

impl ProposalSettings {
    /// Returns the paper's values for lengths up to 64K tokens. For longer sequences, the length
    /// step increases in proportion.
    pub fn up_to(max_length: u64) -> Self {
        let Self { length_step, device_step } = Self::default();
        Self { length_step: length_step * max_length.div_ceil(length_step * MAX_STEPS).max(1), device_step }
    }
}

/// Best relaxed strategy for all sequences up to a length.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxed {
    /// Maximum sequence length, L.
    pub max_length: u64,
    /// t[N][L] in seconds for the full dataset (Hydraulis Eq. 4).
    pub seconds: f64,
    /// Number of pipelines per scheme, fractional.
    pub copies: Vec<f64>,
}

/// A candidate strategy with an integer number of pipelines.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Number of pipelines per scheme.
    pub copies: Vec<u32>,
    /// Total number of devices.
    pub devices: u32,
    /// Maximum MaxLen of the pipelines.
    pub max_len: u64,
    /// Minimum and maximum L for which the strategy was rounded from the relaxed strategy.
    pub proposed_for: (u64, u64),
}

/// Proposed strategies for a dataset.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Best relaxed strategies in ascending order of L, at each change of the strategy.
    pub relaxed: Vec<Relaxed>,
    /// The homogeneous strategies, then the rounded strategies, unique and in discovery order.
    pub strategies: Vec<Candidate>,
}

/// Error for an input without a valid strategy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProposalError {
    /// The length list is empty.
    #[error("there are no sequences")]
    Empty,
    /// A step is not positive.
    #[error("steps must be positive: {field}")]
    Step {
        /// Field name.
        field: &'static str,
    },
    /// A scheme contains invalid fields.
    #[error("scheme {scheme}: {} wrong", fields.join(", "))]
    Scheme {
        /// Index of the scheme.
        scheme: u32,
        /// Names of the invalid fields.
        fields: Vec<&'static str>,
    },
    /// A length or sequence count is invalid.
    #[error("entry {entry} of the lengths: at least one token and a count above zero are needed")]
    Length {
        /// Index of the entry.
        entry: u32,
    },
    /// MaxLen is zero for all schemes.
    #[error("no scheme holds any sequence: every MaxLen is zero")]
    NoCapacity,
    /// All schemes need more devices than available.
    #[error("the smallest scheme that holds anything needs {smallest} devices, there are {devices}")]
    TooFewDevices {
        /// Devices of the smallest scheme with MaxLen above zero.
        smallest: u32,
        /// Available devices.
        devices: u32,
    },
    /// A sequence exceeds MaxLen in all schemes that fit on the devices.
    #[error("the longest sequence has {tokens} tokens, the roomiest scheme on {devices} devices holds {max_len}")]
    TooLong {
        /// Sequence length in tokens.
        tokens: u64,
        /// Maximum MaxLen of the schemes that fit.
        max_len: u64,
        /// Available devices.
        devices: u32,
    },
}

/// Relative precision of the bisection for t[N][L].
const PRECISION: f64 = 1e-6;
/// Maximum number of integer strategies per relaxed strategy, selected by a quick time estimate.
const NEAREST: usize = 6;

/// Proposes strategies for `devices` devices. `lengths` contains pairs of length in tokens and
/// number of sequences.
///
/// Hydraulis Eq. 4 fills a table t[n][l], but only the entries for n = N are needed. t[N][l] <= t
/// holds if and only if the sequences up to l can be split into intervals, each assigned to the
/// minimum number of pipelines that finishes by t, within N devices in total. Therefore the
/// function bisects t. For a given t it computes the minimum number of devices, g[l] = min over
/// schemes k and cuts l' of g[l'] + N(P_k) d_k(l', l). The cost does not depend on N. A cut l' and
/// all shorter cuts are skipped if a lower bound that ignores rounding already exceeds the current
/// minimum.
///
/// The homogeneous strategy for each scheme is always a candidate. Hydraulis Eq. 4 uses averages
/// and ignores the latency of single sequences, so for some batches a homogeneous strategy is
/// optimal.
pub fn propose(
    lengths: &[(u64, f64)],
    devices: u32,
    schemes: &[SchemeCost],
    settings: ProposalSettings,
) -> Result<Proposal, ProposalError> {
    let table = Table::new(lengths, devices, schemes, settings)?;
    let mut relaxed: Vec<Relaxed> = Vec::new();
    let mut strategies: Vec<Candidate> = Vec::new();
    let shortest = table.max_lengths[0];
    for &(scheme, size, max_len) in table.schemes.iter().filter(|(_, _, max_len)| *max_len >= shortest) {
        let mut copies = vec![0; schemes.len()];
        copies[scheme] = devices / size as u32;
        let supported = table.max_lengths.iter().copied().filter(|&length| length <= max_len).max().unwrap_or(shortest);
        strategies.push(Candidate {
            devices: copies[scheme] * size as u32,
            copies,
            max_len,
            proposed_for: (shortest, supported),
        });
    }
    let homogeneous = strategies.len();
    let (mut lower_bound, mut excess) = (0.0, 0.02);
    for prefix in 1..=table.max_lengths.len() {
        let found = table.fastest(prefix, lower_bound, excess);
        lower_bound = found.0;
        excess = 1.2 * (lower_bound / table.unrounded(prefix) - 1.0).max(PRECISION);
        let mut steps = vec![0; schemes.len()];
        for (scheme, more) in found.1 {
            steps[scheme] += more;
        }
        // Division by 10 gives exactly 0.3 for three steps of 0.1; multiplication by 0.1 does not.
        let copies: Vec<f64> =
            steps.into_iter().map(|steps: u64| steps as f64 / (1.0 / settings.device_step)).collect();
        let max_length = table.max_lengths[prefix - 1];
        if let Some(last) = relaxed.last().filter(|last| last.copies == copies).cloned() {
            for known in strategies.iter_mut().skip(homogeneous).filter(|known| known.proposed_for.1 == last.max_length)
            {
                if known.max_len >= max_length {
                    known.proposed_for.1 = max_length;
                }
            }
            relaxed.pop();
            relaxed.push(Relaxed { max_length, seconds: found.0, copies });
            continue;
        }
        let mut near = round(&copies, schemes, devices, max_length);
        near.sort_by_cached_key(|rounded| table.estimate(prefix, rounded).to_bits());
        near.truncate(NEAREST);
        for rounded in near {
            match strategies.iter_mut().find(|known| known.copies == rounded) {
                Some(known) => known.proposed_for.1 = known.proposed_for.1.max(max_length),
                None => strategies.push(Candidate {
                    devices: rounded.iter().zip(schemes).map(|(copies, scheme)| copies * scheme.devices()).sum(),
                    max_len: max_supported_length(&rounded, schemes),
                    copies: rounded,
                    proposed_for: (max_length, max_length),
                }),
            }
        }
        relaxed.push(Relaxed { max_length, seconds: found.0, copies });
    }
    Ok(Proposal { relaxed, strategies })
}

/// Returns the maximum sequence length supported by a strategy.
pub(crate) fn max_supported_length(copies: &[u32], schemes: &[SchemeCost]) -> u64 {
    let used = copies.iter().zip(schemes).filter(|(copies, _)| **copies > 0);
    used.map(|(_, scheme)| scheme.max_len).max().unwrap_or(0)
}

/// Dataset in ascending length steps, with seconds per scheme.
struct Table {
    /// Maximum sequence length per step.
    max_lengths: Vec<u64>,
    /// Schemes that fit on the devices: index, number of devices, MaxLen.
    schemes: Vec<(usize, u64, u64)>,
    /// Prefix sums of the seconds per step, for each scheme.
    sums: Vec<Vec<f64>>,
    /// Prefix sums of the minimum device-seconds per step.
    cheapest: Vec<f64>,
    /// Schemes per step that support it, in ascending device-seconds order.
    order: Vec<Vec<usize>>,
    /// Total number of device steps.
    capacity: u64,
    /// Fraction of a pipeline per step.
    step: f64,
}

/// Scheme index and number of pipeline steps, per part of a strategy.
type Parts = Vec<(usize, u64)>;

impl Table {
    fn new(
        lengths: &[(u64, f64)],
        devices: u32,
        schemes: &[SchemeCost],
        settings: ProposalSettings,
    ) -> Result<Self, ProposalError> {
        if settings.length_step == 0 {
            return Err(ProposalError::Step { field: "length_step" });
        }
        if !(settings.device_step > 0.0 && settings.device_step <= 1.0) {
            return Err(ProposalError::Step { field: "device_step" });
        }
        for (index, scheme) in schemes.iter().enumerate() {
            let fields = scheme.wrong_fields();
            if !fields.is_empty() {
                return Err(ProposalError::Scheme { scheme: index as u32, fields });
            }
        }
        let wrong = |&(tokens, count): &(u64, f64)| tokens == 0 || !(count > 0.0 && count.is_finite());
        if let Some(entry) = lengths.iter().position(wrong) {
            return Err(ProposalError::Length { entry: entry as u32 });
        }
        let holding = schemes.iter().enumerate().filter(|(_, scheme)| scheme.max_len > 0);
        let Some(smallest) = holding.clone().map(|(_, scheme)| scheme.devices()).min() else {
            return Err(ProposalError::NoCapacity);
        };
        if smallest > devices {
            return Err(ProposalError::TooFewDevices { smallest, devices });
        }
        let fitting: Vec<(usize, u64, u64)> = holding
            .filter(|(_, scheme)| scheme.devices() <= devices)
            .map(|(index, scheme)| (index, u64::from(scheme.devices()), scheme.max_len))
            .collect();
        let max_len = fitting.iter().map(|fitting| fitting.2).max().unwrap_or(0);
        let Some(tokens) = lengths.iter().map(|entry| entry.0).max() else { return Err(ProposalError::Empty) };
        if tokens > max_len {
            return Err(ProposalError::TooLong { tokens, max_len, devices });
        }
        let mut ordered = lengths.to_vec();
        ordered.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut max_lengths: Vec<u64> = Vec::new();
        let mut sums: Vec<Vec<f64>> = vec![vec![0.0]; fitting.len()];
        for step in ordered.chunk_by(|a, b| a.0.div_ceil(settings.length_step) == b.0.div_ceil(settings.length_step)) {
            max_lengths.extend(step.last().map(|last| last.0));
            for (sums, &(scheme_index, ..)) in sums.iter_mut().zip(&fitting) {
                let seconds: f64 =
                    step.iter().map(|&(tokens, count)| count * schemes[scheme_index].seconds(tokens)).sum();
                sums.push(sums.last().copied().unwrap_or(0.0) + seconds);
            }
        }
        let (mut cheapest, mut order) = (vec![0.0], Vec::with_capacity(max_lengths.len()));
        for (step, &tokens) in max_lengths.iter().enumerate() {
            let needed = |at: usize| fitting[at].1 as f64 * (sums[at][step + 1] - sums[at][step]);
            let mut able: Vec<usize> = (0..fitting.len()).filter(|&at| fitting[at].2 >= tokens).collect();
            able.sort_by(|&a, &b| needed(a).total_cmp(&needed(b)));
            cheapest.push(cheapest[step] + able.first().map_or(f64::INFINITY, |&at| needed(at)));
            order.push(able);
        }
        let capacity = (f64::from(devices) / settings.device_step + 1e-6).floor() as u64;
        Ok(Self { max_lengths, schemes: fitting, sums, cheapest, order, capacity, step: settings.device_step })
    }

    /// Returns a lower bound in seconds for the first `prefix` steps, for arbitrary fractions of
    /// pipelines.
    fn unrounded(&self, prefix: usize) -> f64 {
        self.cheapest[prefix] / (self.capacity as f64 * self.step) * (1.0 - 1e-12)
    }

    /// Returns t[N][L] for the first `prefix` steps, and the parts that achieve it. `least` is a
    /// known lower bound. `excess` is an estimate for the relative difference to
    /// [`Self::unrounded`].
    fn fastest(&self, prefix: usize, lower_bound: f64, excess: f64) -> (f64, Parts) {
        let unrounded = self.unrounded(prefix);
        let mut low = lower_bound.max(unrounded);
        let mut target = if low > 0.0 { low.max(unrounded * (1.0 + excess)) } else { 1.0 };
        let mut best = loop {
            match self.within(prefix, target) {
                Some(found) => break found,
                None if target.is_finite() => {
                    low = target;
                    target *= 2.0;
                }
                // Unreachable: all steps have a scheme that supports them.
                None => break (f64::INFINITY, Vec::new()),
            }
        };
        while best.0 - low > PRECISION * best.0 {
            match self.within(prefix, f64::midpoint(low, best.0)) {
                Some(found) => best = found,
                None => low = f64::midpoint(low, best.0),
            }
        }
        best
    }

    /// Returns an estimate in seconds for the first `prefix` steps. Assigns steps in descending
    /// length order to the scheme with the earliest finish time.
    fn estimate(&self, prefix: usize, copies: &[u32]) -> f64 {
        let used: Vec<usize> = (0..self.schemes.len()).filter(|&at| copies[self.schemes[at].0] > 0).collect();
        let mut ends = vec![0.0_f64; used.len()];
        for step in (0..prefix).rev() {
            let mut best: Option<(f64, usize)> = None;
            for (index, &at) in used.iter().enumerate().filter(|(_, at)| self.schemes[**at].2 >= self.max_lengths[step])
            {
                let seconds = (self.sums[at][step + 1] - self.sums[at][step]) / f64::from(copies[self.schemes[at].0]);
                let end = ends[index] + seconds;
                if best.is_none_or(|best| end < best.0) {
                    best = Some((end, index));
                }
            }
            let Some((end, earliest)) = best else { return f64::INFINITY };
            ends[earliest] = end;
        }
        ends.into_iter().fold(0.0, f64::max)
    }

    /// Returns parts that finish by `target` on the available devices, with the actual finish time.
    fn within(&self, prefix: usize, target: f64) -> Option<(f64, Parts)> {
        let unit = 1.0 / (target * self.step);
        let mut fewest: Vec<u64> = vec![0; prefix + 1];
        let mut from: Vec<(usize, usize, u64)> = vec![(0, 0, 0); prefix + 1];
        for end in 1..=prefix {
            let mut best = u64::MAX;
            // Cheapest scheme first, so that the loops for the other schemes end early.
            for &at in &self.order[end - 1] {
                let devices = self.schemes[at].1;
                let sums = &self.sums[at];
                for start in (0..end).rev() {
                    let seconds = sums[end] - sums[start];
                    // The bound increases as `start` decreases, so all earlier starts also exceed
                    // it.
                    if (self.cheapest[start] + devices as f64 * seconds) * unit * (1.0 - 1e-9) >= best as f64 {
                        break;
                    }
                    let steps = (seconds * unit * (1.0 - 1e-12)).ceil().max(1.0);
                    if fewest[start] == u64::MAX || steps * devices as f64 > self.capacity as f64 {
                        continue;
                    }
                    let needed = fewest[start] + steps as u64 * devices;
                    if needed < best {
                        best = needed;
                        from[end] = (start, at, steps as u64);
                    }
                }
            }
            if best > self.capacity {
                return None;
            }
            fewest[end] = best;
        }
        let (mut end, mut slowest, mut parts) = (prefix, 0.0_f64, Vec::new());
        while end > 0 {
            let (start, at, steps) = from[end];
            let seconds = self.sums[at][end] - self.sums[at][start];
            slowest = slowest.max(seconds / (steps as f64 * self.step));
            parts.push((self.schemes[at].0, steps));
            end = start;
        }
        Some((slowest, parts))
    }
}
