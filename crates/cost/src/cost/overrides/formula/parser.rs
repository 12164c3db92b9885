//! Recursive descent parser for formulas.
//!
//! ```text
//! sum      = product { ("+" | "-") product }
//! product  = signed { ("*" | "/") signed }
//! signed   = { "-" } power
//! power    = value [ "^" [ "-" ] number ]
//! value    = number | variable | function "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use super::scan::Scan;
use super::{Binary, FormulaError, MAX, Step, Unary};
use crate::cost::overrides::variables::Variable;

/// Maximum nesting depth, to limit the recursion depth.
pub(super) const DEEPEST: usize = 64;
/// Maximum exponent. Powers are computed as products.
pub(super) const MAX_EXPONENT: u32 = 16;

/// A function in formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Single(&'static str, Unary),
    /// Accepts two or more arguments, folded from left to right.
    Many(&'static str, Binary),
}

impl Function {
    pub(super) const ALL: [Self; 6] = [
        Self::Many("min", Binary::Min),
        Self::Many("max", Binary::Max),
        Self::Single("ceil", Unary::Ceil),
        Self::Single("floor", Unary::Floor),
        Self::Single("sqrt", Unary::Sqrt),
        Self::Single("log2", Unary::Log2),
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Single(name, _) | Self::Many(name, _) => name,
        }
    }
}

struct Parser {
    scan: Scan,
    steps: Vec<Step>,
    depth: usize,
}

/// Parses a formula into stack machine steps.
pub(super) fn parse(text: &str) -> Result<Vec<Step>, FormulaError> {
    let length = text.chars().count();
    if length > MAX {
        return Err(FormulaError::TooLong(length));
    }
    let mut parser = Parser { scan: Scan::new(text), steps: Vec::new(), depth: 0 };
    parser.sum()?;
    if parser.scan.peek().is_some() { Err(parser.scan.unexpected()) } else { Ok(parser.steps) }
}

impl Parser {
    fn sum(&mut self) -> Result<(), FormulaError> {
        self.product()?;
        loop {
            let step = if self.scan.take('+') {
                Binary::Add
            } else if self.scan.take('-') {
                Binary::Subtract
            } else {
                return Ok(());
            };
            self.product()?;
            self.steps.push(Step::Binary(step));
        }
    }

    fn product(&mut self) -> Result<(), FormulaError> {
        self.signed()?;
        loop {
            let step = if self.scan.take('*') {
                Binary::Multiply
            } else if self.scan.take('/') {
                Binary::Divide
            } else {
                return Ok(());
            };
            self.signed()?;
            self.steps.push(Step::Binary(step));
        }
    }

    fn signed(&mut self) -> Result<(), FormulaError> {
        let mut negative = false;
        while self.scan.take('-') {
            negative = !negative;
        }
        self.power()?;
        if negative {
            self.steps.push(Step::Unary(Unary::Negate));
        }
        Ok(())
    }

    fn power(&mut self) -> Result<(), FormulaError> {
        self.value()?;
        if self.scan.take('^') {
            let exponent = self.exponent()?;
            self.steps.push(Step::Unary(Unary::Power(exponent)));
        }
        Ok(())
    }

    fn exponent(&mut self) -> Result<i32, FormulaError> {
        let first = self.scan.peek();
        let at = self.scan.position();
        let negative = self.scan.take('-');
        let digits = self.scan.peek().is_some_and(|next| next.is_ascii_digit());
        if !digits {
            return Err(if first.is_none() { FormulaError::Ended(at) } else { FormulaError::Exponent(at) });
        }
        let number = self.scan.number()?;
        if number.fract() != 0.0 || number > f64::from(MAX_EXPONENT) {
            return Err(FormulaError::Exponent(at));
        }
        let integer = number as i32;
        Ok(if negative { -integer } else { integer })
    }

    fn value(&mut self) -> Result<(), FormulaError> {
        match self.scan.peek() {
            Some(next) if next.is_ascii_digit() || next == '.' => {
                let number = self.scan.number()?;
                self.steps.push(Step::Number(number));
                Ok(())
            }
            Some(next) if next.is_ascii_alphabetic() || next == '_' => self.named(),
            Some('(') => {
                self.inside(Self::sum)?;
                Ok(())
            }
            _ => Err(self.scan.unexpected()),
        }
    }

