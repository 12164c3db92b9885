//! Robust statistics for the steps of a run.

use std::collections::BTreeMap;

/// A step is an outlier if its distance to the median exceeds this number of median absolute
/// deviations.
const FAR: f64 = 5.0;
/// Minimum deviation, as a fraction of the median. Clock resolution and printed digits cause at
/// least this noise, and a run with identical steps has zero deviation. A step within `FAR` times
/// this value (1 %) of its median is never an outlier.
const MIN_DEVIATION: f64 = 0.002;
/// Maximum number of warm-up steps at the start of a segment, while allocators, compilers and
/// caches settle.
const WARM_UP: usize = 10;
/// Minimum number of timed steps per segment to exclude the first step unconditionally. With two, the second one is nearer to a
/// regular step: the first contains compilation and warm-up.
const MIN: usize = 2;
/// Minimum number of timed steps in which two kinds are looked for.
const MIN_KINDS: usize = 8;
/// Smallest share of each of two kinds of steps. With less than that, the median and the deviations are those of one kind.
const KIND_SHARE: f64 = 0.4;
/// Smallest distance of two kinds of steps, relative to the faster one.
const KIND_DISTANCE: f64 = 0.1;
/// Smallest number of changes between the two kinds in the order of the steps. A run that becomes slower once has one.
const KIND_CHANGES: usize = 4;

/// Fewest steps in which a change is looked for.
const MIN_CHANGE_STEPS: usize = 12;
/// Fewest steps on each side of a change.
const MIN_SIDE: usize = 5;
/// Smallest relative difference of the medians of the first and the last third.
const MIN_CHANGE: f64 = 0.08;
/// A change at one step leaves at most this share of the squared deviations that a linear change leaves.
const ABRUPT: f64 = 0.25;

/// A logged step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Segment index; a restart starts a new segment.
    pub segment: u32,
    /// Logged step number.
    pub step: u64,
    /// Step time in seconds, if logged.
    pub seconds: Option<f64>,
}

impl Step {
    /// Returns the time if it is positive and finite.
    fn time(&self) -> Option<f64> {
        self.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0)
    }
}

/// Cause of an outlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// First step of a segment, or one of the next steps while still slow.
    WarmUp,
    /// Far above the median.
    Slow,
    /// Far below the median.
    Fast,
}

/// An outlier step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutlierStep {
    /// Index of the step.
    pub index: usize,
    /// Signed distance to the segment's median, in median absolute deviations.
    pub deviations: f64,
    /// Cause of the outlier.
    pub reason: Reason,
}

/// A part of a run between restarts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// Segment index.
    pub segment: u32,
    /// Minimum step number.
    pub first_step: u64,
    /// Maximum step number.
    pub last_step: u64,
    /// Number of logged steps.
    pub points: u64,
    /// Median time in seconds, excluding outliers. If the step time changes, of the steps from there on.
    pub median_s: Option<f64>,
    /// Step at which the time changes, if it does.
    pub change: Option<Change>,
}

/// A step time that changes at one step and stays changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// Index of the first step with the new time.
    pub index: usize,
    /// Median before in seconds, without the warm-up.
    pub before_s: f64,
    /// Median from there on in seconds.
    pub after_s: f64,
}

/// Steps separated into regular steps and outliers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sifted {
    /// Indices of regular timed steps, ascending.
    pub regular: Vec<usize>,
    /// Outliers by ascending index.
    pub outliers: Vec<OutlierStep>,
    /// Segments by order of appearance.
    pub segments: Vec<Segment>,
}

/// Returns the median; for an even number of values, the mean of the two middle values. `None` for
/// an empty slice.
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

