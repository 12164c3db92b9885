//! What is rehearsed: the execution plans of one iteration after another.

use planner::check::check_execution_plan;
use planner::execution_plan::{Buffers, CompileError, ExecutionPlan, compile};
use planner::timeline::Timeline;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Most ranks: each is a process with a handful of threads.
pub const MOST_RANKS: usize = 256;

/// One iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Movement {
    /// What every rank does.
    pub plan: ExecutionPlan,
    /// Samples of the global batch, where they are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u32>,
}

/// Iterations in the order in which they are rehearsed, all over the same number of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Score(Vec<Movement>);

/// Why something cannot be rehearsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScoreError {
    /// It is no execution plan.
    #[error(
        "this is no execution plan: {0}; take the JSON file of the execution plan panel, or `planscope rehearse` a scenario"
    )]
    Unreadable(String),
    /// There is no iteration, or one without ranks or without anything to compute.
    #[error("there is nothing to rehearse in iteration {0}")]
    Empty(usize),
    /// Too many ranks.
    #[error("the plan has {0} ranks; at most {MOST_RANKS} processes are started")]
    TooManyRanks(usize),
    /// Iterations of different pipelines.
    #[error("iteration {iteration} has {found} ranks, the first has {expected}")]
    Ranks {
        /// The iteration.
        iteration: usize,
        /// Its ranks.
        found: usize,
        /// Those of the first.
        expected: usize,
    },
    /// It does not say how long something takes.
    #[error(
        "rank {rank}, action {index} has no duration_ns: the file was written by an older Planscope; export it again"
    )]
    Untimed {
        /// The rank.
        rank: usize,
        /// Index in its list.
        index: usize,
    },
    /// A launch or wait without a transfer, or one to a rank that does not exist.
    #[error("rank {rank}, action {index}: {name} needs a transfer with another rank of the plan")]
    Transfer {
        /// The rank.
        rank: usize,
        /// Index in its list.
        index: usize,
        /// What it does.
        name: &'static str,
    },
    /// Times so long that they cannot be added up.
    #[error("the times of the plan are longer than a year")]
    Endless,
    /// Ranks of such plans hand nothing to each other.
    #[error("the ranks of this plan work in groups and hand nothing to each other: there is no pipeline to rehearse")]
    Grouped,
    /// The timeline is not one of a pipeline.
    #[error("the timeline cannot be compiled: {0}")]
    Compile(#[from] CompileError),
}

/// Buffers to try, in order: the first that delays nothing is taken, or the last.
const BUFFERS: [u32; 6] = [2, 4, 8, 16, 32, 0];
/// A delay of the iteration that is none: one in a thousand.
const NO_DELAY: f64 = 1.001;
/// A year, in ns.
const LONGEST_NS: u64 = 365 * 24 * 3_600 * 1_000_000_000;

impl Score {
    /// Checked iterations. Orders are not checked: that is what a rehearsal is for.
    pub fn new(movements: Vec<Movement>) -> Result<Self, ScoreError> {
        let expected = movements.first().map_or(0, |movement| movement.plan.ranks.len());
        if expected == 0 {
            return Err(ScoreError::Empty(0));
        }
        if expected > MOST_RANKS {
            return Err(ScoreError::TooManyRanks(expected));
        }
        for (iteration, Movement { plan, .. }) in movements.iter().enumerate() {
            let found = plan.ranks.len();
            if found != expected {
                return Err(ScoreError::Ranks { iteration, found, expected });
            }
            if let Some((rank, index)) = plan.without_duration() {
                return Err(ScoreError::Untimed { rank, index });
            }
            for (rank, list) in plan.ranks.iter().enumerate() {
                let is_wrong = |action: &planner::execution_plan::PlanAction| {
                    let reaches = action.transfer.is_some_and(|transfer| {
                        let peer = transfer.peer as usize;
                        peer != rank && peer < found
                    });
                    !action.action.computes() && !reaches
                };
                if let Some(index) = list.iter().position(is_wrong) {
                    return Err(ScoreError::Transfer { rank, index, name: list[index].action.name() });
                }
            }
            let actions = plan.ranks.iter().flatten();
            let total: u128 = actions.clone().filter_map(|action| action.duration_ns).map(u128::from).sum();
            let endings: u128 = plan.endings.iter().map(|ending| u128::from(ending.duration_ns)).sum();
            let last = actions.map(|action| action.start_ns).max().unwrap_or(0).max(plan.iteration_ns());
            if total + endings + u128::from(last) > u128::from(LONGEST_NS) {
                return Err(ScoreError::Endless);
            }
            if total == 0 {
                return Err(ScoreError::Empty(iteration));
            }
        }
        Ok(Self(movements))
    }

