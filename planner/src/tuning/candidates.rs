//! Candidates of one stage pair: few out of all combinations of its layers' strategies.
//!
//! A stage of n layers with k strategies each has k^n combinations; the choice over all pairs of a rank needs a handful
//! of them, spread over memory. They are the solutions of one multiple-choice knapsack for a few capacities at once:
//! layer by layer, partial sums that another partial sum beats in both time and memory are dropped, and so is every
//! sum that cannot reach a capacity's incumbent even if the layers to come could be mixed in fractions (the linear
//! relaxation of the knapsack, Dyer 1984, Zemel 1984). Equal layers give equal sums, which collapse into one; that is
//! what keeps stages of equal layers cheap. Nothing is rounded: the result is exact.

use std::collections::BTreeMap;

use crate::units::{Bytes, Nanos};

/// What one layer costs under one memory strategy: none, selective, full recomputation, offloading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerOption {
    /// Forward and backward together.
    pub time: Nanos,
    /// Held from the forward to the backward.
    pub memory: Bytes,
}

/// One combination of strategies for the layers of a stage pair.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// Of each layer the index of its option. Of equal layers the first ones take the leaner options.
    pub options: Vec<u8>,
    /// Sum of the layers' times.
    pub time: Nanos,
    /// Sum of the layers' memory.
    pub memory: Bytes,
}

/// The leanest combination, the fastest, and the fastest in each of `keep` - 2 equal ranges of memory between them
/// (PipeWeaver, section 6.3, candidate generation), by rising memory.
///
/// No candidate is beaten by another in both time and memory, so there may be fewer than `keep`, and where one
/// combination is both leanest and fastest there is one. A range excludes its upper end. Below 2, `keep` is 2. Only the
/// first 256 options of a layer count; a layer without options leaves no candidate at all.
pub fn candidates(layers: &[Vec<LayerOption>], keep: usize) -> Vec<Candidate> {
    let classes = classes(layers);
    if classes.iter().any(|class| class.options.is_empty()) {
        return Vec::new();
    }
    let extreme = |pick: fn(&[Useful]) -> Option<&Useful>| {
        let mut candidate = Candidate { options: vec![0; layers.len()], time: Nanos::ZERO, memory: Bytes::ZERO };
        for class in &classes {
            let useful = pick(&class.options).expect("classes without options were answered above");
            for &layer in &class.layers {
                candidate.options[layer] = useful.index;
                candidate.time += useful.time;
                candidate.memory += useful.memory;
            }
        }
        candidate
    };
    let (leanest, fastest) = (extreme(<[Useful]>::first), extreme(<[Useful]>::last));
    if leanest.memory == fastest.memory {
        return vec![leanest];
    }
    let limits = limits(leanest.memory, fastest.memory, keep);
    let mut found = vec![leanest];
    if !limits.is_empty() {
        let search = Search::run(&classes, &limits);
        for &limit in &limits {
            let Some(last) = search.fastest_within(limit) else { continue };
            if last.memory > found[found.len() - 1].memory {
                found.push(search.candidate(&classes, layers.len(), last));
            }
        }
    }
    found.push(fastest);
    found
}

/// Most memory of each range, its upper end excluded.
fn limits(leanest: Bytes, fastest: Bytes, keep: usize) -> Vec<Bytes> {
    let ranges = keep.saturating_sub(2) as u128;
    let width = u128::from(fastest.get() - leanest.get());
    let mut limits: Vec<Bytes> =
        (1..=ranges).map(|range| Bytes::new(leanest.get() + ((width * range).div_ceil(ranges) - 1) as u64)).collect();
    limits.dedup();
    limits
}

/// An option that no other of its layer beats in both time and memory.
#[derive(Debug, Clone, Copy)]
struct Useful {
    index: u8,
    time: Nanos,
    memory: Bytes,
}

/// Layers with the same options.
struct Class {
    layers: Vec<usize>,
    /// By rising memory and falling time.
    options: Vec<Useful>,
    /// Steps along the lower convex hull of the options, steepest first.
    hull: Vec<Step>,
}

/// From one corner of a hull to the next: more memory, less time.
#[derive(Clone, Copy)]
struct Step {
    memory: u64,
    time: u64,
}

impl Step {
    fn saved_per_byte(self) -> f64 {
        self.time as f64 / self.memory as f64
    }
}

