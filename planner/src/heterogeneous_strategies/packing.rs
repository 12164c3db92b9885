//! Which sequences share a microbatch of one pipeline (Hydraulis, Eq. 1).

use super::branch::{Searched, search};
use super::partition::Items;
use super::scheme::SchemeCost;
use crate::proof::Proof;

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PackingSettings {
    /// Distance from the bound, (seconds - bound) / seconds, that is good enough.
    pub gap: f64,
    /// Partial assignments that branch and bound may follow where local search leaves more than the gap.
    pub nodes: u64,
}

impl Default for PackingSettings {
    /// 2 %, and about a tenth of a second of branch and bound.
    fn default() -> Self {
        Self { gap: 0.02, nodes: 200_000 }
    }
}

/// The microbatches of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Packing {
    /// Of every microbatch the places of its sequences, ascending; the slowest microbatch first.
    pub microbatches: Vec<Vec<u32>>,
    /// Seconds of the slowest in one stage, c included.
    pub slowest: f64,
    /// Eq. 1: slowest (PP - 1 + V).
    pub seconds: f64,
    /// No packing with a number of microbatches in the range is faster.
    pub bound: f64,
    /// (seconds - bound) / seconds.
    pub gap: f64,
    /// What the bound proves.
    pub proof: Proof,
    /// The numbers of microbatches considered, first and last (appendix D).
    pub range: (u32, u32),
    /// Numbers of microbatches that were tried, with the seconds they lead to.
    pub tried: Vec<(u32, f64)>,
    /// Partial assignments that branch and bound followed.
    pub nodes: u64,
}

/// Why there is no packing.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PackingError {
    /// There is nothing to pack.
    #[error("there are no sequences")]
    Empty,
    /// A field of the scheme is wrong.
    #[error("not a scheme: {} wrong", fields.join(", "))]
    Scheme {
        /// Their names.
        fields: Vec<&'static str>,
    },
    /// A sequence has no tokens.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Its place.
        sequence: u32,
    },
    /// A sequence fits into no microbatch.
    #[error("sequence {sequence} has {tokens} tokens, more than the {max_len} that a microbatch of this scheme holds")]
    TooLong {
        /// Its place.
        sequence: u32,
        /// Its length.
        tokens: u64,
        /// MaxLen of the scheme.
        max_len: u64,
    },
}

/// Packs the sequences of one pipeline.
///
/// The number of microbatches V is in [max(⌈Σl / MaxLen⌉, 1), min(⌊Σl / UtilLen⌋, U)]; where the second is less it is the
/// first, and where no V of the range has a packing the next that has one is taken. Every V has a bound, so those are tried
/// in the order of their bounds until the next bound is no better than what was found: longest first into the microbatch with least
/// work, then moves and exchanges that take work off the slowest. Where the gap is still open, branch and bound tightens the
/// V with the lowest bound again and again.
pub fn pack(lengths: &[u64], scheme: &SchemeCost, settings: PackingSettings) -> Result<Packing, PackingError> {
    let order = checked(lengths, scheme)?;
    let tokens: Vec<u64> = order.iter().map(|&place| lengths[place]).collect();
    let work: Vec<f64> = tokens.iter().map(|&tokens| scheme.work(tokens)).collect();
    let items = Items { tokens, work, capacity: scheme.max_len };
    let (low, high) = range(lengths, scheme);
    let stages = f64::from(scheme.pp - 1);
    let seconds = |count: usize, most: f64| (most + scheme.c) * (stages + count as f64);
    let mut open: Vec<Open> = Vec::new();
    let mut best: Option<(f64, usize, Vec<Vec<usize>>)> = None;
    let mut tried = Vec::new();
    let mut attempt = |count: usize, most: f64, best: &mut Option<(f64, usize, Vec<Vec<usize>>)>| {
        let Some(found) = items.partition(count, most) else { return };
        let reached = seconds(count, found.most());
        tried.push((count as u32, reached));
        if best.as_ref().is_none_or(|best| reached < best.0) {
            *best = Some((reached, count, found.bins));
        }
    };
    for count in low..=high {
        let most = items.bound(count);
        open.push(Open { count, bound: seconds(count, most) });
    }
    open.sort_by(|a, b| a.bound.total_cmp(&b.bound).then(a.count.cmp(&b.count)));
    for candidate in &open {
        if best.as_ref().is_none_or(|best| candidate.bound < best.0) {
            attempt(candidate.count, items.bound(candidate.count), &mut best);
        }
    }
    // Capacity may ask for more microbatches than the range has; each sequence alone always fits.
    let mut beyond = high;
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
        // Less than the best by more than rounding.
        let limit = (reached / (stages + lowest.count as f64) - scheme.c) * (1.0 - 1e-9);
        match search(&items, lowest.count, limit, &mut nodes) {
            Searched::Better(chosen) => {
                count = lowest.count;
                bins = vec![Vec::new(); count];
                for (item, &bin) in chosen.iter().enumerate() {
                    bins[bin].push(item);
                }
                let most = bins.iter().map(|bin| bin.iter().map(|&item| items.work[item]).sum::<f64>());
                reached = seconds(count, most.fold(0.0, f64::max));
                tried.push((count as u32, reached));
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
    let gap = (reached - bound) / reached;
    Ok(Packing {
        slowest: reached / (stages + count as f64),
        microbatches: microbatches.into_iter().map(|(_, places)| places).collect(),
        seconds: reached,
        bound,
        gap: gap.max(0.0),
        proof: proof(gap, settings.gap),
        range: (low as u32, high.max(beyond) as u32),
        tried,
        nodes: settings.nodes - nodes,
    })
}

/// What a relative gap says; rounding counts as none.
pub(super) fn proof(gap: f64, wanted: f64) -> Proof {
    match gap {
        gap if gap <= 1e-8 => Proof::Optimal,
        gap if gap <= wanted => Proof::WithinGap,
        _ => Proof::Heuristic,
    }
}

/// A number of microbatches that may still be better.
struct Open {
    count: usize,
    bound: f64,
}

/// Checks the problem; the places of the sequences, longest first.
fn checked(lengths: &[u64], scheme: &SchemeCost) -> Result<Vec<usize>, PackingError> {
    let fields = scheme.wrong_fields();
    if !fields.is_empty() {
        return Err(PackingError::Scheme { fields });
    }
    if lengths.is_empty() {
        return Err(PackingError::Empty);
    }
    for (place, &tokens) in lengths.iter().enumerate() {
        let sequence = place as u32;
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

/// First and last number of microbatches worth trying.
fn range(lengths: &[u64], scheme: &SchemeCost) -> (usize, usize) {
    let total: u64 = lengths.iter().sum();
    let low = total.div_ceil(scheme.max_len).max(1) as usize;
    let used = total.checked_div(scheme.util_len).map_or(lengths.len(), |most| most as usize);
    (low, used.min(lengths.len()).max(low))
}
