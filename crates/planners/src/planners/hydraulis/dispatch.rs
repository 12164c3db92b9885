//! Assignment of sequences to pipelines (Hydraulis Sec. 6.2).

mod greedy;

use super::packing::optimality;
use super::scheme::SchemeCost;
use planscope_core::optimality::Optimality;
use planscope_core::random::Random;

/// Search limits for the dispatch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DispatchSettings {
    /// Number of sequence orders for the greedy search; 100 in the paper.
    pub trials: u32,
    /// Random seed for the orders.
    pub seed: u32,
    /// Target relative gap.
    pub gap: f64,
    /// Maximum branch-and-bound nodes if the gap is not reached; 0 disables branch and bound.
    pub nodes: u64,
}

impl Default for DispatchSettings {
    fn default() -> Self {
        Self { trials: 100, seed: 0, gap: 0.02, nodes: 20_000 }
    }
}

/// Sequences per pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// Sequence indices per pipeline, ascending.
    pub pipelines: Vec<Vec<u32>>,
    /// Lower bound for the seconds per pipeline (Hydraulis Eq. 2).
    pub pipeline_seconds: Vec<f64>,
    /// Maximum over the pipelines (Hydraulis Eq. 3).
    pub seconds: f64,
    /// Lower bound for `seconds` in any dispatch.
    pub bound: f64,
    /// Relative gap, (seconds - bound) / seconds.
    pub gap: f64,
    /// Optimality status that follows from the gap.
    pub optimality: Optimality,
    /// Branch-and-bound nodes used.
    pub nodes: u64,
    /// Number of sequences evaluated for moves and exchanges, with repetition.
    pub looks: u64,
}

/// Error for sequences that cannot be dispatched.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DispatchError {
    /// The sequence list is empty.
    #[error("there are no sequences")]
    Empty,
    /// The pipeline list is empty.
    #[error("there are no pipelines")]
    NoPipelines,
    /// A scheme contains invalid fields.
    #[error("pipeline {pipeline} has no scheme: {} wrong", fields.join(", "))]
    Scheme {
        /// Index of the pipeline.
        pipeline: u32,
        /// Names of the invalid fields.
        fields: Vec<&'static str>,
    },
    /// A sequence contains zero tokens.
    #[error("sequence {sequence} has no tokens")]
    NoTokens {
        /// Index of the sequence.
        sequence: u32,
    },
    /// A sequence exceeds MaxLen in all pipelines.
    #[error("sequence {sequence} has {tokens} tokens, more than the {max_len} that the roomiest pipeline holds")]
    TooLong {
        /// Index of the sequence.
        sequence: u32,
        /// Sequence length in tokens.
        tokens: u64,
        /// Maximum MaxLen of the pipelines.
        max_len: u64,
    },
}

/// Assigns sequences to pipelines and minimizes the maximum pipeline time (Hydraulis Eq. 3).
///
/// For a pipeline with total work W (the sum of a l² + b l), maximum sequence length l and S
/// tokens, the lower bound is `W + c max(⌈S / MaxLen⌉, 1) + T(l) (PP - 1)`. This is Hydraulis Eq. 2
/// with c once per microbatch instead of once per sequence, so it remains a lower bound for
/// Hydraulis Eq. 1. A pipeline without sequences takes zero seconds.
///
/// The greedy search (Hydraulis Alg. 1) assigns a sequence to the pipeline that minimizes the
/// maximum time; ties are resolved to the earliest finish time. The initial order is descending by
/// length. All further orders are random, until the gap is reached. Then moves and exchanges unload
/// the slowest pipeline, and branch and bound runs if the gap is still open.
pub fn dispatch(
    lengths: &[u64],
    pipelines: &[SchemeCost],
    settings: DispatchSettings,
) -> Result<Dispatch, DispatchError> {
    check(lengths, pipelines)?;
    let problem = Problem::new(lengths, pipelines);
    let bound = problem.bound(PRICES);
    let mut descending: Vec<usize> = (0..lengths.len()).collect();
    descending.sort_by(|&a, &b| lengths[b].cmp(&lengths[a]).then(a.cmp(&b)));
    let mut best = problem.greedy(&descending);
    let mut order = descending.clone();
    // Sequences of equal length have only one order.
    let is_uniform = lengths.iter().all(|length| *length == lengths[0]);
    let trials = if is_uniform { 1 } else { settings.trials.max(1) };
    for trial in 1..trials {
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
    // With fewer nodes than sequences, branch and bound cannot complete a dispatch.
    if best.0 * (1.0 - settings.gap) > bound && nodes > lengths.len() as u64 {
        let mut branch = Branch { problem: &problem, order: &descending, best: &mut best, bound };
        let mut state = State::new(&problem);
        complete = branch.descend(&mut state, 0, &mut nodes).is_some();
    }
    let (seconds, pipeline_indices) = best;
    let bound = if complete { seconds } else { bound.min(seconds) };
    let mut dealt = vec![Vec::new(); pipelines.len()];
    let mut state = State::new(&problem);
    for (sequence, &pipeline) in pipeline_indices.iter().enumerate() {
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
        optimality: optimality(gap, settings.gap),
        nodes: settings.nodes - nodes,
        looks,
    })
}

