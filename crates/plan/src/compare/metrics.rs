//! Metrics of a plan for all iterations (docs/models.md, section 8).

use crate::outcome::Metrics;
use planscope_core::action::{ActionKind, Schedule};
use planscope_core::cluster::Cluster;
use planscope_core::units::{Bytes, Flops, Nanos};
use planscope_cost::cost::PipelineCosts;

/// Totals across all replicas in an iteration, used to compute metrics.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct IterationTotals {
    /// Iteration time.
    pub time: Nanos,
    /// Lower bound on the iteration time.
    pub bound: Nanos,
    /// Rank count across all replicas.
    pub ranks: u64,
    /// Busy time, summed across ranks and replicas.
    pub active_time: Nanos,
    /// Exposed communication, summed across ranks and replicas.
    pub exposed: Nanos,
    /// Highest peak memory per rank.
    pub peak: Bytes,
    /// Highest peak of host memory per device.
    pub host_peak: Bytes,
    /// Model FLOPs, excluding padding and recomputation.
    pub model_flops: Flops,
    /// Backbone tokens, excluding padding.
    pub tokens: u64,
}

impl IterationTotals {
    /// Adds the ranks of `count` equal replicas.
    pub fn add_replica(&mut self, schedule: &Schedule, costs: &PipelineCosts, count: u32) {
        for rank in 0..schedule.ranks() {
            self.add_rank(schedule, costs, rank, u64::from(count));
        }
        self.ranks += schedule.ranks() as u64 * u64::from(count);
    }

    /// Adds ranks weighted by devices per rank, of `count` equal replicas on `devices` devices each. The remaining
    /// devices are idle.
    pub fn add_blocks(
        &mut self,
        schedule: &Schedule,
        costs: &PipelineCosts,
        sizes: &[u32],
        (devices, count): (u32, u32),
    ) {
        for (rank, &size) in sizes.iter().enumerate() {
            self.add_rank(schedule, costs, rank, u64::from(size) * u64::from(count));
        }
        self.ranks += u64::from(devices) * u64::from(count);
    }

    /// Adds a rank with weight `times`.
    fn add_rank(&mut self, schedule: &Schedule, costs: &PipelineCosts, rank: usize, times: u64) {
        let (mut all, mut in_the_way) = (costs.sync[rank] + costs.optimizer[rank], costs.sync[rank]);
        for action in &schedule.orders[rank] {
            let cell = costs.cell(action.stage as usize, action.microbatch as usize);
            let (duration, exposed) = match action.kind {
                ActionKind::Forward => (costs.forward[cell], costs.exposed_forward[cell]),
                ActionKind::Backward => (costs.backward(cell), costs.exposed_backward[cell]),
                ActionKind::InputGrad => (costs.input_grad[cell], costs.exposed_backward[cell]),
                ActionKind::WeightGrad => (costs.weight_grad[cell], Nanos::ZERO),
            };
            all += duration;
            in_the_way += exposed;
        }
        self.active_time += Nanos::new(all.get() * times);
        self.exposed += Nanos::new(in_the_way.get() * times);
    }

    /// Ranks x time, in seconds.
    fn capacity(&self) -> f64 {
        self.ranks as f64 * self.time.secs()
    }

    /// Idle time divided by (ranks x time).
    pub fn bubble(&self) -> f64 {
        if self.time == Nanos::ZERO { 0.0 } else { 1.0 - self.active_time.secs() / self.capacity() }
    }
}

/// Computes the metrics across all iterations, as means weighted by time.
pub fn compute_metrics(iterations: &[IterationTotals], cluster: &Cluster, limit: Bytes) -> Metrics {
    let time: f64 = iterations.iter().map(|iteration| iteration.time.secs()).sum();
    let bound: f64 = iterations.iter().map(|iteration| iteration.bound.secs()).sum();
    let capacity: f64 = iterations.iter().map(IterationTotals::capacity).sum();
    let active_s: f64 = iterations.iter().map(|iteration| iteration.active_time.secs()).sum();
    let exposed: f64 = iterations.iter().map(|iteration| iteration.exposed.secs()).sum();
    let flops: Flops = iterations.iter().map(|iteration| iteration.model_flops).sum();
    let tokens: u64 = iterations.iter().map(|iteration| iteration.tokens).sum();
    let peak = iterations.iter().map(|iteration| iteration.peak).max().unwrap_or(Bytes::ZERO);
    let host_peak = iterations.iter().map(|iteration| iteration.host_peak).max().unwrap_or(Bytes::ZERO);
    let count = iterations.len().max(1) as f64;
    let devices = f64::from(cluster.devices());
    let per_device = flops.get() / time / devices;
    Metrics {
        iteration_s: time / count,
        tokens_per_s: tokens as f64 / time,
        tokens_per_s_per_device: Some(tokens as f64 / time / devices),
        tflops_per_device: per_device * 1e-12,
        mfu: per_device / cluster.device.peak().get(),
        bubble: 1.0 - active_s / capacity,
        exposed_communication: exposed / capacity,
        peak_memory_gib: peak.gib(),
        memory_limit_gib: limit.gib(),
        host_memory_gib: f64::from(cluster.devices_per_node) * host_peak.gib(),
        lower_bound_s: bound / count,
        gap: time / bound - 1.0,
    }
}
