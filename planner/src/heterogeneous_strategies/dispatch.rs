//! Which pipeline trains which sequence (Hydraulis, Eq. 2, Eq. 3 and Algorithm 1).

use std::collections::BTreeSet;

use super::packing::proof;
use super::scheme::SchemeCost;
use crate::proof::Proof;
use crate::random::Random;

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DispatchSettings {
    /// Random orders that the greedy runs through; 100 in the paper.
    pub trials: u32,
    /// Seed of those orders.
    pub seed: u32,
    /// Distance from the bound that is good enough.
    pub gap: f64,
    /// Partial assignments that branch and bound may follow where the gap is open; 0 for the greedy alone.
    pub nodes: u64,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        Self { trials: 100, seed: 0, gap: 0.02, nodes: 20_000 }
    }
}

/// The sequences of every pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// Of every pipeline the places of its sequences, ascending.
    pub pipelines: Vec<Vec<u32>>,
    /// Of every pipeline its lower bound, Eq. 2.
    pub pipeline_seconds: Vec<f64>,
    /// The largest of them, Eq. 3.
    pub seconds: f64,
    /// No dispatch has a smaller one.
    pub bound: f64,
    /// (seconds - bound) / seconds.
    pub gap: f64,
    /// What the bound proves.
    pub proof: Proof,
    /// Partial assignments that branch and bound followed.
    pub nodes: u64,
    /// Sequences that were looked at for moves and exchanges, each as often as it was.
    pub looks: u64,
}

/// Why sequences cannot be dispatched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DispatchError {
    /// There are no sequences.
    #[error("there are no sequences")]
    Empty,
    /// There are no pipelines.
    #[error("there are no pipelines")]
    NoPipelines,
    /// A field of a scheme is wrong.
    #[error("pipeline {pipeline} has no scheme: {} wrong", fields.join(", "))]
    Scheme {
        /// Its place.
        pipeline: u32,
        /// Names of the fields.
        fields: Vec<&'static str>,
    },
    /// A sequence has no tokens.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Its place.
        sequence: u32,
    },
    /// A sequence is longer than any pipeline holds.
    #[error("sequence {sequence} has {tokens} tokens, more than the {max_len} that the roomiest pipeline holds")]
    TooLong {
        /// Its place.
        sequence: u32,
        /// Its length.
        tokens: u64,
        /// The largest MaxLen.
        max_len: u64,
    },
}

/// Deals sequences to pipelines so that the slowest is done early.
///
/// Pipeline j with sequences of sum W of a l² + b l, longest l and S tokens takes at least
/// W + c max(⌈S / MaxLen⌉, 1) + (T(l) of the longest) (PP - 1), Eq. 2 with c once per microbatch instead of once per sequence,
/// which keeps it a lower bound of Eq. 1. A pipeline without sequences takes nothing.
///
/// The greedy of Algorithm 1 gives each sequence in turn to the pipeline after which the slowest of all is fastest, of equals to the
/// one that is then done first; the first order is longest first, the others are random, as many as
/// it takes to come within the gap. Moves and exchanges away from the
/// slowest pipeline follow, and branch and bound where the bound is still further away than the gap.
pub fn dispatch(
    lengths: &[u64],
    pipelines: &[SchemeCost],
    settings: DispatchSettings,
) -> Result<Dispatch, DispatchError> {
    check(lengths, pipelines)?;
    let problem = Problem::new(lengths, pipelines);
    let bound = problem.bound(PRICES);
    let mut longest_first: Vec<usize> = (0..lengths.len()).collect();
    longest_first.sort_by(|&a, &b| lengths[b].cmp(&lengths[a]).then(a.cmp(&b)));
    let mut best = problem.greedy(&longest_first);
    let mut order = longest_first.clone();
    for trial in 1..settings.trials.max(1) {
        if best.0 * (1.0 - settings.gap) <= bound {
            break;
        }
        Random::new(settings.seed, u64::from(trial)).shuffle(&mut order);
        let found = problem.greedy(&order);
        if found.0 < best.0 {
            best = found;
        }
    }
    let looks = problem.improve(&mut best, LOOKS);
    let mut nodes = settings.nodes;
    let mut complete = false;
    // With fewer steps than sequences not one dispatch is complete.
    if best.0 * (1.0 - settings.gap) > bound && nodes > lengths.len() as u64 {
        let mut branch = Branch { problem: &problem, order: &longest_first, best: &mut best, bound };
        let mut state = State::new(&problem);
        complete = branch.descend(&mut state, 0, &mut nodes).is_some();
    }
    let (seconds, of) = best;
    let bound = if complete { seconds } else { bound.min(seconds) };
    let mut dealt = vec![Vec::new(); pipelines.len()];
    let mut state = State::new(&problem);
    for (sequence, &pipeline) in of.iter().enumerate() {
        dealt[pipeline].push(sequence as u32);
        state.add(&problem, sequence, pipeline);
    }
    let pipeline_seconds =
        (0..pipelines.len()).map(|pipeline| state.loads[pipeline].seconds(&pipelines[pipeline])).collect();
    let gap = ((seconds - bound) / seconds).max(0.0);
    Ok(Dispatch {
        pipelines: dealt,
        pipeline_seconds,
        seconds,
        bound,
        gap,
        proof: proof(gap, settings.gap),
        nodes: settings.nodes - nodes,
        looks,
    })
}