fn classes(layers: &[Vec<LayerOption>]) -> Vec<Class> {
    let mut equal: BTreeMap<&[LayerOption], Vec<usize>> = BTreeMap::new();
    for (layer, options) in layers.iter().enumerate() {
        equal.entry(options).or_default().push(layer);
    }
    let mut classes: Vec<Class> = equal
        .into_iter()
        .map(|(options, layers)| {
            let options = useful(options);
            Class { layers, hull: hull(&options), options }
        })
        .collect();
    // Large classes first: their sums collapse, so they are followed while there is little to multiply them with.
    classes.sort_by_key(|class| (std::cmp::Reverse(class.layers.len()), class.layers[0]));
    classes
}

fn useful(options: &[LayerOption]) -> Vec<Useful> {
    let mut sorted: Vec<Useful> = (0..=u8::MAX)
        .zip(options)
        .map(|(index, option)| Useful { index, time: option.time, memory: option.memory })
        .collect();
    sorted.sort_by_key(|option| (option.memory, option.time, option.index));
    let mut front: Vec<Useful> = Vec::with_capacity(sorted.len());
    for option in sorted {
        if front.last().is_none_or(|last| option.time < last.time) {
            front.push(option);
        }
    }
    front
}

fn hull(front: &[Useful]) -> Vec<Step> {
    let mut corners: Vec<&Useful> = Vec::with_capacity(front.len());
    let step = |from: &Useful, to: &Useful| Step {
        memory: to.memory.get() - from.memory.get(),
        time: from.time.get() - to.time.get(),
    };
    for option in front {
        while let [.., before, last] = corners[..] {
            if step(before, last).saved_per_byte() > step(last, option).saved_per_byte() {
                break;
            }
            corners.pop();
        }
        corners.push(option);
    }
    corners.windows(2).map(|pair| step(pair[0], pair[1])).collect()
}

/// A partial sum: the first layers, in the order of the classes.
#[derive(Clone, Copy)]
struct Sum {
    memory: Bytes,
    time: Nanos,
    /// Sum that it extends, an index into the layer before.
    parent: u32,
    /// Option of its last layer, an index into its class.
    option: u8,
}

/// The sums worth following, layer by layer.
struct Search {
    fronts: Vec<Vec<Sum>>,
}

impl Search {
    fn run(classes: &[Class], limits: &[Bytes]) -> Self {
        let start = Sum { memory: Bytes::ZERO, time: Nanos::ZERO, parent: 0, option: 0 };
        let mut fronts = vec![vec![start]];
        let mut remaining: Vec<usize> = classes.iter().map(|class| class.layers.len()).collect();
        let mut steps: Vec<(usize, Step)> = classes
            .iter()
            .enumerate()
            .flat_map(|(class, own)| own.hull.iter().map(move |&step| (class, step)))
            .collect();
        // A stable sort keeps the steps of one class in their order along the hull.
        steps.sort_by(|(_, one), (_, other)| other.saved_per_byte().total_cmp(&one.saved_per_byte()));
        let incumbents: Vec<f64> = limits.iter().map(|&limit| greedy(classes, &steps, limit)).collect();
        let mut extended = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            for _ in &class.layers {
                remaining[number] -= 1;
                let rest = Rest::of(classes, &remaining, &steps);
                extend(&fronts[fronts.len() - 1], &class.options, &mut extended);
                let alive = |sum: &Sum| {
                    let bounds = limits.iter().zip(&incumbents);
                    bounds.rev().any(|(&limit, &incumbent)| rest.at_least(sum, limit) <= incumbent)
                };
                fronts.push(extended.drain(..).filter(alive).collect());
            }
        }
        Self { fronts }
    }

    /// Sums of the last layer have rising memory and falling time.
    fn fastest_within(&self, limit: Bytes) -> Option<Sum> {
        self.fronts[self.fronts.len() - 1].iter().rev().find(|sum| sum.memory <= limit).copied()
    }

    fn candidate(&self, classes: &[Class], layers: usize, last: Sum) -> Candidate {
        let mut options = vec![0; layers];
        let mut sum = last;
        let mut depth = self.fronts.len() - 1;
        for class in classes.iter().rev() {
            let mut chosen = Vec::with_capacity(class.layers.len());
            for _ in &class.layers {
                chosen.push(sum.option);
                depth -= 1;
                sum = self.fronts[depth][sum.parent as usize];
            }
            chosen.sort_unstable();
            for (&layer, option) in class.layers.iter().zip(chosen) {
                options[layer] = class.options[usize::from(option)].index;
            }
        }
        Candidate { options, time: last.time, memory: last.memory }
    }
}

