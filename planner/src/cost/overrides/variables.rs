//! What a formula may speak of.

use crate::cost::graph::{Operator, Shape};
use crate::cost::kernel::Kernel;
use crate::units::Seconds;

/// A name that a formula may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variable {
    /// Tokens that each device of the context-parallel group computes, n.
    Tokens,
    /// Sum of query length x key length on each of them.
    Squared,
    /// Length of a sequence, weighted by tokens.
    Length,
    /// Width of the residual stream, h.
    Hidden,
    /// Query heads of the whole module, a.
    Heads,
    /// Width inside the MLP of the whole module, f.
    Ffn,
    /// Tensor-parallel degree.
    Tp,
    /// Context-parallel degree.
    Cp,
    /// Operations on each device.
    Flops,
    /// Bytes that are moved: by a kernel limited by memory on each device, by a collective in all.
    Bytes,
    /// What the model predicts, in microseconds.
    PredictedUs,
}

impl Variable {
    /// Every variable, in the order in which messages list them.
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

    /// Its name in formulas.
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

/// What is priced: an operator, or operators together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Priced {
    /// What the model predicts.
    pub predicted: Seconds,
    /// Operations; 0 where there are none to speak of.
    pub flops: f64,
    /// Bytes moved; 0 for products and attention, whose time operations decide, and for whole layers.
    pub bytes: f64,
}

impl Priced {
    /// An operator.
    pub fn of(operator: &Operator, predicted: Seconds) -> Self {
        let (flops, bytes) = match operator.kernel {
            Kernel::MatMul(product) => (product.flops(), 0.0),
            Kernel::Attention(attention) => (attention.flops(), 0.0),
            Kernel::Streaming(stream) => (0.0, stream.bytes),
            Kernel::Collective(collective) => (0.0, collective.bytes),
        };
        Self { predicted, flops, bytes }
    }

    /// Operators after each other, as a whole layer runs them.
    pub fn sum(operators: impl Iterator<Item = (Operator, Seconds)>) -> Self {
        let nothing = Self { predicted: Seconds::ZERO, flops: 0.0, bytes: 0.0 };
        operators.fold(nothing, |sum, (operator, time)| Self {
            predicted: sum.predicted + time,
            flops: sum.flops + Self::of(&operator, time).flops,
            bytes: 0.0,
        })
    }
}

/// The value of every variable at one evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variables([f64; Variable::ALL.len()]);

impl Variables {
    /// At a shape, for what is priced.
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

    /// The value of one.
    pub const fn get(&self, variable: Variable) -> f64 {
        self.0[variable as usize]
    }
}
