//! Strategies worth having for a data set (Hydraulis, section 7 and Eq. 4).

use super::rounding::round;
use super::scheme::SchemeCost;

/// Steps of the relaxed dynamic program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProposalSettings {
    /// Lengths are told apart by this many tokens.
    pub length_step: u64,
    /// Pipelines come in multiples of this part of one.
    pub device_step: f64,
}

impl Default for ProposalSettings {
    /// The paper's: 128 tokens and a tenth.
    fn default() -> Self {
        Self { length_step: 128, device_step: 0.1 }
    }
}

/// Steps of length that data of any length are told apart by: the program is cubic in them.
const MOST_STEPS: u64 = 512;

impl ProposalSettings {
    /// The paper's up to 64K tokens, and steps of length as much longer as sequences may be.
    pub fn up_to(longest: u64) -> Self {
        let Self { length_step, device_step } = Self::default();
        Self { length_step: length_step * longest.div_ceil(length_step * MOST_STEPS).max(1), device_step }
    }
}

/// The best relaxed strategy for all sequences up to a length.
#[derive(Debug, Clone, PartialEq)]
pub struct Relaxed {
    /// L: the longest sequence it is for.
    pub longest: u64,
    /// t[N][L] of Eq. 4, in seconds for the whole data set.
    pub seconds: f64,
    /// Of every scheme how many pipelines, in steps of a part of one.
    pub copies: Vec<f64>,
}

/// A strategy to keep: whole pipelines.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Of every scheme how many pipelines.
    pub copies: Vec<u32>,
    /// Devices they use.
    pub devices: u32,
    /// The longest sequence that any of them holds.
    pub max_len: u64,
    /// Smallest and largest L whose relaxed strategy it is near to.
    pub proposed_for: (u64, u64),
}

/// What a data set asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    /// Of every L at which it changes the best relaxed strategy, L ascending.
    pub relaxed: Vec<Relaxed>,
    /// The homogeneous strategies, then the whole strategies near to the relaxed ones, each once, in the order found.
    pub strategies: Vec<Candidate>,
}

/// Why nothing can be proposed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProposalError {
    /// The data set is empty.
    #[error("there are no sequences")]
    Empty,
    /// A step is not positive.
    #[error("steps must be positive: {field}")]
    Step {
        /// Its name.
        field: &'static str,
    },
    /// A field of a scheme is wrong.
    #[error("scheme {scheme}: {} wrong", fields.join(", "))]
    Scheme {
        /// Its place.
        scheme: u32,
        /// Names of the fields.
        fields: Vec<&'static str>,
    },
    /// A length or its count is wrong.
    #[error("entry {entry} of the lengths: at least one token and a count above zero are needed")]
    Length {
        /// Its place.
        entry: u32,
    },
    /// No scheme holds even one token.
    #[error("no scheme holds any sequence: every MaxLen is zero")]
    NothingHeld,
    /// All schemes are too large.
    #[error("the smallest scheme that holds anything needs {smallest} devices, there are {devices}")]
    TooFewDevices {
        /// Devices of the smallest scheme that holds anything.
        smallest: u32,
        /// Devices there are.
        devices: u32,
    },
    /// A sequence is longer than any scheme that fits on the devices holds.
    #[error("the longest sequence has {tokens} tokens, the roomiest scheme on {devices} devices holds {max_len}")]
    TooLong {
        /// Its length.
        tokens: u64,
        /// Largest MaxLen of the schemes that fit.
        max_len: u64,
        /// Devices there are.
        devices: u32,
    },
}

/// How close to t[N][L] the search by halves ends, relative to it.
const PRECISION: f64 = 1e-6;
/// Whole strategies kept of those near to one relaxed strategy, the fastest by a quick estimate.
const NEAREST: usize = 6;

