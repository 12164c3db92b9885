//! Parallel layout and settings of a run and of a plan. Other ones are the same job with other times.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Agreement, JobCheck, JobQuantity, LoggedJob, PlannedJob};
use planscope_core::training::{AttentionKernel, Recompute};
use planscope_plan::scenario::{PlannerKind, Scenario};

/// Parallel layout, batch of a microbatch, recomputation and other settings that change the time of a step; a field is
/// absent where it is not stated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatedLayout {
    /// Tensor-parallel degree, TP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tensor: Option<u32>,
    /// Pipeline-parallel degree, PP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<u32>,
    /// Context-parallel degree, CP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Expert-parallel degree, EP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expert: Option<u32>,
    /// Data-parallel degree, DP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<u32>,
    /// Model chunks of a rank, VPP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Sequences of a microbatch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub microbatch: Option<u32>,
    /// Recomputation of activations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recompute: Option<Recompute>,
    /// Sequence parallelism.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence_parallel: Option<bool>,
    /// Optimizer state that is sharded over the replicas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharded_optimizer: Option<bool>,
    /// Reduction of gradients during the backward pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapped_gradients: Option<bool>,
    /// Gathering of weights during the forward pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlapped_weights: Option<bool>,
    /// Attention in separate kernels instead of a fused kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separate_attention: Option<bool>,
}

impl StatedLayout {
    /// These facts; those that are absent come from `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            tensor: self.tensor.or(other.tensor),
            pipeline: self.pipeline.or(other.pipeline),
            context: self.context.or(other.context),
            expert: self.expert.or(other.expert),
            data: self.data.or(other.data),
            chunks: self.chunks.or(other.chunks),
            microbatch: self.microbatch.or(other.microbatch),
            recompute: self.recompute.or(other.recompute),
            sequence_parallel: self.sequence_parallel.or(other.sequence_parallel),
            sharded_optimizer: self.sharded_optimizer.or(other.sharded_optimizer),
            overlapped_gradients: self.overlapped_gradients.or(other.overlapped_gradients),
            overlapped_weights: self.overlapped_weights.or(other.overlapped_weights),
            separate_attention: self.separate_attention.or(other.separate_attention),
        }
    }

    /// The facts for which `is_wanted` holds, given the values of both layouts.
    fn filter(self, other: Self, is_wanted: impl Fn(bool, bool) -> bool) -> Self {
        fn keep<T: PartialEq + Copy>(
            value: Option<T>,
            other: Option<T>,
            is_wanted: &impl Fn(bool, bool) -> bool,
        ) -> Option<T> {
            let (is_stated, is_equal) = (other.is_some(), value == other);
            value.filter(|_| is_wanted(is_stated, is_equal))
        }
        Self {
            tensor: keep(self.tensor, other.tensor, &is_wanted),
            pipeline: keep(self.pipeline, other.pipeline, &is_wanted),
            context: keep(self.context, other.context, &is_wanted),
            expert: keep(self.expert, other.expert, &is_wanted),
            data: keep(self.data, other.data, &is_wanted),
            chunks: keep(self.chunks, other.chunks, &is_wanted),
            microbatch: keep(self.microbatch, other.microbatch, &is_wanted),
            recompute: keep(self.recompute, other.recompute, &is_wanted),
            sequence_parallel: keep(self.sequence_parallel, other.sequence_parallel, &is_wanted),
            sharded_optimizer: keep(self.sharded_optimizer, other.sharded_optimizer, &is_wanted),
            overlapped_gradients: keep(self.overlapped_gradients, other.overlapped_gradients, &is_wanted),
            overlapped_weights: keep(self.overlapped_weights, other.overlapped_weights, &is_wanted),
            separate_attention: keep(self.separate_attention, other.separate_attention, &is_wanted),
        }
    }

    /// The facts that both layouts state.
    fn stated_in(self, other: Self) -> Self {
        self.filter(other, |is_stated, _| is_stated)
    }

    /// The facts that both layouts state with different values.
    fn differing_from(self, other: Self) -> Self {
        self.filter(other, |is_stated, is_equal| is_stated && !is_equal)
    }

    fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Sets the degrees, the microbatch and the recomputation of a scenario. DP follows from the devices.
    pub(super) fn apply(self, scenario: &mut Scenario) {
        let layout = &mut scenario.layout;
        if self.pipeline.is_some() || self.chunks.is_some() {
            layout.chunks = self.chunks.filter(|&chunks| chunks > 1);
            layout.group = None;
        }
        layout.tensor = self.tensor.or(layout.tensor);
        layout.pipeline = self.pipeline.or(layout.pipeline);
        layout.microbatch = self.microbatch.or(layout.microbatch);
        // One chunk is the schedule of 1F1B. Interleaved schedules have several.
        if self.chunks == Some(1) {
            scenario.planners.retain(|planner| *planner != PlannerKind::OneFOneB);
            scenario.planners.insert(0, PlannerKind::OneFOneB);
        }
        let training = &mut scenario.training;
        training.context_parallel = self.context.unwrap_or(training.context_parallel);
        training.expert_parallel = self.expert.unwrap_or(training.expert_parallel);
        if let Some(recompute) = self.recompute {
            training.recompute = recompute;
            training.recompute_layers = None;
        }
        training.sequence_parallel = self.sequence_parallel.unwrap_or(training.sequence_parallel);
        if let Some(is_sharded) = self.sharded_optimizer {
            training.distributed_optimizer = is_sharded;
            training.zero = None;
        }
        let hidden = [self.overlapped_gradients, self.overlapped_weights];
        if hidden.contains(&Some(false)) {
            // Gradients or weights alone are about half of the bytes.
            training.data_overlap = if hidden.contains(&Some(true)) { 0.5 * training.data_overlap } else { 0.0 };
        } else if hidden.contains(&Some(true)) {
            training.data_overlap = 1.0;
        }
        if let Some(is_separate) = self.separate_attention {
            training.attention = if is_separate { AttentionKernel::Unfused } else { AttentionKernel::default() };
        }
    }
}

