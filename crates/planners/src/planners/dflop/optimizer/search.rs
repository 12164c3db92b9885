//! Branch and bound on degree pairs, then on ranges of the microbatch count i. Replaces the full
//! enumeration in DFLOP Alg. 1.

use super::degrees::Split;
use super::durations::{Durations, Side, Sides};
use super::{Configuration, Objective, OptimizerInput};

/// Number of pairs to evaluate first, in ascending order of their bounds. The resulting times are
/// low, so the search prunes the other pairs early.
const FIRST: usize = 16;
/// Relative tolerance. Bounds and times are summed in different orders, so rounding can reverse
/// their order.
const SLACK: f64 = 1e-9;

/// Best strategies and number of evaluations.
pub(crate) struct Found {
    best: Vec<Configuration>,
    looked_at: u64,
}

impl Found {
    /// Adds the number of evaluations to `sum` and returns the strategies.
    pub(crate) fn counted(self, sum: &mut u64) -> Vec<Configuration> {
        *sum += self.looked_at;
        self.best
    }
}

/// Position in the enumeration order of DFLOP Alg. 1. Ties are resolved to the first position, as
/// in the paper.
type Order = (usize, usize, usize, u32);

/// Time in seconds, position, and strategy.
type Timed = (f64, Order, Configuration);

struct Search<'a> {
    input: &'a OptimizerInput,
    durations: &'a Durations<'a>,
    objective: Objective,
    /// Maximum number of results.
    count: usize,
    /// Best strategies in ascending time order, one per combination of TP and PP.
    best: Vec<Timed>,
    looked_at: u64,
}

/// Returns up to `count` strategies that fit in memory, in ascending time order for an objective.
/// Includes only the fastest strategy per combination of tensor and pipeline degrees; ties are
/// resolved to the first.
pub(crate) fn best(
    input: &OptimizerInput,
    durations: &Durations<'_>,
    splits: &[Split],
    (objective, count): (Objective, usize),
) -> Found {
    let mut search = Search { input, durations, objective, count, best: Vec::new(), looked_at: 0 };
    let works: Vec<Works> = splits.iter().map(|split| Works::new(input, durations, split, objective)).collect();
    let mut first: Vec<(f64, (usize, usize, usize))> = Vec::with_capacity(FIRST + 1);
    for_each(splits, &works, |bound, pair| {
        if first.len() < FIRST || bound < first[first.len() - 1].0 {
            let index = first.partition_point(|&(known, _)| known <= bound);
            first.insert(index, (bound, pair));
            first.truncate(FIRST);
        }
    });
    for &(_, pair) in &first {
        search.evaluate(splits, pair);
    }
    for_each(splits, &works, |bound, pair| {
        if search.can_improve(bound, None) && !first.iter().any(|&(_, looked_at)| looked_at == pair) {
            search.evaluate(splits, pair);
        }
    });
    Found {
        best: search.best.into_iter().map(|(_, _, configuration)| configuration).collect(),
        looked_at: search.looked_at,
    }
}

/// Returns the minimum peak bytes per device in all strategies, at the maximum number of
/// microbatches.
pub(crate) fn leanest(input: &OptimizerInput, durations: &Durations<'_>, splits: &[Split]) -> f64 {
    let mut min_bytes = f64::INFINITY;
    for split in splits {
        for &encoder in &split.encoders {
            for &backbone in &split.backbones {
                let sides = durations.sides(encoder, backbone);
                let (encoder, backbone) = durations.bytes(&sides, input.microbatches(backbone.data).1);
                min_bytes = min_bytes.min(encoder.max(backbone));
            }
        }
    }
    min_bytes
}

/// Lower bounds in seconds for a global batch, per degree combination of a split.
struct Works {
    encoders: Vec<f64>,
    backbones: Vec<f64>,
    /// Maximum number of microbatches per backbone degree combination.
    max_microbatches: Vec<f64>,
}

impl Works {
    fn new(input: &OptimizerInput, durations: &Durations<'_>, split: &Split, objective: Objective) -> Self {
        let encoder = |&degrees| durations.min_encoder_work(&Side::new(&input.encoder, degrees));
        let backbone = |&degrees| durations.min_backbone_work(&Side::new(&input.backbone, degrees), objective);
        Self {
            encoders: split.encoders.iter().map(encoder).collect(),
            backbones: split.backbones.iter().map(backbone).collect(),
            max_microbatches: split
                .backbones
                .iter()
                .map(|degrees| f64::from(input.microbatches(degrees.data).1))
                .collect(),
        }
    }
}

