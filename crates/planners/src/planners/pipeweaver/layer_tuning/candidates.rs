//! Candidate generation for a stage pair: selects a few combinations of layer strategies.
//!
//! A stage that has n layers and k strategies per layer has k^n combinations. The selection over
//! all pairs on a rank needs only a few, distributed over the memory range. These are solutions to
//! a multiple-choice knapsack problem for several capacities. The algorithm adds layers
//! successively. It drops partial sums that are dominated in time and memory, and partial sums that
//! cannot improve any capacity's incumbent even if the remaining layers could be mixed fractionally
//! (the linear programming relaxation, Dyer 1984, Zemel 1984). Equal layers produce equal sums,
//! which merge; therefore stages of equal layers are cheap. The algorithm does not round, so the
//! result is exact.

use std::collections::BTreeMap;

use planscope_core::units::{Bytes, Nanos};

/// Cost of a layer under a memory strategy: no recomputation, selective or full recomputation,
/// offloading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerOption {
    /// Forward plus backward time.
    pub time: Nanos,
    /// Bytes stored from forward to backward.
    pub memory: Bytes,
}

/// A strategy combination for the layers in a stage pair.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// Option index per layer. Among equal layers, lower indices use options that need less memory.
    pub options: Vec<u8>,
    /// Total time.
    pub time: Nanos,
    /// Total memory.
    pub memory: Bytes,
}

/// Returns the minimum-memory combination, the minimum-time combination, and the minimum-time
/// combination in each of `keep` - 2 equal memory ranges between them, by ascending memory
/// (candidate generation in PipeWeaver Sec. 6.3).
///
/// No candidate dominates another, so the result can contain fewer than `keep` candidates, or a
/// single candidate if the same combination minimizes memory and time. A range excludes its upper
/// end. The minimum for `keep` is 2. The function considers at most 256 options per layer. If a
/// layer has no options, the result is empty.
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

/// Maximum memory per range, excluding the upper end.
fn limits(leanest: Bytes, fastest: Bytes, keep: usize) -> Vec<Bytes> {
    let ranges = keep.saturating_sub(2) as u128;
    let width = u128::from(fastest.get() - leanest.get());
    let mut limits: Vec<Bytes> =
        (1..=ranges).map(|range| Bytes::new(leanest.get() + ((width * range).div_ceil(ranges) - 1) as u64)).collect();
    limits.dedup();
    limits
}

/// A non-dominated option.
#[derive(Debug, Clone, Copy)]
struct Useful {
    index: u8,
    time: Nanos,
    memory: Bytes,
}

/// Layers that have the same options.
struct Class {
    layers: Vec<usize>,
    /// Options by ascending memory and descending time.
    options: Vec<Useful>,
    /// Steps along the lower convex hull, steepest first.
    hull: Vec<Step>,
}

/// A step between adjacent hull vertices: more memory, less time.
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
    // Process large classes first: their sums merge, and few other sums exist at that point.
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

/// A partial sum for a prefix of the layers, in class order.
#[derive(Clone, Copy)]
struct Sum {
    memory: Bytes,
    time: Nanos,
    /// Index of the parent sum in the previous layer.
    parent: u32,
    /// Option index for the last layer, within its class.
    option: u8,
}

/// Non-dominated sums, layer by layer.
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
            .flat_map(|(class, layer_class)| layer_class.hull.iter().map(move |&step| (class, step)))
            .collect();
        // A stable sort preserves the hull order within a class.
        steps.sort_by(|(_, current), (_, other)| other.saved_per_byte().total_cmp(&current.saved_per_byte()));
        let incumbents: Vec<f64> = limits.iter().map(|&limit| greedy(classes, &steps, limit)).collect();
        let mut extended = Vec::new();
        for (number, class) in classes.iter().enumerate() {
            for _ in &class.layers {
                remaining[number] -= 1;
                let rest = Rest::new(classes, &remaining, &steps);
                extend(&fronts[fronts.len() - 1], &class.options, &mut extended);
                let alive = |sum: &Sum| {
                    let bounds = limits.iter().zip(&incumbents);
                    bounds.rev().any(|(&limit, &incumbent)| rest.lower_bound(sum, limit) <= incumbent)
                };
                fronts.push(extended.drain(..).filter(alive).collect());
            }
        }
        Self { fronts }
    }

    /// Binary search works because final sums have ascending memory and descending time.
    fn fastest_within(&self, limit: Bytes) -> Option<Sum> {
        self.fronts[self.fronts.len() - 1].iter().rev().find(|sum| sum.memory <= limit).copied()
    }

    fn candidate(&self, classes: &[Class], layers: usize, last: Sum) -> Candidate {
        let mut options = vec![0; layers];
        let mut sum = last;
        let mut depth = self.fronts.len() - 1;
        for class in classes.iter().rev() {
            let mut selected = Vec::with_capacity(class.layers.len());
            for _ in &class.layers {
                selected.push(sum.option);
                depth -= 1;
                sum = self.fronts[depth][sum.parent as usize];
            }
            selected.sort_unstable();
            for (&layer, option) in class.layers.iter().zip(selected) {
                options[layer] = class.options[usize::from(option)].index;
            }
        }
        Candidate { options, time: last.time, memory: last.memory }
    }
}

