//! Plans, and the planners that make them.

mod batches;
mod breakdown;
mod contents;
mod context_parallel;
mod data_aware;
mod dynamic;
mod groups;
pub(crate) mod heterogeneous;
mod hydraulis;
mod judge;
mod layouts;
mod measured_layers;
mod misfit;
pub(crate) mod modules;
mod pipeweaver;
mod replica;
mod runs;
mod sizing;
mod stage_flops;
mod static_3d;
mod strategy;

pub use groups::SequenceGroup;
pub use judge::Judged;
pub use modules::ModuleLayout;
pub use strategy::{OptimizerSharding, Scheme, SchemedPipeline, Strategy};

pub(crate) use context_parallel::plan as plan_context_parallel;
pub(crate) use data_aware::{plan as plan_data_aware, shaped_items};
pub(crate) use dynamic::plan as plan_dynamic;
pub(crate) use heterogeneous::plan as plan_heterogeneous;
pub(crate) use hydraulis::{Batches, plan as plan_strategies};
pub(crate) use judge::judge;
pub(crate) use pipeweaver::{CutReplica, plan as plan_pipeweaver};
pub(crate) use runs::Tried;
pub(crate) use sizing::{ENDLESS, LONGEST_SECONDS};
pub(crate) use static_3d::plan as plan_static;

use batches::Drafted;

use crate::cost::{Partition, StrategyMix};
use crate::outcome::{Layout, Search, SolverStatus};
use crate::scenario::budget::Spans;
use crate::schedule::Schedule;

/// A plan as a planner makes it, not yet checked: the judge makes it a [`Judged`] one.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Degrees.
    pub layout: Layout,
    /// Layers of every stage; with layouts of their own, of every stage of one copy of every module.
    pub partition: Partition,
    /// Layouts of the modules where they have their own: the cluster is then one replica, whose parts say on which copies
    /// they run. Empty where `layout` is that of all modules.
    pub modules: Vec<ModuleLayout>,
    /// What each iteration does.
    pub iterations: Vec<IterationPlan>,
    /// Algorithm, in words.
    pub algorithm: String,
    /// What can be said of its quality.
    pub status: SolverStatus,
    /// Candidates tried.
    pub search: Search,
    /// Decisions in words.
    pub decisions: Vec<String>,
}

/// What one iteration does.
#[derive(Debug, Clone, PartialEq)]
pub struct IterationPlan {
    /// One per data-parallel replica.
    pub replicas: Vec<ReplicaPlan>,
    /// Why it is what it is, for dynamic planners.
    pub decision: Option<String>,
}

/// What one replica does in one iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaPlan {
    /// Sequences of each microbatch, by index in the packed batch.
    pub microbatches: Vec<Vec<u32>>,
    /// How microbatches are cut by module, what feeds before what it feeds; empty where each goes whole through all
    /// stages.
    pub parts: Vec<Part>,
    /// Where each microbatch is cut over ranks that each hold the whole model, and the layout's replicas are these ranks;
    /// empty for pipelines.
    pub groups: Vec<SequenceGroup>,
    /// Where pipelines have schemes of their own, all those of the iteration, which are one replica here; their microbatches follow
    /// each other.
    pub strategy: Option<Strategy>,
    /// Orders of all ranks; their microbatches are the parts, if there are any.
    pub schedule: Schedule,
    /// Strategies of the layers of every cell; empty where all layers do as the scenario's settings say.
    pub mixes: Vec<StrategyMix>,
}

impl ReplicaPlan {
    /// Whether its ranks work in groups that each cut sequences over themselves.
    pub const fn is_grouped(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Whole microbatches through all stages.
    fn whole(microbatches: Vec<Vec<u32>>, schedule: Schedule) -> Self {
        Self { microbatches, parts: Vec::new(), groups: Vec::new(), strategy: None, schedule, mixes: Vec::new() }
    }
}

/// A sub-microbatch: consecutive instances (images, clips, sequences) of one module in one microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    /// Microbatch of the replica.
    pub microbatch: u32,
    /// Module of the model.
    pub module: u32,
    /// First instance.
    pub first: u32,
    /// One behind the last instance.
    pub end: u32,
    /// Pipeline of the module's layout that it runs on; 0 where the replica is one pipeline.
    pub copy: u32,
}

impl Plan {
    /// Whether pipelines have schemes of their own.
    pub fn has_strategies(&self) -> bool {
        self.iterations.iter().flat_map(|iteration| &iteration.replicas).any(|replica| replica.strategy.is_some())
    }

    /// Its spans. Of each iteration the timeline of one replica is kept, counted as the longest.
    pub(crate) fn spans(&self) -> Spans {
        let of = |iteration: &IterationPlan| {
            let own = || iteration.replicas.iter().map(Drafted::spans);
            Spans { kept: own().max().unwrap_or(0), simulated: own().sum() }
        };
        self.iterations.iter().map(of).fold(Spans::default(), Spans::and)
    }

    /// Ranks of each of the lists that iterations have: of a pipeline, or of all that work in groups.
    pub fn ranks(&self) -> usize {
        if !self.modules.is_empty() {
            return self.arrangement().map_or(0, |arrangement| arrangement.ranks.len());
        }
        let groups = self.iterations.iter().flat_map(|iteration| &iteration.replicas).any(ReplicaPlan::is_grouped);
        if groups { self.layout.data as usize } else { self.layout.pipeline as usize }
    }

    /// Ranks and stages of modules with layouts of their own; `None` where there are none, or they cannot stand so.
    pub(crate) fn arrangement(&self) -> Option<modules::Arrangement> {
        let modules = self.modules.iter().map(|layout| layout.end as usize).max()?;
        modules::Arrangement::of(&self.modules, &self.partition, modules).ok()
    }
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq)]
pub struct NoPlan {
    /// The binding constraint of the candidate that came closest.
    pub binding: String,
    /// Candidates tried.
    pub search: Search,
}

/// Why a layout was chosen, in words.
fn fastest(layout: Layout, sequences: usize, failed_later: u32) -> String {
    let but = failed(failed_later);
    format!("{}: the fastest layout on a representative batch of {sequences} sequences{but}.", describe(layout))
}

/// What is said of layouts that were faster on the sizing batch and failed on a judged one.
fn failed(failed_later: u32) -> String {
    match failed_later {
        0 => String::new(),
        1 => "; one faster layout fails on another batch".to_owned(),
        more => format!("; {more} faster layouts fail on other batches"),
    }
}

/// Degrees as people write them.
pub fn describe(layout: Layout) -> String {
    let chunks = if layout.chunks > 1 { format!(" · VPP {}", layout.chunks) } else { String::new() };
    let Layout { tensor, pipeline, data, microbatch, .. } = layout;
    format!("TP {tensor} · PP {pipeline} · DP {data}{chunks} · mb {microbatch}")
}