/// Proposes strategies for `devices` devices.
///
/// `lengths` are lengths in tokens with how many sequences have them. Eq. 4 fills a table t[n][l]; only its last column of devices is
/// of interest, and t[N][l] <= t exactly where the sequences up to l can be cut into intervals, each given to the
/// smallest number of pipelines that ends by t, with no more than N devices in all. So t is searched by halves and the
/// fewest devices g[l] = min over schemes k and cuts l' of g[l'] + N(P_k) d_k(l', l) are found for each t tried, which costs the same for any number of
/// devices. A cut l' and all shorter ones are passed over when whole and parts of pipelines together, without rounding up to a step,
/// would already need more devices than the best known.
///
/// The homogeneous strategy of every scheme is always among the candidates: Eq. 4 sees averages and not how long a single
/// sequence takes, so for some batches they are what is fastest.
pub fn propose(
    lengths: &[(u64, f64)],
    devices: u32,
    schemes: &[SchemeCost],
    settings: ProposalSettings,
) -> Result<Proposal, ProposalError> {
    let table = Table::new(lengths, devices, schemes, settings)?;
    let mut relaxed: Vec<Relaxed> = Vec::new();
    let mut strategies: Vec<Candidate> = Vec::new();
    let shortest = table.longest[0];
    for &(scheme, size, max_len) in table.schemes.iter().filter(|(_, _, max_len)| *max_len >= shortest) {
        let mut copies = vec![0; schemes.len()];
        copies[scheme] = devices / size as u32;
        let held = table.longest.iter().copied().filter(|&longest| longest <= max_len).max().unwrap_or(shortest);
        strategies.push(Candidate {
            devices: copies[scheme] * size as u32,
            copies,
            max_len,
            proposed_for: (shortest, held),
        });
    }
    let homogeneous = strategies.len();
    let (mut least, mut excess) = (0.0, 0.02);
    for prefix in 1..=table.longest.len() {
        let found = table.fastest(prefix, least, excess);
        least = found.0;
        excess = 1.2 * (least / table.unrounded(prefix) - 1.0).max(PRECISION);
        let mut steps = vec![0; schemes.len()];
        for (scheme, more) in found.1 {
            steps[scheme] += more;
        }
        // Divided by ten, three steps of a tenth are 0.3; multiplied by a tenth they are not.
        let copies: Vec<f64> =
            steps.into_iter().map(|steps: u64| steps as f64 / (1.0 / settings.device_step)).collect();
        let longest = table.longest[prefix - 1];
        if let Some(last) = relaxed.last().filter(|last| last.copies == copies).cloned() {
            for known in strategies.iter_mut().skip(homogeneous).filter(|known| known.proposed_for.1 == last.longest) {
                if known.max_len >= longest {
                    known.proposed_for.1 = longest;
                }
            }
            relaxed.pop();
            relaxed.push(Relaxed { longest, seconds: found.0, copies });
            continue;
        }
        let mut near = round(&copies, schemes, devices, longest);
        near.sort_by_cached_key(|whole| table.estimate(prefix, whole).to_bits());
        near.truncate(NEAREST);
        for whole in near {
            match strategies.iter_mut().find(|known| known.copies == whole) {
                Some(known) => known.proposed_for.1 = known.proposed_for.1.max(longest),
                None => strategies.push(Candidate {
                    devices: whole.iter().zip(schemes).map(|(copies, scheme)| copies * scheme.devices()).sum(),
                    max_len: held(&whole, schemes),
                    copies: whole,
                    proposed_for: (longest, longest),
                }),
            }
        }
        relaxed.push(Relaxed { longest, seconds: found.0, copies });
    }
    Ok(Proposal { relaxed, strategies })
}

/// The longest sequence that a strategy holds.
pub(super) fn held(copies: &[u32], schemes: &[SchemeCost]) -> u64 {
    let used = copies.iter().zip(schemes).filter(|(copies, _)| **copies > 0);
    used.map(|(_, scheme)| scheme.max_len).max().unwrap_or(0)
}

/// The data set by steps of length, shortest first, with the seconds of each scheme.
struct Table {
    /// Longest sequence of every step.
    longest: Vec<u64>,
    /// Schemes that fit: place, devices, MaxLen.
    schemes: Vec<(usize, u64, u64)>,
    /// Of every scheme the seconds of all sequences of the first steps, from none to all.
    sums: Vec<Vec<f64>>,
    /// Device-seconds of the first steps when each goes to the scheme that needs the fewest.
    cheapest: Vec<f64>,
    /// Of every step the schemes that hold it, by the device-seconds that it takes with them.
    order: Vec<Vec<usize>>,
    /// Device steps there are.
    capacity: u64,
    /// Part of a pipeline in a step.
    step: f64,
}