/// Returns a lower bound in seconds for the maximum pipeline time in any dispatch. More price
/// rounds, up to [`PRICES`], give a tighter bound.
pub(crate) fn dispatch_bound(lengths: &[u64], pipelines: &[SchemeCost], rounds: u32) -> Result<f64, DispatchError> {
    check(lengths, pipelines)?;
    Ok(Problem::new(lengths, pipelines).bound(rounds))
}

fn check(lengths: &[u64], pipelines: &[SchemeCost]) -> Result<(), DispatchError> {
    if pipelines.is_empty() {
        return Err(DispatchError::NoPipelines);
    }
    for (index, scheme) in pipelines.iter().enumerate() {
        let fields = scheme.wrong_fields();
        if !fields.is_empty() {
            return Err(DispatchError::Scheme { pipeline: index as u32, fields });
        }
    }
    if lengths.is_empty() {
        return Err(DispatchError::Empty);
    }
    let max_len = pipelines.iter().map(|scheme| scheme.max_len).max().unwrap_or(0);
    for (index, &tokens) in lengths.iter().enumerate() {
        let sequence = index as u32;
        if tokens == 0 {
            return Err(DispatchError::NoTokens { sequence });
        }
        if tokens > max_len {
            return Err(DispatchError::TooLong { sequence, tokens, max_len });
        }
    }
    Ok(())
}

/// Current load of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct PipelineLoad {
    work: f64,
    tokens: u64,
    max_length: u64,
}

impl PipelineLoad {
    /// Returns the seconds by Hydraulis Eq. 2.
    fn seconds(&self, scheme: &SchemeCost) -> f64 {
        if self.tokens == 0 {
            return 0.0;
        }
        let microbatches = self.tokens.div_ceil(scheme.max_len) as f64;
        self.work + scheme.c * microbatches + scheme.seconds(self.max_length) * f64::from(scheme.pp - 1)
    }

    fn and(self, work: f64, tokens: u64) -> Self {
        Self { work: self.work + work, tokens: self.tokens + tokens, max_length: self.max_length.max(tokens) }
    }
}