/// Calls `visit` for each pair with a lower bound for its times, in the order of DFLOP Alg. 1.
fn for_each(splits: &[Split], works: &[Works], mut visit: impl FnMut(f64, (usize, usize, usize))) {
    for (split_index, (split, works)) in splits.iter().zip(works).enumerate() {
        for (encoder, degrees) in split.encoders.iter().enumerate() {
            let work = works.encoders[encoder];
            for (backbone, other) in split.backbones.iter().enumerate() {
                let depth = f64::from(degrees.pipeline + other.pipeline) - 1.0;
                let max_microbatches = works.max_microbatches[backbone];
                visit(
                    (max_microbatches + depth) / max_microbatches * work.max(works.backbones[backbone]),
                    (split_index, encoder, backbone),
                );
            }
        }
    }
}

impl Search<'_> {
    /// Returns true if a strategy with this lower bound can enter `best` and improve `best_of_pair`, the
    /// current minimum time for its pair.
    fn can_improve(&self, bound: f64, pair_best: Option<f64>) -> bool {
        let bound = bound * (1.0 - SLACK);
        let full = self.best.len() == self.count;
        pair_best.is_none_or(|known| bound <= known)
            && (!full || self.best.last().is_none_or(|(worst, ..)| bound <= *worst))
    }

    fn evaluate(&mut self, splits: &[Split], (split_index, encoder, backbone): (usize, usize, usize)) {
        let split = &splits[split_index];
        let (encoder_degrees, backbone_degrees) = (split.encoders[encoder], split.backbones[backbone]);
        let sides = self.durations.sides(encoder_degrees, backbone_degrees);
        let mut pair_best: Option<Timed> = None;
        // Evaluate the upper half first: more microbatches have a smaller bubble.
        let mut open = vec![self.input.microbatches(backbone_degrees.data)];
        while let Some(range) = open.pop() {
            self.looked_at += 1;
            let (from, to) = range;
            if from < to {
                let fits = self.fits(self.durations.min_bytes(&sides, range));
                if fits && self.can_improve(self.lower_bound(&sides, range), pair_best.map(|(time, ..)| time)) {
                    let half = from + (to - from) / 2;
                    open.extend([(from, half), (half + 1, to)]);
                }
                continue;
            }
            if !self.fits(self.durations.bytes(&sides, from)) {
                continue;
            }
            let found = (
                self.time(&sides, from),
                (split_index, encoder, backbone, from),
                Configuration { encoder: encoder_degrees, backbone: backbone_degrees, microbatches: from },
            );
            if pair_best.is_none_or(|known| before(&found, &known)) {
                pair_best = Some(found);
            }
        }
        if let Some(fastest) = pair_best {
            self.keep(fastest);
        }
    }

    /// Inserts a strategy into `best` if it qualifies.
    fn keep(&mut self, found: Timed) {
        let kind = |configuration: &Configuration| {
            [configuration.encoder, configuration.backbone].map(|degrees| (degrees.tensor, degrees.pipeline))
        };
        if let Some(same) = self.best.iter().position(|(.., known)| kind(known) == kind(&found.2)) {
            if !before(&found, &self.best[same]) {
                return;
            }
            self.best.remove(same);
        }
        let at = self.best.partition_point(|known| before(known, &found));
        self.best.insert(at, found);
        self.best.truncate(self.count);
    }

    fn fits(&self, (encoder, backbone): (f64, f64)) -> bool {
        encoder <= self.input.memory && backbone <= self.input.memory
    }

    fn time(&self, sides: &Sides<'_>, microbatches: u32) -> f64 {
        match self.objective {
            Objective::MeanItem => self.durations.mean_item_time(sides, microbatches),
            Objective::MeanTime => self.durations.mean_time(sides, microbatches),
            Objective::Balanced => self.durations.time_when_balanced(sides, microbatches),
        }
    }

    fn lower_bound(&self, sides: &Sides<'_>, range: (u32, u32)) -> f64 {
        match self.objective {
            Objective::MeanItem => self.durations.min_mean_item_time(sides, range),
            Objective::MeanTime => self.durations.min_mean_time(sides, range),
            Objective::Balanced => self.durations.min_time_when_balanced(sides, range),
        }
    }
}

/// Returns true if `a` is faster than `b`, or equally fast and earlier in the enumeration order.
fn before(a: &Timed, b: &Timed) -> bool {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt()
}