/// No dispatch of these sequences has a faster slowest pipeline than this, in seconds. With more rounds of prices it is higher, up to
/// [`PRICES`] of them.
pub(super) fn dispatch_bound(lengths: &[u64], pipelines: &[SchemeCost], rounds: u32) -> Result<f64, DispatchError> {
    check(lengths, pipelines)?;
    Ok(Problem::new(lengths, pipelines).bound(rounds))
}

fn check(lengths: &[u64], pipelines: &[SchemeCost]) -> Result<(), DispatchError> {
    if pipelines.is_empty() {
        return Err(DispatchError::NoPipelines);
    }
    for (place, scheme) in pipelines.iter().enumerate() {
        let fields = scheme.wrong_fields();
        if !fields.is_empty() {
            return Err(DispatchError::Scheme { pipeline: place as u32, fields });
        }
    }
    if lengths.is_empty() {
        return Err(DispatchError::Empty);
    }
    let max_len = pipelines.iter().map(|scheme| scheme.max_len).max().unwrap_or(0);
    for (place, &tokens) in lengths.iter().enumerate() {
        let sequence = place as u32;
        if tokens == 0 {
            return Err(DispatchError::NoTokens { sequence });
        }
        if tokens > max_len {
            return Err(DispatchError::TooLong { sequence, tokens, max_len });
        }
    }
    Ok(())
}

/// What a pipeline has so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct PipelineLoad {
    work: f64,
    tokens: u64,
    longest: u64,
}

impl PipelineLoad {
    /// Eq. 2.
    fn seconds(&self, scheme: &SchemeCost) -> f64 {
        if self.tokens == 0 {
            return 0.0;
        }
        let microbatches = self.tokens.div_ceil(scheme.max_len) as f64;
        self.work + scheme.c * microbatches + scheme.seconds(self.longest) * f64::from(scheme.pp - 1)
    }

    fn and(self, work: f64, tokens: u64) -> Self {
        Self { work: self.work + work, tokens: self.tokens + tokens, longest: self.longest.max(tokens) }
    }
}

/// Sequences and pipelines, with the work of every sequence in every kind of pipeline.
struct Problem<'a> {
    lengths: &'a [u64],
    pipelines: &'a [SchemeCost],
    /// Of every pipeline its kind: equal schemes are one kind.
    kind: Vec<usize>,
    kinds: Vec<SchemeCost>,
    /// Work of sequence s in kind k at [s * kinds + k].
    work: Vec<f64>,
}

impl<'a> Problem<'a> {
    fn new(lengths: &'a [u64], pipelines: &'a [SchemeCost]) -> Self {
        let mut kinds: Vec<SchemeCost> = Vec::new();
        let kind = pipelines
            .iter()
            .map(|scheme| {
                kinds.iter().position(|known| known == scheme).unwrap_or_else(|| {
                    kinds.push(*scheme);
                    kinds.len() - 1
                })
            })
            .collect();
        let work = lengths.iter().flat_map(|&tokens| kinds.iter().map(move |scheme| scheme.work(tokens))).collect();
        Self { lengths, pipelines, kind, kinds, work }
    }

    fn work(&self, sequence: usize, pipeline: usize) -> f64 {
        self.work[sequence * self.kinds.len() + self.kind[pipeline]]
    }

    fn holds(&self, pipeline: usize, sequence: usize) -> bool {
        self.lengths[sequence] <= self.pipelines[pipeline].max_len
    }