/// Combines all sums with all options of the next layer and removes dominated sums. Sorted by
/// ascending memory.
fn extend(sums: &[Sum], options: &[Useful], extended: &mut Vec<Sum>) {
    let with = |parent: usize, option: usize| Sum {
        memory: sums[parent].memory + options[option].memory,
        time: sums[parent].time + options[option].time,
        parent: parent as u32,
        option: option as u8,
    };
    // Merge the sorted lists (per option): sums ascend in memory, so each list does, too.
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

/// Minimum cost of the remaining layers as a function of memory: the sum of their hulls.
struct Rest {
    /// Vertices by ascending memory and descending time.
    corners: Vec<(f64, f64)>,
}

impl Rest {
    fn new(classes: &[Class], remaining: &[usize], steps: &[(usize, Step)]) -> Self {
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

    /// Lower bound on the time for completions of `sum` within `limit`, or infinity if none exists.
    /// The bound is reduced by the rounding error, so that it never excludes a better combination.
    fn lower_bound(&self, sum: &Sum, limit: Bytes) -> f64 {
        /// Relative rounding error for sums with several hundred `f64` terms, including a safety
        /// margin.
        const ROUNDING: f64 = 1e-12;
        let capacity = limit.get() as f64 - sum.memory.get() as f64;
        let beyond = self.corners.partition_point(|corner| corner.0 <= capacity);
        let rest = match (beyond.checked_sub(1).map(|at| self.corners[at]), self.corners.get(beyond)) {
            (None, _) => return f64::INFINITY,
            (Some(corner), None) => corner.1,
            (Some(from), Some(to)) => from.1 + (to.1 - from.1) * (capacity - from.0) / (to.0 - from.0),
        };
        let bound = sum.time.get() as f64 + rest;
        bound - bound.abs() * ROUNDING - 1.0
    }
}

/// Time of a greedy combination within `limit`: takes hull steps as long as they fit.
fn greedy(classes: &[Class], steps: &[(usize, Step)], limit: Bytes) -> f64 {
    let lean = |value: fn(&Useful) -> u64| -> u64 {
        let class_sum = |class: &Class| value(&class.options[0]).saturating_mul(class.layers.len() as u64);
        classes.iter().map(class_sum).fold(0, u64::saturating_add)
    };
    let mut capacity = limit.get().saturating_sub(lean(|option| option.memory.get()));
    let mut time = lean(|option| option.time.get());
    // Layers per class that have reached the current hull vertex.
    let mut arrived: Vec<u64> = classes.iter().map(|class| class.layers.len() as u64).collect();
    for &(class, step) in steps {
        let taken = arrived[class].min(capacity / step.memory);
        capacity -= taken * step.memory;
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

    /// Four equal layers, stored (3, 10) or recomputed (5, 2): k recomputed layers cost (12 + 2k,
    /// 40 - 8k). For `keep` 4 the ranges between 8 and 40 bytes are 8..24 and 24..40; the
    /// minimum-time combinations are k = 3 (16 bytes) and k = 1 (32 bytes).
    #[test]
    fn equal_layers_are_recomputed_in_order() {
        let layers = vec![vec![option(3, 10), option(5, 2)]; 4];
        let found = candidates(&layers, 4);
        assert_eq!(costs(&found), [(20, 8), (18, 16), (14, 32), (12, 40)]);
        assert_eq!(found[1].options, [1, 1, 1, 0]);
        assert_eq!(found[2].options, [1, 0, 0, 0]);
    }

    #[test]
    fn few_candidates_are_the_extremes() {
        let layers = vec![vec![option(3, 10), option(5, 2)]; 4];
        for keep in 0..=2 {
            assert_eq!(costs(&candidates(&layers, keep)), [(20, 8), (12, 40)], "{keep}");
        }
    }

    #[test]
    fn dominated_candidates_are_excluded() {
        for (options, keep, expected) in [
            // Option 2 is slower and larger; option 3 is equally slow and larger.
            (vec![option(3, 4), option(4, 5), option(3, 6)], 9, vec![(3, 4)]),
            // A single layer with two options has no intermediate combinations.
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

    /// Returns (time, memory) for all combinations.
    fn all(layers: &[Vec<LayerOption>]) -> Vec<(u64, u64)> {
        layers.iter().fold(vec![(0, 0)], |sums, options| {
            let with = |(time, memory): (u64, u64)| {
                options.iter().map(move |option| (time + option.time.get(), memory + option.memory.get()))
            };
            sums.into_iter().flat_map(with).collect()
        })
    }

    /// Reference result from all combinations.
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
        // Up to three different layers, each repeated, so that stages contain mostly equal layers.
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
        fn candidates_match_the_definition(layers in stages(), keep in 2_usize..9) {
            let found = candidates(&layers, keep);
            prop_assert_eq!(costs(&found), expected(&layers, keep as u64));
            for candidate in &found {
                let selected = layers.iter().zip(&candidate.options).map(|(options, &at)| options[usize::from(at)]);
                let sum = selected.fold((0, 0), |sum, option| (sum.0 + option.time.get(), sum.1 + option.memory.get()));
                prop_assert_eq!(sum, (candidate.time.get(), candidate.memory.get()));
            }
        }
    }
}