/// Sequences and pipelines with precomputed work.
struct Problem<'a> {
    lengths: &'a [u64],
    pipelines: &'a [SchemeCost],
    /// Kind index per pipeline. Pipelines of equal schemes have the same kind.
    kind: Vec<usize>,
    kinds: Vec<SchemeCost>,
    /// Work of sequence s on kind k at `[s * kinds + k]`.
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

    /// Moves and exchanges sequences to unload the slowest pipeline while the maximum time
    /// decreases. Stops after about `most` evaluated sequences. Returns the number of evaluated
    /// sequences.
    fn improve(&self, best: &mut (f64, Vec<usize>), limit: u64) -> u64 {
        let pipeline_indices = &mut best.1;
        let mut lists = vec![Vec::new(); self.pipelines.len()];
        for (sequence, &pipeline) in pipeline_indices.iter().enumerate() {
            lists[pipeline].push(sequence);
        }
        let load = |list: &[usize], pipeline: usize| {
            list.iter().fold(PipelineLoad::default(), |load, &sequence| {
                load.and(self.work(sequence, pipeline), self.lengths[sequence])
            })
        };
        let seconds = |list: &[usize], pipeline: usize| load(list, pipeline).seconds(&self.pipelines[pipeline]);
        let mut ends: Vec<f64> = (0..lists.len()).map(|pipeline| seconds(&lists[pipeline], pipeline)).collect();
        let mut left = limit;
        for _ in 0..EXCHANGES {
            let from =
                (1..ends.len()).fold(0, |worst, pipeline| if ends[pipeline] > ends[worst] { pipeline } else { worst });
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
        limit - left
    }

    /// Returns the move or exchange that minimizes the maximum of the two pipeline times, if this
    /// is below the current maximum.
    fn step(&self, lists: &[Vec<usize>], ends: &[f64], from: usize, left: &mut u64) -> Option<Step> {
        let total = |list: &[usize], pipeline: usize, without: Option<usize>| {
            list.iter()
                .filter(|&&sequence| Some(sequence) != without)
                .fold(PipelineLoad::default(), |load, &sequence| {
                    load.and(self.work(sequence, pipeline), self.lengths[sequence])
                })
        };
        let end = |load: PipelineLoad, pipeline: usize| load.seconds(&self.pipelines[pipeline]);
        let max_end = ends[from];
        let mut best: Option<(f64, Step)> = None;
        let mut consider = |after: f64, step: Step| {
            if after < max_end * (1.0 - 1e-12) && best.is_none_or(|best| after < best.0) {
                best = Some((after, step));
            }
        };
        // Exchanges are effective only with pipelines of low load.
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
                    // `back` can be the longest sequence. Keeping its length in `max_length` gives a
                    // safe overestimate.
                    let retained = PipelineLoad {
                        work: all.work - self.work(back, to),
                        tokens: all.tokens - self.lengths[back],
                        max_length: all.max_length,
                    };
                    let here = end(rest.and(self.work(back, from), self.lengths[back]), from);
                    consider(end(retained.and(self.work(item, to), tokens), to).max(here), (to, item, Some(back)));
                }
            }
            *left = left.saturating_sub(looks);
        }
        best.map(|best| best.1)
    }

    /// Returns a lower bound for the maximum pipeline time in any dispatch.
    ///
    /// The first bound is the maximum, over all sequences, of the minimum time for a single
    /// sequence. The second is a Lagrangian bound, see [`Self::priced_bound`]. A pipeline runs the
    /// constant c at least once, and at least c l / MaxLen for each sequence of l tokens. The better of
    /// both in the first round is used for all rounds.
    fn bound(&self, rounds: u32) -> f64 {
        let single_times = (0..self.lengths.len()).map(|sequence| {
            let fitting = self.kinds.iter().filter(|scheme| self.lengths[sequence] <= scheme.max_len);
            let load = |scheme: &SchemeCost| {
                PipelineLoad::default().and(scheme.work(self.lengths[sequence]), self.lengths[sequence]).seconds(scheme)
            };
            fitting.map(load).fold(f64::INFINITY, f64::min)
        });
        let single = single_times.fold(0.0, f64::max);
        let once = self.priced_bound(Constant::Once, 1);
        let shared = self.priced_bound(Constant::Shared, 1);
        let constant = if shared > once { Constant::Shared } else { Constant::Once };
        let rounds = if self.kinds.len() == 1 { 1 } else { rounds };
        let priced = if rounds > 1 { self.priced_bound(constant, rounds) } else { once.max(shared) };
        single.max(priced)
    }

    /// Returns a Lagrangian bound with prices y_j >= 0 per pipeline kind. A pipeline that finishes by
    /// time t has up to (t - e_j)+ work, where e_j is the remaining time for the shortest sequence. So
    /// the sum of min_j y_j w_ij over sequences does not exceed the sum of y_j (t - e_j)+ over
    /// pipelines. The smallest t that satisfies this is a lower bound for any y. A round raises the
    /// prices of pipelines with work above average.
    fn priced_bound(&self, constant: Constant, rounds: u32) -> f64 {
        let shortest = self.lengths.iter().copied().min().unwrap_or(1);
        let besides: Vec<f64> = self
            .kinds
            .iter()
            .map(|scheme| {
                let once = if constant == Constant::Once { scheme.c } else { 0.0 };
                once + scheme.seconds(shortest) * f64::from(scheme.pp - 1)
            })
            .collect();
        // Seconds per token of a sequence's part of the constant.
        let per_token: Vec<f64> = self
            .kinds
            .iter()
            .map(|scheme| if constant == Constant::Shared { scheme.c / scheme.max_len.max(1) as f64 } else { 0.0 })
            .collect();
        let mut copies = vec![0.0; self.kinds.len()];
        for &kind in &self.kind {
            copies[kind] += 1.0;
        }
        let mut prices = vec![1.0; self.kinds.len()];
        let mut bound = 0.0_f64;
        for round in 0..rounds {
            let mut attracted = vec![0.0; self.kinds.len()];
            let mut total = 0.0;
            for (sequence, &tokens) in self.lengths.iter().enumerate() {
                let fitting = (0..self.kinds.len()).filter(|&kind| tokens <= self.kinds[kind].max_len);
                let work =
                    |kind: usize| self.work[sequence * self.kinds.len() + kind] + per_token[kind] * tokens as f64;
                let cheapest = fitting.min_by(|&a, &b| (prices[a] * work(a)).total_cmp(&(prices[b] * work(b))));
                if let Some(kind) = cheapest {
                    attracted[kind] += work(kind);
                    total += prices[kind] * work(kind);
                }
            }
            bound = bound.max(min_finish_time(&prices, &copies, &besides, total));
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

/// Part of the constant c that the bound counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Constant {
    /// Once per pipeline, for its first microbatch.
    Once,
    /// Proportional to the tokens of each sequence, as if all microbatches were full.
    Shared,
}

/// Target pipeline, sequence to move, and optional sequence to move back.
type Step = (usize, usize, Option<usize>);

/// Relative tolerance for sums in a different order.
const ROUNDING: f64 = 1.0 + 1e-9;
/// Maximum number of moves and exchanges. On large batches a step gains little.
const EXCHANGES: usize = 500;
/// Approximate limit for evaluated sequences. With thousands of sequences per pipeline, a single
/// step evaluates tens of millions.
const LOOKS: u64 = 50_000_000;
/// Number of pipelines tried as exchange targets.
const EXCHANGED_WITH: usize = 8;
/// Price rounds for a tight bound. In the tests, more rounds change the bound by less than 0.1 %.
pub(crate) const PRICES: u32 = 60;

/// Returns the smallest t for which the sum of copies y (t - e)+ reaches `total`.
fn min_finish_time(prices: &[f64], copies: &[f64], besides: &[f64], total: f64) -> f64 {
    let mut order: Vec<usize> = (0..prices.len()).collect();
    order.sort_by(|&a, &b| besides[a].total_cmp(&besides[b]));
    let (mut slope, mut offset) = (0.0, 0.0);
    for (index, &kind) in order.iter().enumerate() {
        slope += copies[kind] * prices[kind];
        offset += copies[kind] * prices[kind] * besides[kind];
        let end = (total + offset) / slope;
        if order.get(index + 1).is_none_or(|&next| end <= besides[next]) {
            return end;
        }
    }
    0.0
}

/// Pipeline loads during the assignment.
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

/// Depth-first branch and bound on sequences in descending length order.
struct Branch<'a, 'b> {
    problem: &'a Problem<'b>,
    order: &'a [usize],
    best: &'a mut (f64, Vec<usize>),
    bound: f64,
}

impl Branch<'_, '_> {
    /// Tries all pipelines for the sequences from `at` on. Returns `None` if the node budget is
    /// exhausted first.
    fn descend(&mut self, state: &mut State, at: usize, nodes: &mut u64) -> Option<()> {
        let mut pipeline_indices = vec![0; self.order.len()];
        self.follow(state, at, &mut pipeline_indices, nodes)
    }

    fn follow(
        &mut self,
        state: &mut State,
        at: usize,
        pipeline_indices: &mut Vec<usize>,
        nodes: &mut u64,
    ) -> Option<()> {
        let Some(&sequence) = self.order.get(at) else {
            if state.slowest < self.best.0 {
                *self.best = (state.slowest, pipeline_indices.clone());
            }
            return Some(());
        };
        *nodes = nodes.checked_sub(1)?;
        let tokens = self.problem.lengths[sequence];
        let mut order: Vec<(f64, usize)> = Vec::new();
        for pipeline in (0..self.problem.pipelines.len()).filter(|&pipeline| self.problem.holds(pipeline, sequence)) {
            // Pipelines of the same kind and load are equivalent.
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
            // Stop if the result reaches the lower bound.
            if end >= self.best.0 * (1.0 - 1e-9) || self.best.0 <= self.bound * (1.0 + 1e-9) {
                break;
            }
            let before = (state.loads[pipeline], state.slowest);
            state.add(self.problem, sequence, pipeline);
            pipeline_indices[sequence] = pipeline;
            self.follow(state, at + 1, pipeline_indices, nodes)?;
            (state.loads[pipeline], state.slowest) = before;
        }
        Some(())
    }
}
