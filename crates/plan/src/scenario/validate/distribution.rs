//! Validates distributions: plausible parameters within range.

use super::{Ranges, shortened};
use planscope_core::workload::{Distribution, RealDistribution};

/// Maximum tokens per sample; also the maximum for images.
const MAX: u32 = 1_000_000_000;
const MAX_VALUES: usize = 100_000;

/// Validates an integer distribution.
pub(super) fn integer(distribution: &Distribution, at: &str, ranges: &mut Ranges<'_>) {
    match distribution {
        Distribution::Constant { value } => ranges.integer(&format!("{at}/value"), *value, 0, MAX, ""),
        Distribution::Uniform { min, max } => range(*min, *max, at, ranges),
        Distribution::LogNormal { median, sigma, min, max } => {
            ranges.number(&format!("{at}/median"), *median, 1e-3, 1e9, "");
            ranges.number(&format!("{at}/sigma"), *sigma, 0.0, 10.0, "");
            range(*min, *max, at, ranges);
        }
        Distribution::Histogram { edges, counts } => histogram(edges, counts, f64::from(MAX), at, ranges),
        Distribution::Values { values } => {
            some_values(values.len(), at, ranges);
            if let Some(index) = values.iter().position(|&value| value > MAX) {
                ranges.refuse(&format!("{at}/values/{index}"), format!("at most {MAX}"));
            }
        }
    }
}

/// Validates a real distribution from 0 to `most`.
pub(super) fn real(distribution: &RealDistribution, limit: f64, unit: &str, at: &str, ranges: &mut Ranges<'_>) {
    let mut within = |min: f64, max: f64| {
        ranges.number(&format!("{at}/max"), max, 0.0, limit, unit);
        ranges.number(&format!("{at}/min"), min, 0.0, limit, unit);
        if min > max {
            let (min, max) = (shortened(min), shortened(max));
            ranges.refuse(&format!("{at}/min"), format!("the smallest value {min} is above the largest, {max}"));
        }
    };
    match distribution {
        RealDistribution::Constant { value } => ranges.number(&format!("{at}/value"), *value, 0.0, limit, unit),
        RealDistribution::Uniform { min, max } => within(*min, *max),
        RealDistribution::LogNormal { median, sigma, min, max } => {
            within(*min, *max);
            ranges.number(&format!("{at}/median"), *median, 1e-3, 1e9, "");
            ranges.number(&format!("{at}/sigma"), *sigma, 0.0, 10.0, "");
        }
        RealDistribution::Histogram { edges, counts } => histogram(edges, counts, limit, at, ranges),
        RealDistribution::Values { values } => {
            some_values(values.len(), at, ranges);
            if let Some(index) = values.iter().position(|value| !(0.0..=limit).contains(value)) {
                ranges.refuse(&format!("{at}/values/{index}"), format!("values lie between 0 and {limit}{unit}"));
            }
        }
    }
}

fn some_values(count: usize, at: &str, ranges: &mut Ranges<'_>) {
    if count == 0 || count > MAX_VALUES {
        let detail = format!("one to {MAX_VALUES} values; upload longer lists as a dataset");
        ranges.refuse(&format!("{at}/values"), detail);
    }
}

fn range(min: u32, max: u32, at: &str, ranges: &mut Ranges<'_>) {
    ranges.integer(&format!("{at}/max"), max, 0, MAX, "");
    if min > max {
        ranges.refuse(&format!("{at}/min"), format!("the smallest value {min} is above the largest, {max}"));
    }
}

fn histogram(edges: &[f64], counts: &[f64], limit: f64, at: &str, ranges: &mut Ranges<'_>) {
    if counts.is_empty() || counts.len() > MAX_VALUES || edges.len() != counts.len() + 1 {
        let detail = format!("{} edges for {} counts: one more edge than counts is needed", edges.len(), counts.len());
        ranges.refuse(&format!("{at}/edges"), detail);
        return;
    }
    if let Some(index) = edges.iter().position(|edge| !(0.0..=limit).contains(edge)) {
        ranges.refuse(&format!("{at}/edges/{index}"), format!("edges lie between 0 and {limit}"));
    } else if let Some(index) = edges.windows(2).position(|pair| pair[1] < pair[0]) {
        ranges.refuse(&format!("{at}/edges/{}", index + 1), "edges must not fall".to_owned());
    }
    if let Some(index) = counts.iter().position(|count| !(0.0..=1e18).contains(count)) {
        ranges.refuse(&format!("{at}/counts/{index}"), "counts are zero or more".to_owned());
    } else if counts.iter().all(|&count| count == 0.0) {
        ranges.refuse(&format!("{at}/counts"), "at least one count must be positive".to_owned());
    }
}
