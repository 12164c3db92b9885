//! The search: bounds of pairs of degrees, then of ranges of numbers of microbatches.

use super::degrees::Split;
use super::durations::{Durations, Side, Sides};
use super::{Configuration, Objective, OptimizerInput};

/// Pairs with the smallest bounds that are looked at first, so that most others are above the best from the start.
const FIRST: usize = 16;
/// Bounds and times are summed in different order: what is above by less than this may be below.
const SLACK: f64 = 1e-9;

/// The best strategies, and how much was looked at for them.
pub(super) struct Found {
    best: Vec<Configuration>,
    looked_at: u64,
}

impl Found {
    /// Adds what was looked at to a sum.
    pub(super) fn counted(self, sum: &mut u64) -> Vec<Configuration> {
        *sum += self.looked_at;
        self.best
    }
}

/// Where a strategy stands in the order of Algorithm 1; the first of equals is taken, as there.
type Order = (usize, usize, usize, u32);

/// A strategy with its time.
type Timed = (f64, Order, Configuration);

struct Search<'a> {
    input: &'a OptimizerInput,
    durations: &'a Durations<'a>,
    objective: Objective,
    /// How many are wanted.
    count: usize,
    /// The best known, best first, each of its own kind.
    best: Vec<Timed>,
    looked_at: u64,
}

/// The strategies with the least times of an objective that fit, at most `count`, best first; of strategies with the same tensor and
/// pipeline parallelism the best alone, of equals the first.
pub(super) fn best(
    input: &OptimizerInput,
    durations: &Durations<'_>,
    splits: &[Split],
    (objective, count): (Objective, usize),
) -> Found {
    let mut search = Search { input, durations, objective, count, best: Vec::new(), looked_at: 0 };
    let works: Vec<Works> = splits.iter().map(|split| Works::of(input, durations, split, objective)).collect();
    let mut first: Vec<(f64, (usize, usize, usize))> = Vec::with_capacity(FIRST + 1);
    for_each(splits, &works, |bound, pair| {
        if first.len() < FIRST || bound < first[first.len() - 1].0 {
            let place = first.partition_point(|&(known, _)| known <= bound);
            first.insert(place, (bound, pair));
            first.truncate(FIRST);
        }
    });
    for &(_, pair) in &first {
        search.look_at(splits, pair);
    }
    for_each(splits, &works, |bound, pair| {
        if search.may_be_better(bound, None) && !first.iter().any(|&(_, looked_at)| looked_at == pair) {
            search.look_at(splits, pair);
        }
    });
    Found {
        best: search.best.into_iter().map(|(_, _, configuration)| configuration).collect(),
        looked_at: search.looked_at,
    }
}

/// Bytes of the fullest device of the strategy that needs the fewest, with as many microbatches as there can be.
pub(super) fn leanest(input: &OptimizerInput, durations: &Durations<'_>, splits: &[Split]) -> f64 {
    let mut least = f64::INFINITY;
    for split in splits {
        for &encoder in &split.encoders {
            for &backbone in &split.backbones {
                let sides = durations.sides(encoder, backbone);
                let (encoder, backbone) = durations.bytes(&sides, input.microbatches(backbone.data).1);
                least = least.min(encoder.max(backbone));
            }
        }
    }
    least
}

/// What either side takes for a whole batch at least, by its ways.
struct Works {
    encoders: Vec<f64>,
    backbones: Vec<f64>,
    /// Most microbatches of each way of the backbone.
    most: Vec<f64>,
}

impl Works {
    fn of(input: &OptimizerInput, durations: &Durations<'_>, split: &Split, objective: Objective) -> Self {
        let encoder = |&degrees| durations.least_encoder_work(&Side::of(&input.encoder, degrees));
        let backbone = |&degrees| durations.least_backbone_work(&Side::of(&input.backbone, degrees), objective);
        Self {
            encoders: split.encoders.iter().map(encoder).collect(),
            backbones: split.backbones.iter().map(backbone).collect(),
            most: split.backbones.iter().map(|degrees| f64::from(input.microbatches(degrees.data).1)).collect(),
        }
    }
}

/// Every pair with a bound of its times, in the order of Algorithm 1.
fn for_each(splits: &[Split], works: &[Works], mut visit: impl FnMut(f64, (usize, usize, usize))) {
    for (place, (split, works)) in splits.iter().zip(works).enumerate() {
        for (encoder, degrees) in split.encoders.iter().enumerate() {
            let work = works.encoders[encoder];
            for (backbone, other) in split.backbones.iter().enumerate() {
                let depth = f64::from(degrees.pipeline + other.pipeline) - 1.0;
                let most = works.most[backbone];
                visit((most + depth) / most * work.max(works.backbones[backbone]), (place, encoder, backbone));
            }
        }
    }
}

impl Search<'_> {
    /// Whether a strategy of a pair whose best known is `own` may belong to the best, or be better than that.
    fn may_be_better(&self, bound: f64, own: Option<f64>) -> bool {
        let bound = bound * (1.0 - SLACK);
        let full = self.best.len() == self.count;
        own.is_none_or(|own| bound <= own) && (!full || self.best.last().is_none_or(|(worst, ..)| bound <= *worst))
    }

    fn look_at(&mut self, splits: &[Split], (place, encoder, backbone): (usize, usize, usize)) {
        let split = &splits[place];
        let (of_encoder, of_backbone) = (split.encoders[encoder], split.backbones[backbone]);
        let sides = self.durations.sides(of_encoder, of_backbone);
        let mut own: Option<Timed> = None;
        // The later half first: with more microbatches the bubble is smaller.
        let mut open = vec![self.input.microbatches(of_backbone.data)];
        while let Some(range) = open.pop() {
            self.looked_at += 1;
            let (from, to) = range;
            if from < to {
                let fits = self.fits(self.durations.least_bytes(&sides, range));
                if fits && self.may_be_better(self.least(&sides, range), own.map(|(time, ..)| time)) {
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
                (place, encoder, backbone, from),
                Configuration { encoder: of_encoder, backbone: of_backbone, microbatches: from },
            );
            if own.is_none_or(|own| before(&found, &own)) {
                own = Some(found);
            }
        }
        if let Some(own) = own {
            self.keep(own);
        }
    }

    /// Takes a strategy among the best where it belongs to them.
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
            Objective::OfMean => self.durations.time_of_mean(sides, microbatches),
            Objective::MeanOf => self.durations.mean_of_time(sides, microbatches),
            Objective::Balanced => self.durations.time_when_balanced(sides, microbatches),
        }
    }

    fn least(&self, sides: &Sides<'_>, range: (u32, u32)) -> f64 {
        match self.objective {
            Objective::OfMean => self.durations.least_time_of_mean(sides, range),
            Objective::MeanOf => self.durations.least_mean_of_time(sides, range),
            Objective::Balanced => self.durations.least_time_when_balanced(sides, range),
        }
    }
}

/// Whether one takes less time than another or, where it takes as long, stands before it.
fn before(a: &Timed, b: &Timed) -> bool {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).is_lt()
}
