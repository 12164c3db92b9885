//! Robust statistics of the steps of a run.

use std::collections::BTreeMap;

/// A step further from the median than so many median absolute deviations stands apart.
const FAR: f64 = 5.0;
/// Least deviation that is counted with, as a share of the median: clocks and prints blur no less, and a run whose steps repeat to
/// the last digit has none at all. A step within `FAR` times this share, 1 %, of its median never stands apart.
const LEAST_DEVIATION: f64 = 0.002;
/// The first steps of a part of a run may be of warm-up: allocators, compilers and caches settle within these.
const WARM_UP: usize = 10;
/// Fewest timed steps of a part of which the first is left out without a look at its time.
const FEWEST: usize = 3;

/// What a log says of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Part of the run, a restart opening the next.
    pub segment: u32,
    /// Its number, as the trainer counts.
    pub step: u64,
    /// Its time in s, where the log says it.
    pub seconds: Option<f64>,
}

impl Step {
    /// The time, where it is one.
    fn time(&self) -> Option<f64> {
        self.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)
    }
}

/// Why a step stands apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is the first of a part of the run, or follows it and is still slow.
    WarmUp,
    /// Far above the median.
    Slow,
    /// Far below the median.
    Fast,
}

/// A step that stands apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Apart {
    /// Its place among the steps.
    pub index: usize,
    /// Distance from the median of its part in median absolute deviations, with its sign.
    pub deviations: f64,
    /// Why.
    pub reason: Reason,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Its number.
    pub segment: u32,
    /// Least number of a step.
    pub first_step: u64,
    /// Largest number of a step.
    pub last_step: u64,
    /// Steps that the log speaks of.
    pub points: u64,
    /// Median time of the steps that do not stand apart, in s.
    pub median_s: Option<f64>,
}

/// The steps of a run, sifted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sifted {
    /// Places of the timed steps that do not stand apart, in order.
    pub kept: Vec<usize>,
    /// Those that do, in order.
    pub apart: Vec<Apart>,
    /// The parts, in the order in which they begin.
    pub segments: Vec<Segment>,
}

/// The median; of an even number, half way between the two in the middle. `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Sifts the steps of a run, part by part: the first timed step of a part warms up, as do the next few as long as they are far
/// too slow; of all others those stand apart that are more than five median absolute deviations from the median.
pub fn sift(steps: &[Step]) -> Sifted {
    let mut sifted = Sifted::default();
    // In the order in which the parts begin; of each the places of its steps.
    let mut parts: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        let part = *known.entry(step.segment).or_insert_with(|| {
            parts.push((step.segment, Vec::new()));
            parts.len() - 1
        });
        parts[part].1.push(index);
    }
    for (segment, own) in parts {
        let timed: Vec<(usize, f64)> = own.iter().filter_map(|&index| Some((index, steps[index].time()?))).collect();
        let before = sifted.kept.len();
        sort_out(&timed, &mut sifted);
        let kept: Vec<f64> = sifted.kept[before..].iter().filter_map(|&index| steps[index].time()).collect();
        let numbers = || own.iter().map(|&index| steps[index].step);
        sifted.segments.push(Segment {
            segment,
            first_step: numbers().min().unwrap_or(0),
            last_step: numbers().max().unwrap_or(0),
            points: own.len() as u64,
            median_s: median(&kept),
        });
    }
    sifted.kept.sort_unstable();
    sifted.apart.sort_by_key(|apart| apart.index);
    sifted
}

/// The timed steps of one part.
fn sort_out(timed: &[(usize, f64)], sifted: &mut Sifted) {
    let behind_first = usize::from(timed.len() >= FEWEST);
    let times: Vec<f64> = timed[behind_first..].iter().map(|(_, seconds)| *seconds).collect();
    let Some(centre) = median(&times) else { return };
    let distances: Vec<f64> = times.iter().map(|seconds| (seconds - centre).abs()).collect();
    let deviation = median(&distances).unwrap_or(0.0).max(LEAST_DEVIATION * centre);
    let mut warming = true;
    for (place, &(index, seconds)) in timed.iter().enumerate() {
        let deviations = (seconds - centre) / deviation;
        let is_first = place < behind_first;
        warming &= is_first || (place < WARM_UP && deviations > FAR);
        let reason = match () {
            () if warming && (is_first || deviations > FAR) => Some(Reason::WarmUp),
            () if deviations > FAR => Some(Reason::Slow),
            () if deviations < -FAR => Some(Reason::Fast),
            () => None,
        };
        match reason {
            Some(reason) => sifted.apart.push(Apart { index, deviations, reason }),
            None => sifted.kept.push(index),
        }
    }
}