/// Separates regular steps from outliers, per segment. The first timed step of a segment is
/// warm-up, as are the next steps while they are far too slow. Among the other steps, those with a
/// distance to the median of more than five median absolute deviations are outliers. If about every
/// second step takes longer, the median is that of the others. If the step time changes at one step and stays changed, the steps
/// before and after it have medians of their own.
pub fn sift(steps: &[Step]) -> Sifted {
    let mut sifted = Sifted::default();
    // Segments by order of appearance, each with its step indices.
    let mut parts: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut known: BTreeMap<u32, usize> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        let part = *known.entry(step.segment).or_insert_with(|| {
            parts.push((step.segment, Vec::new()));
            parts.len() - 1
        });
        parts[part].1.push(index);
    }
    for (segment, indices) in parts {
        let timed: Vec<(usize, f64)> =
            indices.iter().filter_map(|&index| Some((index, steps[index].time()?))).collect();
        let mut part = Sifted::default();
        sort_out(&timed, true, &mut part);
        let change = find_change(&without_warm_up(&timed, &part));
        if let Some(change) = change {
            let cut = timed.partition_point(|(index, _)| *index < change.index);
            part = Sifted::default();
            sort_out(&timed[..cut], true, &mut part);
            sort_out(&timed[cut..], false, &mut part);
        }
        let since = change.map_or(0, |change| change.index);
        let present = part.regular.iter().filter(|&&index| index >= since);
        let regular_times: Vec<f64> = present.filter_map(|&index| steps[index].time()).collect();
        sifted.regular.append(&mut part.regular);
        sifted.outliers.append(&mut part.outliers);
        let numbers = || indices.iter().map(|&index| steps[index].step);
        sifted.segments.push(Segment {
            segment,
            first_step: numbers().min().unwrap_or(0),
            last_step: numbers().max().unwrap_or(0),
            points: indices.len() as u64,
            median_s: median(&regular_times),
            change,
        });
    }
    sifted.regular.sort_unstable();
    sifted.outliers.sort_by_key(|outlier| outlier.index);
    sifted
}

/// Median absolute deviation, at least that of clocks and printed digits.
fn deviation(times: &[f64], centre: f64) -> f64 {
    let distances: Vec<f64> = times.iter().map(|seconds| (seconds - centre).abs()).collect();
    median(&distances).unwrap_or(0.0).max(MIN_DEVIATION * centre)
}

/// Returns the times of the faster kind if about half of the steps, throughout the run, take longer by a similar time, for example
/// because every second step waits for data. The median over both kinds would be the time of no step.
fn faster_kind(times: &[f64]) -> Option<Vec<f64>> {
    if times.len() < MIN_KINDS {
        return None;
    }
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let least = (KIND_SHARE * times.len() as f64).ceil() as usize;
    let gap = |cut: usize| sorted[cut] - sorted[cut - 1];
    let cut = (least..=times.len() - least).max_by(|&a, &b| gap(a).total_cmp(&gap(b)))?;
    let (fast, slow) = sorted.split_at(cut);
    let spread = |kind: &[f64]| median(kind).map_or(f64::INFINITY, |centre| deviation(kind, centre));
    let changes = times.windows(2).filter(|pair| (pair[0] < slow[0]) != (pair[1] < slow[0])).count();
    let is_apart = gap(cut) > KIND_DISTANCE * fast[cut - 1] && gap(cut) > FAR * spread(fast).max(spread(slow));
    (is_apart && changes >= KIND_CHANGES).then(|| fast.to_vec())
}

/// Returns the timed steps after the warm-up.
fn without_warm_up(timed: &[(usize, f64)], part: &Sifted) -> Vec<(usize, f64)> {
    let is_warm_up = |index: usize| {
        let at = part.outliers.binary_search_by_key(&index, |outlier| outlier.index);
        at.is_ok_and(|at| part.outliers[at].reason == Reason::WarmUp)
    };
    timed.iter().copied().filter(|(index, _)| !is_warm_up(*index)).collect()
}