    /// Reads an execution plan as the API's file has it, a list of such, or movements.
    pub fn read(text: &str) -> Result<Self, ScoreError> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(ExecutionPlan),
            Plans(Vec<ExecutionPlan>),
            Movements(Vec<Movement>),
        }
        let unreadable = |error: serde_json::Error| ScoreError::Unreadable(error.to_string());
        let form = serde_json::from_str(text).or_else(|any| {
            // An untagged form does not say what is wrong; the usual one does.
            if text.trim_start().starts_with('{') {
                serde_json::from_str::<ExecutionPlan>(text).map(Form::One).map_err(unreadable)
            } else {
                Err(unreadable(any))
            }
        })?;
        let plain = |plan| Movement { plan, samples: None };
        Self::new(match form {
            Form::One(plan) => vec![plain(plan)],
            Form::Plans(plans) => plans.into_iter().map(plain).collect(),
            Form::Movements(movements) => movements,
        })
    }

    /// Iterations in order, one at least.
    pub fn movements(&self) -> &[Movement] {
        &self.0
    }

    /// Processes that it takes.
    pub fn ranks(&self) -> usize {
        self.0[0].plan.ranks.len()
    }

    /// The same, again and again from the beginning, until there are so many iterations.
    #[must_use]
    pub fn repeated(self, iterations: usize) -> Self {
        Self(self.0.iter().cycle().take(iterations.max(1)).cloned().collect())
    }
}

/// The movement of a timeline, with the fewest buffers that delay nothing.
pub fn movement(timeline: &Timeline, samples: Option<u32>) -> Result<Movement, ScoreError> {
    if timeline.is_grouped() {
        return Err(ScoreError::Grouped);
    }
    let mut last = None;
    for count in BUFFERS {
        let plan = compile(timeline, NonZeroU32::new(count).map_or(Buffers::UNLIMITED, Buffers::of))?;
        let replay =
            check_execution_plan(&plan, timeline).map_err(|error| ScoreError::Unreadable(error.to_string()))?;
        let delays_nothing = replay.end_ns as f64 <= plan.planned_ns as f64 * NO_DELAY;
        last = Some(plan);
        if delays_nothing {
            break;
        }
    }
    last.map(|plan| Movement { plan, samples }).ok_or(ScoreError::Empty(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"buffers": {"receive": 2, "send": 2}, "planned_ns": 10, "ranks": [
        [{"start_ns": 0, "duration_ns": 10, "action": "forward_stage", "stage": 0, "microbatch": 0}], []]}"#;

    #[test]
    fn a_plan_a_list_of_plans_and_movements_are_read() {
        let one = Score::read(PLAN).unwrap();
        assert_eq!((one.ranks(), one.movements().len()), (2, 1));
        assert_eq!(Score::read(&format!("[{PLAN}, {PLAN}]")).unwrap(), one.clone().repeated(2));
        assert_eq!(Score::read(&serde_json::to_string(&one).unwrap()).unwrap(), one);
    }

    #[test]
    fn what_cannot_be_rehearsed_is_told() {
        let read = |from: &str, to: &str| Score::read(&PLAN.replace(from, to)).unwrap_err();
        assert_eq!(read("\"duration_ns\": 10, ", ""), ScoreError::Untimed { rank: 0, index: 0 });
        assert_eq!(read("\"duration_ns\": 10, ", "\"duration_ns\": 0, "), ScoreError::Empty(0));
        assert_eq!(read("\"duration_ns\": 10, ", "\"duration_ns\": 99999999999999999, "), ScoreError::Endless,);
        let launch = ScoreError::Transfer { rank: 0, index: 0, name: "irecv" };
        assert_eq!(read("forward_stage", "irecv"), launch);
        assert!(matches!(read("\"ranks\"", "\"rank\""), ScoreError::Unreadable(why) if why.contains("ranks")));
        assert_eq!(Score::read("[]"), Err(ScoreError::Empty(0)));
        let narrow = PLAN.replace(", []]", "]");
        let uneven = Score::read(&format!("[{PLAN}, {narrow}]")).unwrap_err();
        assert_eq!(uneven, ScoreError::Ranks { iteration: 1, found: 1, expected: 2 });
    }
}