/// Every sum with every option of one more layer, without those that another one beats; by rising memory.
fn extend(sums: &[Sum], options: &[Useful], extended: &mut Vec<Sum>) {
    let with = |parent: usize, option: usize| Sum {
        memory: sums[parent].memory + options[option].memory,
        time: sums[parent].time + options[option].time,
        parent: parent as u32,
        option: option as u8,
    };
    // One ordered list per option, merged: each list rises in memory because the sums do.
    let mut heads: Vec<Option<Sum>> =
        (0..options.len()).map(|option| (!sums.is_empty()).then(|| with(0, option))).collect();
    loop {
        let next = heads.iter().flatten().min_by_key(|sum| (sum.memory, sum.time)).copied();
        let Some(sum) = next else { return };
        let after = sum.parent as usize + 1;
        heads[usize::from(sum.option)] = (after < sums.len()).then(|| with(after, usize::from(sum.option)));
        if extended.last().is_none_or(|last: &Sum| sum.time < last.time) {
            extended.push(sum);
        }
    }
}

/// What the layers to come cost at least, for any memory: the sum of their hulls.
struct Rest {
    /// Corners by rising memory and falling time, the leanest first.
    corners: Vec<(f64, f64)>,
}

impl Rest {
    fn of(classes: &[Class], remaining: &[usize], steps: &[(usize, Step)]) -> Self {
        let (mut memory, mut time) = (0.0, 0.0);
        for (class, &count) in classes.iter().zip(remaining) {
            memory += class.options[0].memory.get() as f64 * count as f64;
            time += class.options[0].time.get() as f64 * count as f64;
        }
        let mut corners = Vec::with_capacity(steps.len() + 1);
        corners.push((memory, time));
        for &(class, step) in steps.iter().filter(|(class, _)| remaining[*class] > 0) {
            memory += step.memory as f64 * remaining[class] as f64;
            time -= step.time as f64 * remaining[class] as f64;
            corners.push((memory, time));
        }
        Self { corners }
    }

    /// Least time of a whole combination that starts with `sum` and stays within `limit`, rounded down so far that
    /// the errors of its sums cannot hide a better combination; infinite where there is none.
    fn at_least(&self, sum: &Sum, limit: Bytes) -> f64 {
        /// Relative error of adding up some hundred terms in f64, with room.
        const ROUNDING: f64 = 1e-12;
        let room = limit.get() as f64 - sum.memory.get() as f64;
        let beyond = self.corners.partition_point(|corner| corner.0 <= room);
        let rest = match (beyond.checked_sub(1).map(|at| self.corners[at]), self.corners.get(beyond)) {
            (None, _) => return f64::INFINITY,
            (Some(corner), None) => corner.1,
            (Some(from), Some(to)) => from.1 + (to.1 - from.1) * (room - from.0) / (to.0 - from.0),
        };
        let least = sum.time.get() as f64 + rest;
        least - least.abs() * ROUNDING - 1.0
    }
}