/// Returns the medians of the first and the last third, if they differ.
pub fn differing_thirds(times: &[f64]) -> Option<(f64, f64)> {
    if times.len() < MIN_CHANGE_STEPS {
        return None;
    }
    let third = times.len() / 3;
    let (first_s, last_s) = (median(&times[..third])?, median(&times[times.len() - third..])?);
    ((last_s / first_s - 1.0).abs() >= MIN_CHANGE).then_some((first_s, last_s))
}

/// Returns the step at which the time changes and stays changed: two means leave much less of the squared deviations than a
/// straight line. Times are clipped to both medians, so that single long steps, for example with a checkpoint, do not count.
fn find_change(steps: &[(usize, f64)]) -> Option<Change> {
    let times: Vec<f64> = steps.iter().map(|(_, seconds)| *seconds).collect();
    let (first_s, last_s) = differing_thirds(&times)?;
    let (lowest, highest) = (first_s.min(last_s), first_s.max(last_s));
    let clipped: Vec<f64> = times.iter().map(|seconds| seconds.clamp(lowest, highest)).collect();
    let cut = abrupt_change(&clipped)?;
    let (before_s, after_s) = (median(&times[..cut])?, median(&times[cut..])?);
    let is_change = (after_s / before_s - 1.0).abs() >= MIN_CHANGE;
    is_change.then_some(Change { index: steps[cut].0, before_s, after_s })
}

/// Returns the position of the first time after an abrupt change. `None` if the times change gradually.
fn abrupt_change(times: &[f64]) -> Option<usize> {
    let (all, all_squares) =
        times.iter().fold((0.0, 0.0), |(sum, squares), seconds| (sum + seconds, squares + seconds * seconds));
    let count = times.len() as f64;
    let mut best = (f64::INFINITY, 0);
    let (mut left, mut left_squares) = (0.0, 0.0);
    for (index, seconds) in times.iter().enumerate().take(times.len().saturating_sub(MIN_SIDE)) {
        left += seconds;
        left_squares += seconds * seconds;
        let before = (index + 1) as f64;
        let right = all - left;
        let rest =
            left_squares - left * left / before + (all_squares - left_squares) - right * right / (count - before);
        if index + 1 >= MIN_SIDE && rest < best.0 {
            best = (rest, index + 1);
        }
    }
    // Squared deviations from a straight line over the position.
    let (mean, centre) = (all / count, (count - 1.0) / 2.0);
    let (mut covariance, mut variance, mut squares) = (0.0, 0.0, 0.0);
    for (index, seconds) in times.iter().enumerate() {
        let (x, y) = (index as f64 - centre, seconds - mean);
        covariance += x * y;
        variance += x * x;
        squares += y * y;
    }
    let linear = squares - covariance * covariance / variance;
    (best.0 < ABRUPT * linear).then_some(best.1)
}

/// Classifies the timed steps of one segment, or of the steps after a change, which have no warm-up.
fn sort_out(timed: &[(usize, f64)], has_warm_up: bool, sifted: &mut Sifted) {
    let behind_first = usize::from(has_warm_up && timed.len() >= MIN);
    let times: Vec<f64> = timed[behind_first..].iter().map(|(_, seconds)| *seconds).collect();
    let faster = faster_kind(&times);
    let regular = faster.as_deref().unwrap_or(&times);
    let Some(centre) = median(regular) else { return };
    let deviation = deviation(regular, centre);
    let mut warming = has_warm_up;
    for (position, &(index, seconds)) in timed.iter().enumerate() {
        let deviations = (seconds - centre) / deviation;
        let is_first = position < behind_first;
        warming &= is_first || (position < WARM_UP && deviations > FAR);
        let reason = match () {
            () if warming && (is_first || deviations > FAR) => Some(Reason::WarmUp),
            () if deviations > FAR => Some(Reason::Slow),
            () if deviations < -FAR => Some(Reason::Fast),
            () => None,
        };
        match reason {
            Some(reason) => sifted.outliers.push(OutlierStep { index, deviations, reason }),
            None => sifted.regular.push(index),
        }
    }
}