    /// Algorithm 1 for one order: the slowest pipeline's seconds, and of every sequence its pipeline.
    ///
    /// The slowest of all after a step is the slower of the pipeline taken and the slowest before, so the pipeline that is
    /// then done first is the choice. None gets away with less than the work of the sequence on top of what it has: pipelines of a
    /// kind are asked in the order of their ends, until that alone is too much.
    fn greedy(&self, order: &[usize]) -> (f64, Vec<usize>) {
        let mut state = State::new(self);
        let mut of = vec![0; self.lengths.len()];
        // Ends are never negative, so their bits are in the order of their values.
        let mut ends: Vec<BTreeSet<(u64, usize)>> = vec![BTreeSet::new(); self.kinds.len()];
        for (pipeline, &kind) in self.kind.iter().enumerate() {
            ends[kind].insert((0, pipeline));
        }
        for &sequence in order {
            let tokens = self.lengths[sequence];
            let mut best: Option<(f64, usize)> = None;
            for (kind, scheme) in self.kinds.iter().enumerate().filter(|(_, scheme)| tokens <= scheme.max_len) {
                let work = self.work[sequence * self.kinds.len() + kind];
                let mut last = None;
                for &(end, pipeline) in &ends[kind] {
                    if best.is_some_and(|(own, _)| f64::from_bits(end) + work > own * ROUNDING) {
                        break;
                    }
                    let load = state.loads[pipeline];
                    if last.replace(load) == Some(load) {
                        continue;
                    }
                    let own = load.and(work, tokens).seconds(scheme);
                    if best.is_none_or(|(least, first)| own < least || (own <= least && pipeline < first)) {
                        best = Some((own, pipeline));
                    }
                }
            }
            if let Some((own, pipeline)) = best {
                let ends = &mut ends[self.kind[pipeline]];
                ends.remove(&(state.loads[pipeline].seconds(&self.pipelines[pipeline]).to_bits(), pipeline));
                ends.insert((own.to_bits(), pipeline));
                state.add(self, sequence, pipeline);
                of[sequence] = pipeline;
            }
        }
        (state.slowest, of)
    }

    /// Moves and exchanges away from the slowest pipeline while both pipelines end up below it, until about `most` sequences have been
    /// looked at; how many have.
    fn improve(&self, best: &mut (f64, Vec<usize>), most: u64) -> u64 {
        let of = &mut best.1;
        let mut lists = vec![Vec::new(); self.pipelines.len()];
        for (sequence, &pipeline) in of.iter().enumerate() {
            lists[pipeline].push(sequence);
        }
        let load = |list: &[usize], pipeline: usize| {
            list.iter().fold(PipelineLoad::default(), |load, &sequence| {
                load.and(self.work(sequence, pipeline), self.lengths[sequence])
            })
        };
        let seconds = |list: &[usize], pipeline: usize| load(list, pipeline).seconds(&self.pipelines[pipeline]);
        let mut ends: Vec<f64> = (0..lists.len()).map(|pipeline| seconds(&lists[pipeline], pipeline)).collect();
        let mut left = most;
        for _ in 0..EXCHANGES {
            let from =
                (1..ends.len()).fold(0, |most, pipeline| if ends[pipeline] > ends[most] { pipeline } else { most });
            let Some((to, item, back)) = self.step(&lists, &ends, from, &mut left) else { break };
            lists[from].retain(|&other| other != item);
            lists[to].push(item);
            if let Some(back) = back {
                lists[to].retain(|&other| other != back);
                lists[from].push(back);
            }
            ends[from] = seconds(&lists[from], from);
            ends[to] = seconds(&lists[to], to);
        }
        let slowest = ends.iter().copied().fold(0.0, f64::max);
        if slowest < best.0 {
            best.0 = slowest;
            for (pipeline, list) in lists.iter().enumerate() {
                for &sequence in list {
                    best.1[sequence] = pipeline;
                }
            }
        }
        most - left
    }

