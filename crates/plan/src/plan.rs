//! Plans: a layout, an assignment of samples and an order of actions for every iteration.

mod module_layout;
mod sequence_group;
mod strategy;

pub use module_layout::ModuleLayout;
pub use module_layout::{Arrangement, overlap};
pub use sequence_group::SequenceGroup;
pub use strategy::{OptimizerSharding, Scheme, SchemedPipeline, Strategy};

use crate::outcome::{Layout, Search, SolverStatus};
use planscope_core::action::Schedule;
use planscope_cost::cost::{Partition, StrategyMix};

/// A plan as returned by a planner, before validation. An evaluated plan is the validated form.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Degrees of parallelism.
    pub layout: Layout,
    /// Layers per stage. For separate module layouts: the stages in a copy of each module.
    pub partition: Partition,
    /// Layouts of the modules if they differ. The cluster is then a single replica, and each part
    /// names its copy. Empty if `layout` applies to all modules.
    pub modules: Vec<ModuleLayout>,
    /// One entry per global batch.
    pub iterations: Vec<IterationPlan>,
    /// Algorithm as text.
    pub algorithm: String,
    /// Optimality status.
    pub status: SolverStatus,
    /// Statistics for the candidate search.
    pub search: Search,
    /// Decisions as text.
    pub decisions: Vec<String>,
}

/// Plan for an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct IterationPlan {
    /// One entry per data-parallel replica.
    pub replicas: Vec<ReplicaPlan>,
    /// Reason for the choices of a dynamic planner.
    pub decision: Option<String>,
}

/// Plan for a replica in an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaPlan {
    /// Sequences per microbatch, as indices into the packed batch.
    pub microbatches: Vec<Vec<u32>>,
    /// Unit of work that the ranks process.
    pub kind: ReplicaKind,
    /// Order of actions per rank. The microbatches of a schedule for [`ReplicaKind::Parts`] are the
    /// parts.
    pub schedule: Schedule,
    /// Layer strategies per cell. Empty if all layers follow the scenario's settings.
    pub mixes: Vec<StrategyMix>,
}

/// Unit of work that the ranks of a replica process.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplicaKind {
    /// Microbatches pass through all stages of a pipeline undivided.
    Pipeline,
    /// Sub-microbatches in topological order.
    Parts(Vec<Part>),
    /// Context-parallel rank groups. Each rank contains the full model and is a data-parallel
    /// replica of the layout.
    Groups(Vec<SequenceGroup>),
    /// Pipelines with individual schemes. All pipelines in the iteration form a single replica, and
    /// their microbatches are concatenated.
    Strategy(Strategy),
}

impl ReplicaPlan {
    /// Builds a plan without layer strategies.
    pub const fn new(microbatches: Vec<Vec<u32>>, kind: ReplicaKind, schedule: Schedule) -> Self {
        Self { microbatches, kind, schedule, mixes: Vec::new() }
    }

    /// Returns the sub-microbatches. Empty for other kinds.
    pub fn parts(&self) -> &[Part] {
        if let ReplicaKind::Parts(parts) = &self.kind { parts } else { &[] }
    }

    /// Returns the context-parallel groups. Empty for other kinds.
    pub fn groups(&self) -> &[SequenceGroup] {
        if let ReplicaKind::Groups(groups) = &self.kind { groups } else { &[] }
    }

    /// Returns the pipelines with individual schemes.
    pub const fn strategy(&self) -> Option<&Strategy> {
        if let ReplicaKind::Strategy(strategy) = &self.kind { Some(strategy) } else { None }
    }

    /// Returns the parts for changes, as tests of the checker make them.
    ///
    /// # Panics
    /// If the plan is of another kind.
    pub fn parts_mut(&mut self) -> &mut Vec<Part> {
        let ReplicaKind::Parts(parts) = &mut self.kind else { panic!("a plan of parts") };
        parts
    }

    /// Returns the groups for changes, as tests of the checker make them.
    ///
    /// # Panics
    /// If the plan is of another kind.
    pub fn groups_mut(&mut self) -> &mut Vec<SequenceGroup> {
        let ReplicaKind::Groups(groups) = &mut self.kind else { panic!("a plan of groups") };
        groups
    }

    /// Returns true if the ranks form context-parallel groups.
    pub const fn is_grouped(&self) -> bool {
        matches!(self.kind, ReplicaKind::Groups(_))
    }
}

/// A sub-microbatch: consecutive instances (images, clips, sequences) of one module in one microbatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Part {
    /// Microbatch of the replica.
    pub microbatch: u32,
    /// Module index in the model.
    pub module: u32,
    /// First instance.
    pub first: u32,
    /// Instance range end (exclusive).
    pub end: u32,
    /// Pipeline of the module's layout that runs the part; 0 if the replica is one pipeline.
    pub copy: u32,
}

impl Plan {
    /// Returns true if pipelines have individual schemes.
    pub fn has_strategies(&self) -> bool {
        self.iterations.iter().flat_map(|iteration| &iteration.replicas).any(|replica| replica.strategy().is_some())
    }

    /// Number of ranks in each iteration: the pipeline degree, or the data-parallel degree for
    /// context-parallel groups.
    pub fn ranks(&self) -> usize {
        if !self.modules.is_empty() {
            return self.arrangement().map_or(0, |arrangement| arrangement.ranks.len());
        }
        let groups = self.iterations.iter().flat_map(|iteration| &iteration.replicas).any(ReplicaPlan::is_grouped);
        if groups { self.layout.data as usize } else { self.layout.pipeline as usize }
    }

    /// Ranks and stages for separate module layouts. `None` if the plan has none, or the placement
    /// is invalid.
    pub fn arrangement(&self) -> Option<Arrangement> {
        let modules = self.modules.iter().map(|layout| layout.end as usize).max()?;
        Arrangement::new(&self.modules, &self.partition, modules).ok()
    }
}

/// Formats the degrees, for example "TP 2 · PP 4 · DP 1 · mb 2".
pub fn describe(layout: Layout) -> String {
    let chunks = if layout.chunks > 1 { format!(" · VPP {}", layout.chunks) } else { String::new() };
    let Layout { tensor, pipeline, data, microbatch, .. } = layout;
    format!("TP {tensor} · PP {pipeline} · DP {data}{chunks} · mb {microbatch}")
}
