//! Time formulas: numbers, variables, `+ - * / ^`, parentheses and some functions.
//!
//! A formula is parsed once into stack machine steps, which run for every operator and load.
//! Results are bit-identical on all platforms: powers are computed as products, and the only math
//! library function is from libm.

mod error;
mod parser;
mod scan;

pub use error::FormulaError;

use super::variables::{Variable, Variables};

/// Maximum formula length in characters.
const MAX: usize = 512;

/// A parsed formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Formula(Vec<Step>);

/// A stack machine step.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    /// Pushes a number.
    Number(f64),
    /// Pushes the value of a variable.
    Variable(Variable),
    /// Replaces the top with a function value.
    Unary(Unary),
    /// Replaces the top two values with a function value.
    Binary(Binary),
}

/// A function with one argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unary {
    Negate,
    /// Power with an integer exponent.
    Power(i32),
    Ceil,
    Floor,
    Sqrt,
    Log2,
}

/// A function with two arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Min,
    Max,
}

impl Unary {
    fn apply(self, x: f64) -> f64 {
        match self {
            Self::Negate => -x,
            Self::Power(exponent) => {
                let product = (0..exponent.unsigned_abs()).fold(1.0, |product, _| product * x);
                if exponent < 0 { 1.0 / product } else { product }
            }
            Self::Ceil => x.ceil(),
            Self::Floor => x.floor(),
            Self::Sqrt => x.sqrt(),
            Self::Log2 => libm::log2(x),
        }
    }
}

impl Binary {
    /// Propagates NaN in minimum and maximum, so that callers detect it.
    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::Divide => a / b,
            Self::Min if b < a || b.is_nan() => b,
            Self::Max if b > a || b.is_nan() => b,
            Self::Min | Self::Max => a,
        }
    }
}

impl Formula {
    /// Parses a formula.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        parser::parse(text).map(Self)
    }

    /// Evaluates the formula. Undefined results, for example a division by zero, are not finite.
    pub fn evaluate(&self, variables: &Variables) -> f64 {
        let mut stack: Vec<f64> = Vec::with_capacity(16);
        for &step in &self.0 {
            let value = match step {
                Step::Number(number) => Some(number),
                Step::Variable(variable) => Some(variables.get(variable)),
                Step::Unary(function) => stack.pop().map(|x| function.apply(x)),
                Step::Binary(function) => {
                    let (b, a) = (stack.pop(), stack.pop());
                    a.zip(b).map(|(a, b)| function.apply(a, b))
                }
            };
            // The parser guarantees operands for all steps.
            stack.push(value.unwrap_or(f64::NAN));
        }
        stack.pop().unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::graph::Shape;
    use crate::cost::load::ModuleLoad;
    use crate::cost::overrides::Priced;
    use planscope_core::model::presets::model;
    use planscope_core::training::Training;
    use planscope_core::units::Seconds;

    /// GPT-3 175B (h = 12288, a = 96, f = 49152), t = 8, two sequences with 2048 tokens.
    fn value(text: &str) -> f64 {
        let module = &model("gpt-3-175b").unwrap().modules[0];
        let (tokens, squared) = (4096.0, 2.0 * 2048.0 * 2048.0);
        let load = ModuleLoad::unpadded(tokens, squared);
        let training = Training::default();
        let priced = Priced { predicted: Seconds::from_secs(0.5), flops: 7.0, bytes: 5.0 };
        Formula::parse(text).unwrap().evaluate(&Variables::new(&Shape::new(module, &training, 8.0, load), priced))
    }

    #[test]
    fn formulas_have_the_value_that_mathematics_gives_them() {
        for (text, expected) in [
            ("1", 1.0),
            (" 2.5 ", 2.5),
            (".5", 0.5),
            ("3e-6", 3e-6),
            ("3E2", 300.0),
            ("1 + 2 * 3", 7.0),
            ("(1 + 2) * 3", 9.0),
            ("10 - 4 - 3", 3.0),
            ("16 / 4 / 2", 2.0),
            ("2 * 3 ^ 2", 18.0),
            ("-2 ^ 2", -4.0),
            ("(-2) ^ 2", 4.0),
            ("2 ^ -2", 0.25),
            ("5 ^ 0", 1.0),
            ("2 * -3", -6.0),
            ("1 - --1", 0.0),
            ("min(3, 1, 2)", 1.0),
            ("max(3, 1 + 4)", 5.0),
            ("ceil(1.2) + floor(1.8)", 3.0),
            ("sqrt(16) + log2(8)", 7.0),
            ("tokens", 4096.0),
            ("squared / tokens - length", 0.0),
            ("hidden + heads + ffn", 61_536.0),
            ("tp + cp", 9.0),
            ("flops - bytes", 2.0),
            ("predicted_us", 500_000.0),
            ("3.1 + 0.012*tokens + 2e-9*squared", 3.1 + 0.012 * 4096.0 + 2e-9 * 8_388_608.0),
        ] {
            let value = value(text);
            assert!((value - expected).abs() <= 1e-12 * expected.abs(), "{text} is {value}");
        }
    }

    #[test]
    fn undefined_values_are_not_finite() {
        for text in ["1 / 0", "sqrt(-1)", "log2(0)", "min(0 / 0, 1)", "max(1, 0 / 0)", "1e300 * 1e300"] {
            assert!(!value(text).is_finite(), "{text}");
        }
    }

    proptest! {
        /// Any text is parsed, or rejected with a position inside the text. A parsed formula
        /// evaluates without a panic.
        #[test]
        fn no_text_is_too_much(text in r"([-+*/^(),. 0-9eé]|tokens|min|log2|sqrt|squared){0,200}") {
            match Formula::parse(&text) {
                Ok(_) => { value(&text); }
                Err(error) => if let Some(at) = error.position() {
                    prop_assert!((1..=text.chars().count() + 1).contains(&at), "{error}");
                }
            }
        }

        /// Sums of products are equal with all possible parentheses and with none that are
        /// redundant.
        #[test]
        fn products_bind_closer_than_sums(a in 0_u32..99, b in 0_u32..99, c in 0_u32..99, d in 0_u32..99) {
            let [few, many] = [format!("{a}+{b}*{c}-{d}"), format!("(({a}+({b}*{c}))-{d})")].map(|text| value(&text));
            prop_assert_eq!(few.to_bits(), many.to_bits());
        }
    }
}
