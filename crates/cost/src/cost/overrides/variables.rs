//! Variables in formulas.

use crate::cost::graph::{Operator, Shape};
use crate::cost::kernel::Kernel;
use planscope_core::units::Seconds;

/// A variable name in formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Tokens per device after the context-parallel split, n.
    Tokens,
    /// Sum of query length x key length per device.
    Squared,
    /// Mean sequence length, weighted by tokens.
    Length,
    /// Residual stream width, h.
    Hidden,
    /// Query heads in the full module, a.
    Heads,
    /// MLP width in the full module, f.
    Ffn,
    /// Tensor-parallel degree.
    Tp,
    /// Context-parallel degree.
    Cp,
    /// Operations per device.
    Flops,
    /// Bytes moved: per device for a memory-bound kernel, the full vector for a collective.
    Bytes,
    /// Predicted time in microseconds.
    PredictedUs,
}

impl Variable {
    /// All variables, in the order used in messages.
    pub const ALL: [Self; 11] = [
        Self::Tokens,
        Self::Squared,
        Self::Length,
        Self::Hidden,
        Self::Heads,
        Self::Ffn,
        Self::Tp,
        Self::Cp,
        Self::Flops,
        Self::Bytes,
        Self::PredictedUs,
    ];

    /// Returns the name in formulas.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Squared => "squared",
            Self::Length => "length",
            Self::Hidden => "hidden",
            Self::Heads => "heads",
            Self::Ffn => "ffn",
            Self::Tp => "tp",
            Self::Cp => "cp",
            Self::Flops => "flops",
            Self::Bytes => "bytes",
            Self::PredictedUs => "predicted_us",
        }
    }
}

/// An operator, or an operator sequence, with its predicted time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Priced {
    /// Predicted time.
    pub predicted: Seconds,
    /// Operations; 0 for memory-bound kernels and collectives.
    pub flops: f64,
    /// Bytes moved; 0 for products, attention and full layers.
    pub bytes: f64,
}

impl Priced {
    /// Describes one operator.
    pub fn from_operator(operator: &Operator, predicted: Seconds) -> Self {
        let (flops, bytes) = match operator.kernel {
            Kernel::MatMul(product) => (product.flops(), 0.0),
            Kernel::Attention(attention) => (attention.flops(), 0.0),
            Kernel::Streaming(stream) => (0.0, stream.bytes),
            Kernel::Collective(collective) => (0.0, collective.bytes),
        };
        Self { predicted, flops, bytes }
    }

    /// Sums the operators in a layer.
    pub fn sum(operators: impl Iterator<Item = (Operator, Seconds)>) -> Self {
        let nothing = Self { predicted: Seconds::ZERO, flops: 0.0, bytes: 0.0 };
        operators.fold(nothing, |sum, (operator, time)| Self {
            predicted: sum.predicted + time,
            flops: sum.flops + Self::from_operator(&operator, time).flops,
            bytes: 0.0,
        })
    }
}

/// Values of all variables for one evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variables([f64; Variable::ALL.len()]);

impl Variables {
    /// Computes the values for a shape and an operator (or layer).
    pub fn new(shape: &Shape<'_>, priced: Priced) -> Self {
        let module = shape.module;
        Self(Variable::ALL.map(|variable| match variable {
            Variable::Tokens => shape.n,
            Variable::Squared => shape.squared,
            Variable::Length => shape.length,
            Variable::Hidden => f64::from(module.hidden),
            Variable::Heads => f64::from(module.heads),
            Variable::Ffn => f64::from(module.ffn),
            Variable::Tp => shape.t,
            Variable::Cp => shape.c,
            Variable::Flops => priced.flops,
            Variable::Bytes => priced.bytes,
            Variable::PredictedUs => priced.predicted.secs() * 1e6,
        }))
    }

    /// Returns the value of `variable`.
    pub const fn get(&self, variable: Variable) -> f64 {
        self.0[variable as usize]
    }
}