    /// The move or exchange that leaves the slower of both pipelines fastest, if it is faster than the slowest now.
    fn step(&self, lists: &[Vec<usize>], ends: &[f64], from: usize, left: &mut u64) -> Option<Step> {
        let total = |list: &[usize], pipeline: usize, without: Option<usize>| {
            list.iter()
                .filter(|&&sequence| Some(sequence) != without)
                .fold(PipelineLoad::default(), |load, &sequence| {
                    load.and(self.work(sequence, pipeline), self.lengths[sequence])
                })
        };
        let end = |load: PipelineLoad, pipeline: usize| load.seconds(&self.pipelines[pipeline]);
        let most = ends[from];
        let mut best: Option<(f64, Step)> = None;
        let mut consider = |after: f64, step: Step| {
            if after < most * (1.0 - 1e-12) && best.is_none_or(|best| after < best.0) {
                best = Some((after, step));
            }
        };
        // Where an exchange pays at all it does so with the least loaded few.
        let mut targets: Vec<usize> = (0..lists.len()).filter(|&to| to != from).collect();
        targets.sort_by(|&a, &b| ends[a].total_cmp(&ends[b]).then(a.cmp(&b)));
        targets.truncate(EXCHANGED_WITH);
        let targets: Vec<(usize, PipelineLoad)> =
            targets.into_iter().map(|to| (to, total(&lists[to], to, None))).collect();
        for &item in &lists[from] {
            if *left == 0 {
                break;
            }
            let (tokens, rest) = (self.lengths[item], total(&lists[from], from, Some(item)));
            let mut looks = lists[from].len() as u64;
            for &(to, all) in targets.iter().filter(|(to, _)| self.holds(*to, item)) {
                looks += 1 + lists[to].len() as u64;
                consider(end(all.and(self.work(item, to), tokens), to).max(end(rest, from)), (to, item, None));
                for &back in lists[to].iter().filter(|&&back| self.lengths[back] < tokens && self.holds(from, back)) {
                    // The longest may leave with `back`; keeping it only overestimates.
                    let kept = PipelineLoad {
                        work: all.work - self.work(back, to),
                        tokens: all.tokens - self.lengths[back],
                        longest: all.longest,
                    };
                    let here = end(rest.and(self.work(back, from), self.lengths[back]), from);
                    consider(end(kept.and(self.work(item, to), tokens), to).max(here), (to, item, Some(back)));
                }
            }
            *left = left.saturating_sub(looks);
        }
        best.map(|best| best.1)
    }

    /// No dispatch has a faster slowest pipeline.
    ///
    /// Each sequence takes somewhere at least its time alone. And with any prices y_j >= 0 of the pipelines: a pipeline of
    /// kind j that ends by t does at most (t - e_j)+ of work, e_j what it takes besides with the shortest sequence, so the sum over
    /// sequences of the cheapest y_j w_ij is at most the sum over pipelines of y_j (t - e_j)+. The smallest t that allows
    /// it is a bound for every y; prices follow the work that they attract, up where there is more than its share.
    fn bound(&self, rounds: u32) -> f64 {
        let alone = (0..self.lengths.len()).map(|sequence| {
            let fitting = self.kinds.iter().filter(|scheme| self.lengths[sequence] <= scheme.max_len);
            let load = |scheme: &SchemeCost| {
                PipelineLoad::default().and(scheme.work(self.lengths[sequence]), self.lengths[sequence]).seconds(scheme)
            };
            fitting.map(load).fold(f64::INFINITY, f64::min)
        });
        let mut bound = alone.fold(0.0, f64::max);
        let shortest = self.lengths.iter().copied().min().unwrap_or(1);
        let besides: Vec<f64> =
            self.kinds.iter().map(|scheme| scheme.c + scheme.seconds(shortest) * f64::from(scheme.pp - 1)).collect();
        let mut copies = vec![0.0; self.kinds.len()];
        for &kind in &self.kind {
            copies[kind] += 1.0;
        }
        let mut prices = vec![1.0; self.kinds.len()];
        let rounds = if self.kinds.len() == 1 { 1 } else { rounds };
        for round in 0..rounds {
            let mut attracted = vec![0.0; self.kinds.len()];
            let mut total = 0.0;
            for sequence in 0..self.lengths.len() {
                let fitting = (0..self.kinds.len()).filter(|&kind| self.lengths[sequence] <= self.kinds[kind].max_len);
                let work = |kind: usize| self.work[sequence * self.kinds.len() + kind];
                let cheapest = fitting.min_by(|&a, &b| (prices[a] * work(a)).total_cmp(&(prices[b] * work(b))));
                if let Some(kind) = cheapest {
                    attracted[kind] += work(kind);
                    total += prices[kind] * work(kind);
                }
            }
            bound = bound.max(smallest_end(&prices, &copies, &besides, total));
            let mean = (0..prices.len()).map(|kind| attracted[kind] / copies[kind]).sum::<f64>() / prices.len() as f64;
            let step = 0.5 / (1.0 + f64::from(round) / 8.0);
            for kind in 0..prices.len() {
                let share = attracted[kind] / copies[kind] / mean;
                prices[kind] *= libm::exp(step * (share - 1.0).clamp(-1.0, 1.0));
            }
        }
        bound
    }
}