    /// Parses a variable or a function call.
    fn named(&mut self) -> Result<(), FormulaError> {
        let at = self.scan.position();
        let name = self.scan.name();
        if let Some(variable) = Variable::ALL.into_iter().find(|variable| variable.name() == name) {
            self.steps.push(Step::Variable(variable));
            return Ok(());
        }
        let Some(function) = Function::ALL.into_iter().find(|function| function.name() == name) else {
            return Err(FormulaError::Unknown { name, at });
        };
        match function {
            Function::Single(function, step) => {
                let count = self.inside(|parser| parser.arguments(None))?;
                if count != 1 {
                    return Err(FormulaError::Arguments { function, two: false, at });
                }
                self.steps.push(Step::Unary(step));
            }
            Function::Many(function, step) => {
                let count = self.inside(|parser| parser.arguments(Some(step)))?;
                if count < 2 {
                    return Err(FormulaError::Arguments { function, two: true, at });
                }
            }
        }
        Ok(())
    }

    /// Parses sums separated by commas and joins them with `joined`. Returns the number of
    /// arguments.
    fn arguments(&mut self, joined: Option<Binary>) -> Result<usize, FormulaError> {
        self.sum()?;
        let mut count = 1;
        while self.scan.take(',') {
            self.sum()?;
            count += 1;
            self.steps.extend(joined.map(Step::Binary));
        }
        Ok(count)
    }

    /// Parses the contents of parentheses.
    fn inside<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, FormulaError>) -> Result<T, FormulaError> {
        self.scan.peek();
        let at = self.scan.position();
        self.scan.expect('(')?;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(FormulaError::TooDeep(at));
        }
        let value = read(self)?;
        self.depth -= 1;
        self.scan.expect(')')?;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Formula;

    #[test]
    fn errors_state_the_position() {
        let names = "there are tokens, squared, length, hidden, heads, ffn, tp, cp, flops, bytes, predicted_us and the \
                     functions min, max, ceil, floor, sqrt, log2";
        for (text, says) in [
            ("", "unexpected end at character 1".to_owned()),
            ("1 +", "unexpected end at character 4".to_owned()),
            ("(1 + 2", "unexpected end at character 7".to_owned()),
            ("3 + (2 * 4) )", "unexpected ')' at character 13".to_owned()),
            ("2 tokens", "unexpected 't' at character 3".to_owned()),
            ("1 . 5", "unexpected '.' at character 3".to_owned()),
            (".", "unexpected end at character 2".to_owned()),
            ("2 × 3", "unexpected '×' at character 3".to_owned()),
            ("* 3", "unexpected '*' at character 1".to_owned()),
            ("+3", "unexpected '+' at character 1".to_owned()),
            ("2e", "unexpected 'e' at character 2".to_owned()),
            ("min 3", "unexpected '3' at character 5".to_owned()),
            ("1 + min(3)", "min at character 5 takes two numbers or more".to_owned()),
            ("sqrt(3, 4)", "sqrt at character 1 takes one number".to_owned()),
            ("sqrt()", "unexpected ')' at character 6".to_owned()),
            ("2 * token", format!("unknown name \"token\" at character 5; {names}")),
            ("exp(1)", format!("unknown name \"exp\" at character 1; {names}")),
            ("2 ^ 2.5", "the exponent at character 5 must be a whole number from -16 to 16".to_owned()),
            ("2 ^ tp", "the exponent at character 5 must be a whole number from -16 to 16".to_owned()),
            ("2 ^ -17", "the exponent at character 5 must be a whole number from -16 to 16".to_owned()),
            ("2 ^ 3 ^ 2", "unexpected '^' at character 7".to_owned()),
            ("2 ^", "unexpected end at character 4".to_owned()),
            ("1 + 1e999", "the number at character 5 is too large".to_owned()),
            (&"(".repeat(512), "more than 64 parentheses inside each other at character 65".to_owned()),
            (&"1".repeat(513), "513 characters: at most 512 are read".to_owned()),
        ] {
            assert_eq!(Formula::parse(text).unwrap_err().to_string(), says, "{text}");
        }
    }

    #[test]
    fn as_deep_and_as_long_as_a_formula_may_be() {
        assert!(Formula::parse(&format!("{}1{}", "(".repeat(64), ")".repeat(64))).is_ok());
        assert!(Formula::parse(&format!("{}1", "1+".repeat(255))).is_ok());
        assert!(Formula::parse(&format!("{}1", "-".repeat(511))).is_ok());
    }
}
