//! The choice: cheap steps first, and further ones only while the gap is open.

use super::branch::enumerate;
use super::greedy::Trial;
use super::problem::{Moment, TuningProblem};
use super::relaxation::{Relaxation, cutoff};
use crate::proof::{Proof, relative_gap};
use crate::units::{Bytes, Nanos};

/// How hard to try.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Distance from the bound, (time - bound) / time, at which an answer is good enough.
    pub gap: f64,
    /// The last of the solvers to use where those before it leave more than the gap.
    pub solver: Solver,
    /// Partial choices that branch and bound may follow, all pairs together.
    pub nodes: u64,
}

impl Default for Settings {
    /// The paper's gap of 5 % (PipeWeaver, section 6.3), with branch and bound.
    fn default() -> Self {
        Self { gap: 0.05, solver: Solver::BranchAndBound, nodes: 20_000 }
    }
}

/// The solvers, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Solver {
    /// Greedy changes under the prices of the Lagrangian relaxation.
    Lagrangian,
    /// Breadth-first branch and bound with the same prices.
    BranchAndBound,
}

impl Solver {
    /// Stable identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Lagrangian => "lagrangian",
            Self::BranchAndBound => "branch_and_bound",
        }
    }
}

/// A choice that fits, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuning {
    /// Of every pair the index of its candidate.
    pub choice: Vec<u8>,
    /// Sum of their times.
    pub time: Nanos,
    /// Most memory held at once, the base included.
    pub peak: Bytes,
    /// No choice that fits takes less.
    pub bound: Nanos,
    /// (time - bound) / time.
    pub gap: f64,
    /// What the bound proves.
    pub proof: Proof,
    /// The last solver that ran.
    pub solver: Solver,
    /// Partial choices that branch and bound looked at.
    pub nodes: u64,
}

/// Why there is no choice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Infeasible {
    /// The base alone is too large.
    #[error("{:.2} GiB are always held, over the limit of {:.2} GiB", base.gib(), limit.gib())]
    Base {
        /// Always held.
        base: Bytes,
        /// May be held.
        limit: Bytes,
    },
    /// The leanest candidates are too large at one instant.
    #[error(
        "the leanest candidates of the {} pairs held at action {}, the backward of pair {}, need {:.2} GiB of {:.2} GiB",
        pairs, instant.event, instant.releasing, needed.gib(), limit.gib()
    )]
    Moment {
        /// Where most is needed.
        instant: Moment,
        /// Pairs held there.
        pairs: usize,
        /// What they need at least, the base included.
        needed: Bytes,
        /// May be held.
        limit: Bytes,
    },
    /// Every instant has candidates that fit, but no choice fits everywhere.
    #[error(
        "no choice of candidates stays within {:.2} GiB everywhere: the leanest to hold and the leanest to release differ",
        limit.gib()
    )]
    Together {
        /// May be held.
        limit: Bytes,
    },
    /// No choice was found that fits, and none proven impossible.
    #[error("no choice of candidates within {:.2} GiB was found among {nodes} partial choices, though there may be one", limit.gib())]
    Unknown {
        /// May be held.
        limit: Bytes,
        /// Partial choices looked at.
        nodes: u64,
    },
}

/// Chooses one candidate per pair so that memory stays within the limit at every instant and the sum of times is
/// small (PipeWeaver, section 6.3).
///
/// The result depends only on the problem and the settings.
pub fn solve(problem: &TuningProblem, settings: &Settings) -> Result<Tuning, Infeasible> {
    let gap = if settings.gap.is_finite() { settings.gap.clamp(0.0, 1.0) } else { 0.0 };
    possible(problem)?;
    let mut trial = Trial::fastest(problem);
    let fastest = trial.choice().to_vec();
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
        None if state.impossible => return Err(Infeasible::Together { limit }),
        None => return Err(Infeasible::Unknown { limit, nodes: state.nodes }),
    };
    let (time, bound) = (best.time(), state.bound.min(best.time()));
    Ok(Tuning {
        choice: best.choice().to_vec(),
        time,
        peak: problem.peak(best.choice()).0,
        bound,
        gap: relative_gap(time.get(), bound.get()),
        proof: Proof::of(time.get(), bound.get(), gap),
        solver: state.solver,
        nodes: state.nodes,
    })
}

/// How far the solvers have come.
struct State {
    bound: Nanos,
    solver: Solver,
    nodes: u64,
    /// Whether it is proven that no choice fits.
    impossible: bool,
}

impl State {
    fn is_open(&self, best: Option<&Trial<'_>>, gap: f64) -> bool {
        best.is_none_or(|best| self.bound.get() < cutoff(best.time(), gap))
    }
}

/// Whether the leanest candidates fit at every instant by itself.
fn possible(problem: &TuningProblem) -> Result<(), Infeasible> {
    let limit = problem.limit;
    if problem.base > limit {
        return Err(Infeasible::Base { base: problem.base, limit });
    }
    let lean = problem.leanest();
    let most = lean.iter().copied().max().unwrap_or(0);
    if most <= problem.room {
        return Ok(());
    }
    let at = lean.iter().position(|&held| held == most).expect("the largest is one of them");
    let pairs = problem.spans.iter().filter(|span| span.instants().contains(&at)).count();
    Err(Infeasible::Moment { instant: problem.instants[at], pairs, needed: problem.with_base(most), limit })
}
