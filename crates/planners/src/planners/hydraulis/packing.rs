//! Packing of sequences into microbatches for one pipeline (Hydraulis Eq. 1).

use super::branch::{Searched, search};
use super::partition::Items;
use super::scheme::SchemeCost;
use planscope_core::optimality::Optimality;

/// Search limits for the packing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PackingSettings {
    /// Target relative gap, (seconds - bound) / seconds.
    pub gap: f64,
    /// Maximum branch-and-bound nodes if local search does not reach the gap.
    pub nodes: u64,
}

impl Default for PackingSettings {
    /// 2 %, and about 0.1 s for branch and bound.
    fn default() -> Self {
        Self { gap: 0.02, nodes: 200_000 }
    }
}

/// Microbatches for a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// Sequence indices per microbatch, ascending. The slowest microbatch is first.
    pub microbatches: Vec<Vec<u32>>,
    /// Seconds per stage for the slowest microbatch, including c.
    pub slowest: f64,
    /// Total seconds, slowest (PP - 1 + V) (Hydraulis Eq. 1).
    pub seconds: f64,
    /// Lower bound in seconds over all packings in `range`.
    pub bound: f64,
    /// Relative gap, (seconds - bound) / seconds.
    pub gap: f64,
    /// Optimality status that follows from the gap.
    pub optimality: Optimality,
    /// Minimum and maximum number of microbatches (Hydraulis App. D).
    pub range: (u32, u32),
    /// Numbers of microbatches tried, with the resulting seconds.
    pub tested: Vec<(u32, f64)>,
    /// Branch-and-bound nodes used.
    pub nodes: u64,
}

/// Error for sequences that cannot be packed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PackingError {
    /// The sequence list is empty.
    #[error("there are no sequences")]
    Empty,
    /// The scheme contains invalid fields.
    #[error("not a scheme: {} wrong", fields.join(", "))]
    Scheme {
        /// Names of the invalid fields.
        fields: Vec<&'static str>,
    },
    /// A sequence contains zero tokens.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Index of the sequence.
        sequence: u32,
    },
    /// A sequence exceeds MaxLen.
    #[error("sequence {sequence} has {tokens} tokens, more than the {max_len} that a microbatch of this scheme holds")]
    TooLong {
        /// Index of the sequence.
        sequence: u32,
        /// Sequence length in tokens.
        tokens: u64,
        /// MaxLen of the scheme.
        max_len: u64,
    },
}