/// A part of a strategy: the place of its scheme and how many steps of pipelines.
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
        for (place, scheme) in schemes.iter().enumerate() {
            let fields = scheme.wrong_fields();
            if !fields.is_empty() {
                return Err(ProposalError::Scheme { scheme: place as u32, fields });
            }
        }
        let wrong = |&(tokens, count): &(u64, f64)| tokens == 0 || !(count > 0.0 && count.is_finite());
        if let Some(entry) = lengths.iter().position(wrong) {
            return Err(ProposalError::Length { entry: entry as u32 });
        }
        let holding = schemes.iter().enumerate().filter(|(_, scheme)| scheme.max_len > 0);
        let Some(smallest) = holding.clone().map(|(_, scheme)| scheme.devices()).min() else {
            return Err(ProposalError::NothingHeld);
        };
        if smallest > devices {
            return Err(ProposalError::TooFewDevices { smallest, devices });
        }
        let fitting: Vec<(usize, u64, u64)> = holding
            .filter(|(_, scheme)| scheme.devices() <= devices)
            .map(|(place, scheme)| (place, u64::from(scheme.devices()), scheme.max_len))
            .collect();
        let max_len = fitting.iter().map(|fitting| fitting.2).max().unwrap_or(0);
        let Some(tokens) = lengths.iter().map(|entry| entry.0).max() else { return Err(ProposalError::Empty) };
        if tokens > max_len {
            return Err(ProposalError::TooLong { tokens, max_len, devices });
        }
        let mut ordered = lengths.to_vec();
        ordered.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        let mut longest: Vec<u64> = Vec::new();
        let mut sums: Vec<Vec<f64>> = vec![vec![0.0]; fitting.len()];
        for step in ordered.chunk_by(|a, b| a.0.div_ceil(settings.length_step) == b.0.div_ceil(settings.length_step)) {
            longest.extend(step.last().map(|last| last.0));
            for (sums, &(place, ..)) in sums.iter_mut().zip(&fitting) {
                let seconds: f64 = step.iter().map(|&(tokens, count)| count * schemes[place].seconds(tokens)).sum();
                sums.push(sums.last().copied().unwrap_or(0.0) + seconds);
            }
        }
        let (mut cheapest, mut order) = (vec![0.0], Vec::with_capacity(longest.len()));
        for (step, &tokens) in longest.iter().enumerate() {
            let needed = |at: usize| fitting[at].1 as f64 * (sums[at][step + 1] - sums[at][step]);
            let mut able: Vec<usize> = (0..fitting.len()).filter(|&at| fitting[at].2 >= tokens).collect();
            able.sort_by(|&a, &b| needed(a).total_cmp(&needed(b)));
            cheapest.push(cheapest[step] + able.first().map_or(f64::INFINITY, |&at| needed(at)));
            order.push(able);
        }
        let capacity = (f64::from(devices) / settings.device_step + 1e-6).floor() as u64;
        Ok(Self { longest, schemes: fitting, sums, cheapest, order, capacity, step: settings.device_step })
    }

    /// Seconds of the first `prefix` steps where parts of pipelines may have any size: nothing is faster.
    fn unrounded(&self, prefix: usize) -> f64 {
        self.cheapest[prefix] / (self.capacity as f64 * self.step) * (1.0 - 1e-12)
    }

    /// t[N][L] of the first `prefix` steps and the parts that reach it; it is not below `least`, and about `excess` over
    /// what parts of any size would reach.
    fn fastest(&self, prefix: usize, least: f64, excess: f64) -> (f64, Parts) {
        let unrounded = self.unrounded(prefix);
        let mut low = least.max(unrounded);
        let mut target = if low > 0.0 { low.max(unrounded * (1.0 + excess)) } else { 1.0 };
        let mut best = loop {
            match self.within(prefix, target) {
                Some(found) => break found,
                None if target.is_finite() => {
                    low = target;
                    target *= 2.0;
                }
                // Not reached: some scheme holds every step.
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

    /// A quick estimate of the seconds of the first `prefix` steps: longest first, each to the scheme that is then done first.
    fn estimate(&self, prefix: usize, whole: &[u32]) -> f64 {
        let used: Vec<usize> = (0..self.schemes.len()).filter(|&at| whole[self.schemes[at].0] > 0).collect();
        let mut ends = vec![0.0_f64; used.len()];
        for step in (0..prefix).rev() {
            let mut best: Option<(f64, usize)> = None;
            for (place, &at) in used.iter().enumerate().filter(|(_, at)| self.schemes[**at].2 >= self.longest[step]) {
                let seconds = (self.sums[at][step + 1] - self.sums[at][step]) / f64::from(whole[self.schemes[at].0]);
                let end = ends[place] + seconds;
                if best.is_none_or(|best| end < best.0) {
                    best = Some((end, place));
                }
            }
            let Some((end, place)) = best else { return f64::INFINITY };
            ends[place] = end;
        }
        ends.into_iter().fold(0.0, f64::max)
    }

    /// Parts that end by `target` on the devices there are, with the time at which they do end.
    fn within(&self, prefix: usize, target: f64) -> Option<(f64, Parts)> {
        let unit = 1.0 / (target * self.step);
        let mut fewest: Vec<u64> = vec![0; prefix + 1];
        let mut from: Vec<(usize, usize, u64)> = vec![(0, 0, 0); prefix + 1];
        for end in 1..=prefix {
            let mut best = u64::MAX;
            // The cheapest first: the others then end early.
            for &at in &self.order[end - 1] {
                let devices = self.schemes[at].1;
                let sums = &self.sums[at];
                for start in (0..end).rev() {
                    let seconds = sums[end] - sums[start];
                    // Falls with every further start, so all of them are too much.
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
