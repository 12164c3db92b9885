//! Bounds and estimates of points before any simulation.

use std::collections::BTreeMap;

use super::fill;
use super::space::{Mode, Point, anchor};
use crate::planners::infeasible::Infeasibility;
use crate::planners::replica;
use planscope_core::workload::PackedBatch;
use planscope_cost::cost::{MicrobatchLoad, Pricing};
use planscope_plan::plan::ModuleLayout;
use planscope_plan::scenario::Scenario;

/// Times of a point on the sizing batch, in s.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    /// Lower bound: the work per device.
    pub bound: f64,
    /// The work per device and the pipeline bubble.
    pub estimate: f64,
}

/// Computes estimates. Work is computed once for layouts that differ in DP and PP only.
pub(crate) struct Estimates<'a> {
    scenario: &'a Scenario,
    pricing: &'a Pricing<'a>,
    sizing: &'a PackedBatch,
    main: usize,
    /// Microbatch loads, by the sequences of a microbatch.
    loads: BTreeMap<usize, Vec<MicrobatchLoad>>,
    /// Work by modules, TP, CP, EP, and the sequences of a microbatch.
    works: BTreeMap<([u32; 5], usize), Result<f64, Infeasibility>>,
}

impl<'a> Estimates<'a> {
    pub(crate) fn new(scenario: &'a Scenario, pricing: &'a Pricing<'a>, sizing: &'a PackedBatch) -> Self {
        let main = anchor(&scenario.model);
        Self { scenario, pricing, sizing, main, loads: BTreeMap::new(), works: BTreeMap::new() }
    }

    /// Returns the estimate of a point, or why its degrees have no costs.
    pub(crate) fn of(&mut self, point: &Point) -> Result<Estimate, Infeasibility> {
        let size = fill::sequences_per_microbatch(point, self.main).min(self.sizing.sequences.len());
        let (scenario, sizing, main) = (self.scenario, self.sizing, self.main);
        let loads = self
            .loads
            .entry(size)
            .or_insert_with(|| replica::loads(scenario, sizing, &fill::microbatches(point, main, sizing)));
        let microbatches = loads.len() as f64;
        let (mut bound, mut estimate) = (0.0_f64, 0.0_f64);
        for layout in &point.modules {
            let ModuleLayout { first, end, tensor, context, pipeline, data, expert, .. } = *layout;
            let key = ([first, end, tensor, context, expert], size);
            let work = self.works.entry(key).or_insert_with(|| fill::work(self.pricing, layout, loads)).clone()?;
            let share = work / f64::from(pipeline * data);
            let each = (microbatches / f64::from(layout.pipelines())).max(1.0);
            let filled = share * (1.0 + f64::from(pipeline - 1) / each);
            if point.mode == Mode::NonColocated {
                (bound, estimate) = (bound.max(share), estimate.max(filled) + share / each);
            } else {
                (bound, estimate) = (bound + share, estimate + filled);
            }
        }
        Ok(Estimate { bound, estimate })
    }
}