/// Packs the sequences for one pipeline into microbatches (Hydraulis Eq. 1).
///
/// The number of microbatches V is in the range `[max(⌈Σl / MaxLen⌉, 1), min(⌊Σl / UtilLen⌋, U)]`.
/// If the upper limit is below the lower limit, V is the lower limit. Values of V for which the
/// lengths cannot be packed are left out. If no V in the range has a
/// feasible packing, larger values are tried. Values of V are tried in ascending order of their
/// lower bound, until the bound is not below the minimum result. A packing starts in descending
/// length order, each sequence into the microbatch with the minimum work. Moves and exchanges then
/// unload the slowest microbatch. If the gap is still open, branch and bound repeatedly tightens
/// the V with the lowest bound.
pub fn pack(lengths: &[u64], scheme: &SchemeCost, settings: PackingSettings) -> Result<Packing, PackingError> {
    let order = checked(lengths, scheme)?;
    let tokens: Vec<u64> = order.iter().map(|&index| lengths[index]).collect();
    let work: Vec<f64> = tokens.iter().map(|&tokens| scheme.work(tokens)).collect();
    let items = Items { tokens, work, capacity: scheme.max_len };
    let (low, high) = range(lengths, scheme);
    let stages = f64::from(scheme.pp - 1);
    let seconds = |count: usize, max_work: f64| (max_work + scheme.c) * (stages + count as f64);
    let mut open: Vec<Open> = Vec::new();
    let mut best: Option<(f64, usize, Vec<Vec<usize>>)> = None;
    let mut tested = Vec::new();
    let mut attempt = |count: usize, max_work: f64, best: &mut Option<(f64, usize, Vec<Vec<usize>>)>| {
        let Some(found) = items.partition(count, max_work) else { return };
        let reached = seconds(count, found.max_work());
        tested.push((count as u32, reached));
        if best.as_ref().is_none_or(|best| reached < best.0) {
            *best = Some((reached, count, found.bins));
        }
    };
    // Smaller numbers in the range have no packing, so they do not count for the bound.
    for count in low.max(items.fewest_bins())..=high {
        let max_work = items.bound(count);
        open.push(Open { count, bound: seconds(count, max_work) });
    }
    open.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.count.cmp(&b.count)));
    for candidate in &open {
        if best.as_ref().is_none_or(|best| candidate.bound < best.0) {
            attempt(candidate.count, items.bound(candidate.count), &mut best);
        }
    }
    // The capacity can require more microbatches than the range allows. One sequence per microbatch
    // always fits.
    let mut beyond = high.max(items.fewest_bins() - 1);
    while best.is_none() && beyond < lengths.len() {
        beyond += 1;
        open.push(Open { count: beyond, bound: seconds(beyond, items.bound(beyond)) });
        attempt(beyond, items.bound(beyond), &mut best);
    }
    let Some((mut reached, mut count, mut bins)) = best else { return Err(PackingError::Empty) };
    let mut nodes = settings.nodes;
    while let Some(lowest) = open.iter_mut().min_by(|a, b| a.bound.total_cmp(&b.bound)) {
        if nodes == 0 || lowest.bound >= reached * (1.0 - settings.gap) {
            break;
        }
        // Require an improvement that is larger than the rounding error.
        let limit = (reached / (stages + lowest.count as f64) - scheme.c) * (1.0 - 1e-9);
        match search(&items, lowest.count, limit, &mut nodes) {
            Searched::Better(assigned_bins) => {
                count = lowest.count;
                bins = vec![Vec::new(); count];
                for (item, &bin) in assigned_bins.iter().enumerate() {
                    bins[bin].push(item);
                }
                let bin_work = bins.iter().map(|bin| bin.iter().map(|&item| items.work[item]).sum::<f64>());
                reached = seconds(count, bin_work.fold(0.0, f64::max));
                tested.push((count as u32, reached));
            }
            Searched::None => lowest.bound = reached,
            Searched::Unknown => nodes = 0,
        }
    }
    let bound = open.iter().map(|open| open.bound).fold(reached, f64::min);
    bins.retain(|bin| !bin.is_empty());
    let mut microbatches: Vec<(f64, Vec<u32>)> = bins
        .into_iter()
        .map(|bin| {
            let work = bin.iter().map(|&item| items.work[item]).sum();
            let mut places: Vec<u32> = bin.into_iter().map(|item| order[item] as u32).collect();
            places.sort_unstable();
            (work, places)
        })
        .collect();
    microbatches.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let gap = if reached > 0.0 { (reached - bound) / reached } else { 0.0 };
    Ok(Packing {
        slowest: reached / (stages + count as f64),
        microbatches: microbatches.into_iter().map(|(_, places)| places).collect(),
        seconds: reached,
        bound,
        gap: gap.max(0.0),
        optimality: optimality(gap, settings.gap),
        range: (low as u32, high.max(beyond) as u32),
        tested,
        nodes: settings.nodes - nodes,
    })
}

/// Returns the optimality status for a relative gap. Rounding errors are ignored.
pub(crate) fn optimality(gap: f64, wanted: f64) -> Optimality {
    match gap {
        gap if gap <= 1e-8 => Optimality::Optimal,
        gap if gap <= wanted => Optimality::WithinGap,
        _ => Optimality::Heuristic,
    }
}

/// A number of microbatches with its lower bound.
struct Open {
    count: usize,
    bound: f64,
}

/// Validates the input. Returns the sequence indices in descending length order.
fn checked(lengths: &[u64], scheme: &SchemeCost) -> Result<Vec<usize>, PackingError> {
    let fields = scheme.wrong_fields();
    if !fields.is_empty() {
        return Err(PackingError::Scheme { fields });
    }
    if lengths.is_empty() {
        return Err(PackingError::Empty);
    }
    for (index, &tokens) in lengths.iter().enumerate() {
        let sequence = index as u32;
        if tokens == 0 {
            return Err(PackingError::NoTokens { sequence });
        }
        if tokens > scheme.max_len {
            return Err(PackingError::TooLong { sequence, tokens, max_len: scheme.max_len });
        }
    }
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by(|&a, &b| lengths[b].cmp(&lengths[a]).then(a.cmp(&b)));
    Ok(order)
}

/// Returns the minimum and maximum number of microbatches to try (Hydraulis App. D).
fn range(lengths: &[u64], scheme: &SchemeCost) -> (usize, usize) {
    let total: u64 = lengths.iter().sum();
    let low = total.div_ceil(scheme.max_len).max(1) as usize;
    let used = total.checked_div(scheme.util_len).map_or(lengths.len(), |limit| limit as usize);
    (low, used.min(lengths.len()).max(low))
}
