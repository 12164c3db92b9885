//! Why a text is no formula.

use super::LONGEST;
use super::parser::{DEEPEST, Function, LARGEST_EXPONENT};
use crate::cost::overrides::variables::Variable;

/// Why a text is no formula; characters are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormulaError {
    /// More characters than a formula may have.
    #[error("{0} characters: at most {LONGEST} are read")]
    TooLong(usize),
    /// A character that cannot stand there.
    #[error("unexpected {found:?} at character {at}")]
    Unexpected {
        /// The character.
        found: char,
        /// Its place.
        at: usize,
    },
    /// The text ends where a value or a parenthesis is missing.
    #[error("unexpected end at character {0}")]
    Ended(usize),
    /// A name that is neither a variable nor a function.
    #[error("unknown name {name:?} at character {at}; there are {} and the functions {}", variables(), functions())]
    Unknown {
        /// The name.
        name: String,
        /// Where it begins.
        at: usize,
    },
    /// Too few or too many arguments.
    #[error("{function} at character {at} takes {}", if *two { "two numbers or more" } else { "one number" })]
    Arguments {
        /// The function.
        function: &'static str,
        /// Whether it takes at least two.
        two: bool,
        /// Where it begins.
        at: usize,
    },
    /// An exponent that is not a small whole number.
    #[error("the exponent at character {0} must be a whole number from -{LARGEST_EXPONENT} to {LARGEST_EXPONENT}")]
    Exponent(usize),
    /// A number beyond the largest that there is.
    #[error("the number at character {0} is too large")]
    Number(usize),
    /// Parentheses inside parentheses.
    #[error("more than {DEEPEST} parentheses inside each other at character {0}")]
    TooDeep(usize),
}

impl FormulaError {
    /// The place in the text, where there is one.
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
