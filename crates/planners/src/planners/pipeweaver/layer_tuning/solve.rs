//! Solver: runs fast methods, then slower methods while the gap is too large.

use super::branch::enumerate;
use super::greedy::Trial;
use super::problem::{Moment, TuningProblem};
use super::relaxation::{Relaxation, cutoff};
use planscope_core::optimality::{Optimality, relative_gap};
use planscope_core::units::{Bytes, Nanos};

/// Solver settings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Target gap, (time - bound) / time.
    pub gap: f64,
    /// The most expensive solver to use if earlier solvers do not reach the gap.
    pub solver: Solver,
    /// Node limit for branch and bound, all pairs together.
    pub nodes: u64,
}

impl Default for Settings {
    /// Uses the paper's 5 % gap (PipeWeaver Sec. 6.3) and branch and bound.
    fn default() -> Self {
        Self { gap: 0.05, solver: Solver::BranchAndBound, nodes: 20_000 }
    }
}

/// Solvers, in the order of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Solver {
    /// Greedy changes at the Lagrangian prices.
    Lagrangian,
    /// Breadth-first branch and bound at the same prices.
    BranchAndBound,
}

impl Solver {
    /// Returns the stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Lagrangian => "lagrangian",
            Self::BranchAndBound => "branch_and_bound",
        }
    }
}

/// A feasible selection and its proof.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Candidate index per pair.
    pub selection: Vec<u8>,
    /// Total time.
    pub time: Nanos,
    /// Peak memory, including the base.
    pub peak: Bytes,
    /// Lower bound on the total time of feasible selections.
    pub bound: Nanos,
    /// (time - bound) / time.
    pub gap: f64,
    /// Proof status.
    pub optimality: Optimality,
    /// The last solver used.
    pub solver: Solver,
    /// Branch-and-bound nodes visited.
    pub nodes: u64,
}

/// Reasons for an infeasible problem.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Infeasible {
    /// The base exceeds the limit.
    #[error("{:.2} GiB are always held, over the limit of {:.2} GiB", base.gib(), limit.gib())]
    Base {
        /// Base memory.
        base: Bytes,
        /// Memory limit.
        limit: Bytes,
    },
    /// At some instant, even the candidates that need the least memory exceed the limit.
    #[error(
        "the leanest candidates of the {} pairs held at action {}, the backward of pair {}, need {:.2} GiB of {:.2} GiB",
        pairs, instant.event, instant.releasing, needed.gib(), limit.gib()
    )]
    Moment {
        /// Instant with the maximum need.
        instant: Moment,
        /// Active pairs at that instant.
        pairs: usize,
        /// Minimum memory at that instant, including the base.
        needed: Bytes,
        /// Memory limit.
        limit: Bytes,
    },
    /// Each instant is feasible separately, but no selection is feasible at all instants.
    #[error(
        "no choice of candidates stays within {:.2} GiB everywhere: the leanest to hold and the leanest to release differ",
        limit.gib()
    )]
    AlignedIterations {
        /// Memory limit.
        limit: Bytes,
    },
    /// The search found no feasible selection and no proof of infeasibility.
    #[error("no choice of candidates within {:.2} GiB was found among {nodes} partial choices, though there may be one", limit.gib())]
    Unknown {
        /// Memory limit.
        limit: Bytes,
        /// Branch-and-bound nodes visited.
        nodes: u64,
    },
}

/// Selects a candidate per pair to minimize the total time within the memory limit at all instants
/// (PipeWeaver Sec. 6.3).
///
/// The result depends only on the problem and the settings.
pub fn solve(problem: &TuningProblem, settings: &Settings) -> Result<Tuning, Infeasible> {
    let gap = if settings.gap.is_finite() { settings.gap.clamp(0.0, 1.0) } else { 0.0 };
    possible(problem)?;
    let mut trial = Trial::fastest(problem);
    let fastest = trial.selection().to_vec();
    let mut best = trial.repair_and_improve().then_some(trial);
    let relaxation = Relaxation::tighten(problem, fastest, &mut best, gap);
    let mut state = State { bound: relaxation.bound(), solver: Solver::Lagrangian, nodes: 0, impossible: false };
    if settings.solver >= Solver::BranchAndBound && state.is_open(best.as_ref(), gap) {
        let width = settings.nodes / problem.pairs().max(1) as u64;
        let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
        let enumeration = enumerate(problem, &relaxation, &mut best, gap, width);
        state.solver = Solver::BranchAndBound;
        state.nodes = enumeration.nodes;
        state.impossible = enumeration.bound.is_none();
        state.bound = state.bound.max(enumeration.bound.unwrap_or_default());
    }
    let limit = problem.limit;
    let best = match best {
        Some(best) => best,
        None if state.impossible => return Err(Infeasible::AlignedIterations { limit }),
        None => return Err(Infeasible::Unknown { limit, nodes: state.nodes }),
    };
    let (time, bound) = (best.time(), state.bound.min(best.time()));
    Ok(Tuning {
        selection: best.selection().to_vec(),
        time,
        peak: problem.peak(best.selection()).0,
        bound,
        gap: relative_gap(time.get(), bound.get()),
        optimality: Optimality::classify(time.get(), bound.get(), gap),
        solver: state.solver,
        nodes: state.nodes,
    })
}

/// Solver state.
struct State {
    bound: Nanos,
    solver: Solver,
    nodes: u64,
    /// True if infeasibility is proven.
    impossible: bool,
}

impl State {
    fn is_open(&self, best: Option<&Trial<'_>>, gap: f64) -> bool {
        best.is_none_or(|best| self.bound.get() < cutoff(best.time(), gap))
    }
}

/// Checks each instant separately, using the candidates that need the least memory.
fn possible(problem: &TuningProblem) -> Result<(), Infeasible> {
    let limit = problem.limit;
    if problem.base > limit {
        return Err(Infeasible::Base { base: problem.base, limit });
    }
    let lean = problem.leanest();
    let peak = lean.iter().copied().max().unwrap_or(0);
    if peak <= problem.capacity {
        return Ok(());
    }
    let at = lean.iter().position(|&bytes| bytes == peak).expect("the largest is one of them");
    let pairs = problem.spans.iter().filter(|span| span.instants().contains(&at)).count();
    Err(Infeasible::Moment { instant: problem.instants[at], pairs, needed: problem.with_base(peak), limit })
}