/// Where to, which sequence, and which one back in exchange.
type Step = (usize, usize, Option<usize>);

/// Sums of the same numbers in another order differ by less.
const ROUNDING: f64 = 1.0 + 1e-9;
/// Most moves and exchanges: on large batches each gains little.
const EXCHANGES: usize = 500;
/// Sequences that are looked at for them, about: with thousands in a pipeline each takes tens of millions.
const LOOKS: u64 = 50_000_000;
/// Pipelines that exchanges are tried with.
const EXCHANGED_WITH: usize = 8;
/// Rounds of prices: the bound moves by less than a thousandth after them in our tests.
pub(super) const PRICES: u32 = 60;

/// The smallest t at which sum of copies y (t - e)+ reaches `total`.
fn smallest_end(prices: &[f64], copies: &[f64], besides: &[f64], total: f64) -> f64 {
    let mut order: Vec<usize> = (0..prices.len()).collect();
    order.sort_by(|&a, &b| besides[a].total_cmp(&besides[b]));
    let (mut slope, mut offset) = (0.0, 0.0);
    for (place, &kind) in order.iter().enumerate() {
        slope += copies[kind] * prices[kind];
        offset += copies[kind] * prices[kind] * besides[kind];
        let end = (total + offset) / slope;
        if order.get(place + 1).is_none_or(|&next| end <= besides[next]) {
            return end;
        }
    }
    0.0
}

/// Pipelines as they fill.
struct State {
    loads: Vec<PipelineLoad>,
    slowest: f64,
}

impl State {
    fn new(problem: &Problem<'_>) -> Self {
        Self { loads: vec![PipelineLoad::default(); problem.pipelines.len()], slowest: 0.0 }
    }

    fn add(&mut self, problem: &Problem<'_>, sequence: usize, pipeline: usize) {
        self.loads[pipeline] = self.loads[pipeline].and(problem.work(sequence, pipeline), problem.lengths[sequence]);
        self.slowest = self.slowest.max(self.loads[pipeline].seconds(&problem.pipelines[pipeline]));
    }
}

/// Depth-first branch and bound over sequences, longest first.
struct Branch<'a, 'b> {
    problem: &'a Problem<'b>,
    order: &'a [usize],
    best: &'a mut (f64, Vec<usize>),
    bound: f64,
}

impl Branch<'_, '_> {
    /// Tries all pipelines for the sequences from `at` on; none where the budget is spent before all are tried.
    fn descend(&mut self, state: &mut State, at: usize, nodes: &mut u64) -> Option<()> {
        let mut of = vec![0; self.order.len()];
        self.follow(state, at, &mut of, nodes)
    }

    fn follow(&mut self, state: &mut State, at: usize, of: &mut Vec<usize>, nodes: &mut u64) -> Option<()> {
        let Some(&sequence) = self.order.get(at) else {
            if state.slowest < self.best.0 {
                *self.best = (state.slowest, of.clone());
            }
            return Some(());
        };
        *nodes = nodes.checked_sub(1)?;
        let tokens = self.problem.lengths[sequence];
        let mut order: Vec<(f64, usize)> = Vec::new();
        for pipeline in (0..self.problem.pipelines.len()).filter(|&pipeline| self.problem.holds(pipeline, sequence)) {
            // Pipelines of one kind with the same load are one.
            let same = |&(_, other): &(f64, usize)| {
                self.problem.kind[other] == self.problem.kind[pipeline] && state.loads[other] == state.loads[pipeline]
            };
            if !order.iter().any(same) {
                let load = state.loads[pipeline].and(self.problem.work(sequence, pipeline), tokens);
                order.push((load.seconds(&self.problem.pipelines[pipeline]), pipeline));
            }
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (end, pipeline) in order {
            // The bound reached is the end of the search: nothing is better.
            if end >= self.best.0 * (1.0 - 1e-9) || self.best.0 <= self.bound * (1.0 + 1e-9) {
                break;
            }
            let before = (state.loads[pipeline], state.slowest);
            state.add(self.problem, sequence, pipeline);
            of[sequence] = pipeline;
            self.follow(state, at + 1, of, nodes)?;
            (state.loads[pipeline], state.slowest) = before;
        }
        Some(())
    }
}