impl fmt::Display for StatedLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let degrees = [
            ("TP", self.tensor),
            ("PP", self.pipeline),
            ("CP", self.context),
            ("EP", self.expert),
            ("DP", self.data),
            ("VPP", self.chunks),
        ];
        let mut terms: Vec<String> =
            degrees.into_iter().filter_map(|(name, degree)| degree.map(|degree| format!("{name} {degree}"))).collect();
        terms.extend(self.microbatch.map(|size| format!("microbatches of {size}")));
        terms.extend(self.recompute.map(|recompute| {
            let text = match recompute {
                Recompute::None => "no recomputation",
                Recompute::Selective => "selective recomputation",
                Recompute::Operators => "recomputation by operator",
                Recompute::Full => "full recomputation",
            };
            text.to_owned()
        }));
        let settings = [
            (self.sequence_parallel, ["no sequence parallelism", "sequence parallelism"]),
            (self.sharded_optimizer, ["no distributed optimizer", "distributed optimizer"]),
            (self.overlapped_gradients, ["no overlap of gradient reduction", "overlap of gradient reduction"]),
            (self.overlapped_weights, ["no overlap of weight gathering", "overlap of weight gathering"]),
            (self.separate_attention, ["fused attention", "attention in separate kernels"]),
        ];
        let names = settings.into_iter().filter_map(|(value, names)| Some(names[usize::from(value?)].to_owned()));
        terms.extend(names);
        f.write_str(&terms.join(", "))
    }
}

/// The check of the layout. A log that states no layout, and a plan with a layout for each module, leave it unchecked.
pub(super) fn check(log: &LoggedJob, plan: &PlannedJob) -> JobCheck {
    let unchecked = |derivation: &str| {
        JobCheck::new(
            JobQuantity::Layout,
            Agreement::NotChecked,
            (None, plan.devices),
            derivation.to_owned(),
            String::new(),
        )
    };
    let Some(planned) = plan.layout else {
        return unchecked("the plan has a layout for each module");
    };
    let measured = log.layout.stated_in(planned);
    if measured.is_empty() {
        return unchecked("the log states no layout (TP, PP, CP, microbatch, recomputation)");
    }
    let differing = measured.differing_from(planned);
    let consequence = if differing.is_empty() {
        String::new()
    } else {
        format!(
            "The run has {differing}, the plan {}. The layouts differ, so the times cannot be compared. Plan the layout of the run.",
            planned.differing_from(measured)
        )
    };
    let agreement = if differing.is_empty() { Agreement::Same } else { Agreement::OtherLayout };
    JobCheck {
        measured_name: measured.to_string(),
        planned_name: planned.stated_in(measured).to_string(),
        ..JobCheck::new(
            JobQuantity::Layout,
            agreement,
            (None, plan.devices),
            "stated by the log".to_owned(),
            consequence,
        )
    }
}

/// The layout of a log that differs from the plan's, where it divides `devices`.
pub(super) fn correction(log: &LoggedJob, plan: &PlannedJob, devices: f64) -> Option<StatedLayout> {
    let planned = plan.layout?;
    let differing = StatedLayout { data: None, ..log.layout.stated_in(planned).differing_from(planned) };
    if differing.is_empty() {
        return None;
    }
    let all = differing.or(planned);
    let replica = [all.tensor, all.pipeline, all.context].into_iter().flatten().map(f64::from).product::<f64>();
    let replicas = devices / replica.max(1.0);
    // A degree that the log does not state may have to be searched again.
    (replicas >= 1.0 && replicas.fract() == 0.0).then_some(differing)
}
