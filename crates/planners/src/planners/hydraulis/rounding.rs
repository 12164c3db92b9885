//! Rounding of fractional numbers of pipelines to integers: the last step of the continuous
//! relaxation in Hydraulis Sec. 7.

use std::collections::BTreeSet;

use super::proposal::max_supported_length;
use super::scheme::SchemeCost;

/// Maximum number of schemes rounded up and down. All further schemes are only rounded down.
const MAX_ROUNDED_SCHEMES: usize = 8;
/// Maximum number of integer strategies per relaxed strategy.
const MAX_STRATEGIES: usize = 256;

/// Returns the integer strategies near a relaxed strategy.
///
/// The number of pipelines per scheme is rounded down and up. Strategies that need more than
/// `devices` devices or cannot process `longest` tokens are removed. If no strategy remains, the
/// smallest scheme that supports `longest` tokens gets one pipeline, and pipelines of other schemes
/// are removed. Remaining devices are filled with more pipelines of the schemes in use, in all
/// combinations without space for another pipeline.
pub(crate) fn round(copies: &[f64], schemes: &[SchemeCost], devices: u32, max_length: u64) -> Vec<Vec<u32>> {
    let used: Vec<usize> = (0..copies.len()).filter(|&scheme| copies[scheme] > 0.0).collect();
    let size = |rounded: &[u32]| -> u64 {
        rounded.iter().zip(schemes).map(|(&copies, scheme)| u64::from(copies) * u64::from(scheme.devices())).sum()
    };
    // Tolerance, because fractional steps sum to integers only up to rounding.
    let down: Vec<u32> = copies.iter().map(|&copies| (copies + 1e-6).floor() as u32).collect();
    let up: Vec<u32> = copies.iter().map(|&copies| (copies - 1e-6).ceil().max(0.0) as u32).collect();
    let mut roundings: Vec<Vec<u32>> = vec![down.clone()];
    for &scheme in used.iter().filter(|&&scheme| up[scheme] > down[scheme]).take(MAX_ROUNDED_SCHEMES) {
        let raised = roundings.clone().into_iter().map(|mut rounded| {
            rounded[scheme] = up[scheme];
            rounded
        });
        roundings.extend(raised.collect::<Vec<_>>());
    }
    let mut near: Vec<Vec<u32>> = roundings
        .into_iter()
        .filter(|rounded| size(rounded) <= u64::from(devices) && max_supported_length(rounded, schemes) >= max_length)
        .collect();
    if near.is_empty() {
        near.extend(make_space(&down, &used, schemes, devices, max_length));
    }
    let mut strategies = BTreeSet::new();
    for mut rounded in near {
        let spare = u64::from(devices) - size(&rounded);
        fill(&mut rounded, &used, schemes, spare, &mut strategies);
    }
    strategies.into_iter().collect()
}

/// Adds one pipeline for the smallest scheme that supports `longest`, and removes pipelines from
/// the rounded-down strategy, in descending device order, until it fits.
fn make_space(down: &[u32], used: &[usize], schemes: &[SchemeCost], devices: u32, max_length: u64) -> Option<Vec<u32>> {
    let able = used.iter().copied().filter(|&scheme| schemes[scheme].max_len >= max_length);
    let roomiest = able.min_by_key(|&scheme| schemes[scheme].devices())?;
    let mut rounded = down.to_vec();
    rounded[roomiest] = rounded[roomiest].max(1);
    loop {
        let total: u64 =
            rounded.iter().zip(schemes).map(|(&copies, scheme)| u64::from(copies) * u64::from(scheme.devices())).sum();
        if total <= u64::from(devices) {
            return Some(rounded);
        }
        let widest = used
            .iter()
            .copied()
            .filter(|&scheme| rounded[scheme] > u32::from(scheme == roomiest))
            .max_by_key(|&scheme| schemes[scheme].devices())?;
        rounded[widest] -= 1;
    }
}

/// Adds pipelines from the `used` schemes, in all combinations without space for another pipeline.
fn fill(
    rounded: &mut Vec<u32>,
    used: &[usize],
    schemes: &[SchemeCost],
    spare: u64,
    strategies: &mut BTreeSet<Vec<u32>>,
) {
    if strategies.len() >= MAX_STRATEGIES {
        return;
    }
    let Some((&scheme, others)) = used.split_first() else {
        strategies.insert(rounded.clone());
        return;
    };
    let devices = u64::from(schemes[scheme].devices());
    let before = rounded[scheme];
    let smallest = others.iter().map(|&other| u64::from(schemes[other].devices())).min();
    for more in (0..=spare / devices).rev() {
        let left = spare - more * devices;
        // If no other scheme can use the free devices, a smaller number for this scheme is
        // dominated.
        if left >= devices && smallest.is_none_or(|smallest| smallest > left) {
            break;
        }
        rounded[scheme] = before + more as u32;
        fill(rounded, others, schemes, left, strategies);
    }
    rounded[scheme] = before;
}