/// Time of one good combination within `limit`: along the hulls, each step as often as it fits.
fn greedy(classes: &[Class], steps: &[(usize, Step)], limit: Bytes) -> f64 {
    let lean = |of: fn(&Useful) -> u64| -> u64 {
        let of_class = |class: &Class| of(&class.options[0]).saturating_mul(class.layers.len() as u64);
        classes.iter().map(of_class).fold(0, u64::saturating_add)
    };
    let mut room = limit.get().saturating_sub(lean(|option| option.memory.get()));
    let mut time = lean(|option| option.time.get());
    // Of each class, how many layers have come as far as the step before the next.
    let mut arrived: Vec<u64> = classes.iter().map(|class| class.layers.len() as u64).collect();
    for &(class, step) in steps {
        let taken = arrived[class].min(room / step.memory);
        room -= taken * step.memory;
        time = time.saturating_sub(taken * step.time);
        arrived[class] = taken;
    }
    time as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn option(time: u64, memory: u64) -> LayerOption {
        LayerOption { time: Nanos::new(time), memory: Bytes::new(memory) }
    }

    fn costs(candidates: &[Candidate]) -> Vec<(u64, u64)> {
        candidates.iter().map(|candidate| (candidate.time.get(), candidate.memory.get())).collect()
    }

    /// Four equal layers, (3, 10) kept or (5, 2) recomputed: k recomputed cost (12 + 2k, 40 - 8k). Between 8 and 40
    /// bytes lie the ranges 8..24 and 24..40 for `keep` 4; their fastest are k = 3 with 16 and k = 1 with 32.
    #[test]
    fn equal_layers_are_recomputed_one_by_one_from_the_first() {
        let layers = vec![vec![option(3, 10), option(5, 2)]; 4];
        let found = candidates(&layers, 4);
        assert_eq!(costs(&found), [(20, 8), (18, 16), (14, 32), (12, 40)]);
        assert_eq!(found[1].options, [1, 1, 1, 0]);
        assert_eq!(found[2].options, [1, 0, 0, 0]);
    }

    #[test]
    fn few_candidates_are_the_extremes_alone() {
        let layers = vec![vec![option(3, 10), option(5, 2)]; 4];
        for keep in 0..=2 {
            assert_eq!(costs(&candidates(&layers, keep)), [(20, 8), (12, 40)], "{keep}");
        }
    }

    #[test]
    fn what_is_beaten_in_both_is_no_candidate() {
        for (options, keep, expected) in [
            // The second is slower and larger, the third as slow and larger.
            (vec![option(3, 4), option(4, 5), option(3, 6)], 9, vec![(3, 4)]),
            // Nothing lies between two combinations of one layer, however many ranges there are.
            (vec![option(1, 100), option(9, 0)], 50, vec![(9, 0), (1, 100)]),
            (vec![option(0, 0)], 5, vec![(0, 0)]),
        ] {
            assert_eq!(costs(&candidates(std::slice::from_ref(&options), keep)), expected, "{options:?}");
        }
    }

    #[test]
    fn no_layers_cost_nothing_and_no_options_leave_nothing() {
        assert_eq!(costs(&candidates(&[], 5)), [(0, 0)]);
        assert!(candidates(&[vec![option(1, 1)], Vec::new()], 5).is_empty());
    }

    /// (time, memory) of every combination.
    fn all(layers: &[Vec<LayerOption>]) -> Vec<(u64, u64)> {
        layers.iter().fold(vec![(0, 0)], |sums, options| {
            let with = |(time, memory): (u64, u64)| {
                options.iter().map(move |option| (time + option.time.get(), memory + option.memory.get()))
            };
            sums.into_iter().flat_map(with).collect()
        })
    }

    /// By the definition, from all combinations.
    fn expected(layers: &[Vec<LayerOption>], keep: u64) -> Vec<(u64, u64)> {
        let all = all(layers);
        let beaten = |&(time, memory): &(u64, u64)| {
            all.iter().any(|&other| other.0 <= time && other.1 <= memory && other != (time, memory))
        };
        let mut front: Vec<(u64, u64)> = all.iter().filter(|sum| !beaten(sum)).copied().collect();
        front.sort_by_key(|sum| sum.1);
        front.dedup();
        let (leanest, fastest) = (front[0], front[front.len() - 1]);
        let mut found = vec![leanest];
        let width = fastest.1 - leanest.1;
        for range in 0..keep - 2 {
            let inside = |&&(_, memory): &&(u64, u64)| {
                let scaled = (memory - leanest.1) * (keep - 2);
                scaled >= range * width && scaled < (range + 1) * width
            };
            found.extend(front.iter().filter(inside).min());
        }
        found.push(fastest);
        found.dedup();
        found
    }

    fn stages() -> impl Strategy<Value = Vec<Vec<LayerOption>>> {
        let layer = prop::collection::vec((0_u64..40, 0_u64..40).prop_map(|(time, memory)| option(time, memory)), 1..4);
        // Up to three different layers, each repeated: stages of mostly equal layers.
        prop::collection::vec((layer, 1_usize..4), 1..4).prop_map(|classes| {
            let mut layers: Vec<Vec<LayerOption>> =
                classes.into_iter().flat_map(|(layer, count)| std::iter::repeat_n(layer, count)).collect();
            let half = layers.len() / 2;
            layers.rotate_left(half);
            layers
        })
    }

    proptest! {
        #[test]
        fn candidates_are_those_of_the_definition(layers in stages(), keep in 2_usize..9) {
            let found = candidates(&layers, keep);
            prop_assert_eq!(costs(&found), expected(&layers, keep as u64));
            for candidate in &found {
                let chosen = layers.iter().zip(&candidate.options).map(|(options, &at)| options[usize::from(at)]);
                let sum = chosen.fold((0, 0), |sum, option| (sum.0 + option.time.get(), sum.1 + option.memory.get()));
                prop_assert_eq!(sum, (candidate.time.get(), candidate.memory.get()));
            }
        }
    }
}
