//! Pipelines with different degrees in one iteration (Hydraulis).

use planscope_cost::cost::{Partition, ReplicaLayout};

/// Degrees of a pipeline, <TP,PP,CP>.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scheme {
    /// Tensor-parallel degree.
    pub tensor: u32,
    /// Pipeline-parallel degree.
    pub pipeline: u32,
    /// Context-parallel degree.
    pub context: u32,
}

impl Scheme {
    /// Devices per pipeline.
    pub const fn devices(self) -> u32 {
        self.tensor * self.pipeline * self.context
    }

    /// Devices per stage.
    pub const fn stage_devices(self) -> u32 {
        self.tensor * self.context
    }
}

impl std::fmt::Display for Scheme {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "<{},{},{}>", self.tensor, self.pipeline, self.context)
    }
}

/// A pipeline of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemedPipeline {
    /// Degrees.
    pub scheme: Scheme,
    /// First device of stage 0.
    pub first_device: u32,
    /// Distance between the first devices of consecutive stages.
    pub stage_stride: u32,
    /// Layers per stage.
    pub partition: Partition,
    /// Number of microbatches. In the iteration's list they follow those of previous pipelines.
    pub microbatches: u32,
    /// Phase index. Pipelines in a phase run in parallel; phases run sequentially on the same
    /// devices.
    pub phase: u32,
    /// Planner's time estimate in seconds.
    pub estimated_s: f64,
}

impl SchemedPipeline {
    /// Device range of a stage.
    pub fn stage_device_range(&self, stage: u32) -> std::ops::Range<u32> {
        let first = self.first_device + stage * self.stage_stride;
        first..first + self.scheme.stage_devices()
    }

    /// Degrees and position of the pipeline as a replica.
    pub fn replica_layout(&self) -> ReplicaLayout {
        let each = self.scheme.stage_devices();
        ReplicaLayout {
            pipeline: self.scheme.pipeline,
            data: self.stage_stride / each,
            replica: self.first_device / each,
        }
    }
}

/// Sharding of the optimizer state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptimizerSharding {
    /// Over the replicas of equal pipelines, by the settings (Megatron-LM).
    Replicas,
    /// Evenly across all devices, independent of the pipelines. Parameters are pulled and gradients
    /// pushed (Hydraulis).
    AllDevices,
}

/// Pipelines of an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Strategy {
    /// Ordered by phase and rank.
    pub pipelines: Vec<SchemedPipeline>,
    /// Optimizer sharding.
    pub optimizer: OptimizerSharding,
    /// Planner's estimate in seconds until the last pipeline is done, excluding switches between
    /// phases.
    pub estimated_s: f64,
}

impl Strategy {
    /// Ranks in all pipelines.
    pub fn ranks(&self) -> usize {
        self.pipelines.iter().map(|pipeline| pipeline.scheme.pipeline as usize).sum()
    }

    /// Number of sequential phases.
    pub fn phases(&self) -> u32 {
        self.pipelines.iter().map(|pipeline| pipeline.phase + 1).max().unwrap_or(0)
    }

    /// Returns pipelines, their rank ranges and their microbatch ranges.
    pub fn spans(&self) -> impl Iterator<Item = (&SchemedPipeline, std::ops::Range<usize>, std::ops::Range<usize>)> {
        let (mut rank, mut microbatch) = (0, 0);
        self.pipelines.iter().map(move |pipeline| {
            let (ranks, count) = (pipeline.scheme.pipeline as usize, pipeline.microbatches as usize);
            let spans = (pipeline, rank..rank + ranks, microbatch..microbatch + count);
            (rank, microbatch) = (rank + ranks, microbatch + count);
            spans
        })
    }

    /// Formats schemes and pipelines per scheme in the paper's notation, in descending device
    /// order.
    pub fn label(&self) -> String {
        let phase_label = |phase: u32| {
            let mut counted: Vec<(Scheme, u32)> = Vec::new();
            for pipeline in self.pipelines.iter().filter(|pipeline| pipeline.phase == phase) {
                match counted.iter_mut().find(|(scheme, _)| *scheme == pipeline.scheme) {
                    Some((_, count)) => *count += 1,
                    None => counted.push((pipeline.scheme, 1)),
                }
            }
            let parts: Vec<String> = counted.iter().map(|(scheme, count)| format!("{count}x{scheme}")).collect();
            parts.join(" + ")
        };
        let phases: Vec<String> = (0..self.phases()).map(phase_label).collect();
        phases.join(" then ")
    }
}
