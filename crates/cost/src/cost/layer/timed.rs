//! Operators of a microbatch with their predicted times, for comparison with measured kernels.

use super::{Backward, LayerModel};
use crate::cost::graph::{self, Operator, OperatorGraph, Repeat, Shape};
use crate::cost::load::ModuleLoad;
use planscope_core::model::LayerKind;
use planscope_core::units::Seconds;

/// An operator with its predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedOperator {
    /// The operator.
    pub operator: Operator,
    /// Time of one run. For a collective, the time without concurrent computation.
    pub time: Seconds,
    /// Runs per microbatch: 1, and the share that recomputation repeats.
    pub runs: f64,
}

impl LayerModel<'_> {
    /// Returns the operators of a layer of kind `kind`. Without `is_recomputed`, nothing is repeated.
    pub fn timed_layer(&self, kind: LayerKind, load: ModuleLoad, is_recomputed: bool) -> Vec<TimedOperator> {
        let repeat = if is_recomputed { self.repeat(self.training.recompute) } else { Repeat::Nothing };
        self.timed((kind, load), (repeat, self.layer_backward()), graph::layer)
    }

    /// Returns the operators of the input block.
    pub fn timed_input(&self, load: ModuleLoad) -> Vec<TimedOperator> {
        self.timed((self.module.main_kind(), load), (Repeat::Nothing, self.input_backward()), graph::input)
    }

    /// Returns the operators of the output block, with the loss and without multi-token prediction.
    pub fn timed_output(&self, load: ModuleLoad) -> Vec<TimedOperator> {
        self.timed((self.module.last_kind(), load), (Repeat::Nothing, self.output_backward()), graph::output)
    }

    fn timed(
        &self,
        (kind, load): (LayerKind, ModuleLoad),
        (repeat, backward): (Repeat, Backward),
        build: fn(&Shape<'_>) -> OperatorGraph,
    ) -> Vec<TimedOperator> {
        if load.tokens <= 0.0 {
            return Vec::new();
        }
        let shape = Shape::of_kind(self.module, kind, (self.training, self.t), load);
        let graph = build(&shape);
        let repeat = if backward == Backward::NONE { Repeat::Nothing } else { repeat };
        let running = graph.operators.iter().enumerate().filter(|(_, operator)| backward.runs(operator));
        let timed = running.map(|(index, &operator)| TimedOperator {
            operator,
            time: self.overrides.operator(&shape, &operator, self.predicted(&operator)),
            runs: 1.0 + graph.repeated_share(index, repeat),
        });
        timed.collect()
    }
}
