//! Formula parse errors.

use super::MAX;
use super::parser::{DEEPEST, Function, MAX_EXPONENT};
use crate::cost::overrides::variables::Variable;

/// Formula parse error. Positions are characters, starting at 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormulaError {
    /// More characters than the limit.
    #[error("{0} characters: at most {MAX} are read")]
    TooLong(usize),
    /// Unexpected character.
    #[error("unexpected {found:?} at character {at}")]
    Unexpected {
        found: char,
        /// Position of the character.
        at: usize,
    },
    /// Unexpected end: a value or a closing parenthesis is missing.
    #[error("unexpected end at character {0}")]
    Ended(usize),
    /// Neither a variable nor a function.
    #[error("unknown name {name:?} at character {at}; there are {} and the functions {}", variables(), functions())]
    Unknown {
        name: String,
        /// Start position.
        at: usize,
    },
    /// Wrong number of arguments.
    #[error("{function} at character {at} takes {}", if *two { "two numbers or more" } else { "one number" })]
    Arguments {
        function: &'static str,
        /// True if the function requires at least two arguments.
        two: bool,
        /// Start position.
        at: usize,
    },
    /// The exponent is not a small integer.
    #[error("the exponent at character {0} must be a whole number from -{MAX_EXPONENT} to {MAX_EXPONENT}")]
    Exponent(usize),
    /// The number exceeds the range of `f64`.
    #[error("the number at character {0} is too large")]
    Number(usize),
    /// Parentheses are nested too deeply.
    #[error("more than {DEEPEST} parentheses inside each other at character {0}")]
    TooDeep(usize),
}

impl FormulaError {
    /// Returns the error position, if known.
    pub const fn position(&self) -> Option<usize> {
        match self {
            Self::TooLong(_) => None,
            Self::Unexpected { at, .. }
            | Self::Unknown { at, .. }
            | Self::Arguments { at, .. }
            | Self::Ended(at)
            | Self::Exponent(at)
            | Self::Number(at)
            | Self::TooDeep(at) => Some(*at),
        }
    }
}

fn variables() -> String {
    Variable::ALL.map(Variable::name).join(", ")
}

fn functions() -> String {
    Function::ALL.map(Function::name).join(", ")
}
