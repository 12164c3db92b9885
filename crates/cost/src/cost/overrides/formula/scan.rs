//! Scanner for numbers, names and signs.

use super::FormulaError;

/// A text with the current read position.
pub(super) struct Scan {
    characters: Vec<char>,
    next: usize,
}

impl Scan {
    pub(super) fn new(text: &str) -> Self {
        Self { characters: text.chars().collect(), next: 0 }
    }

    /// Skips white space and returns the next character.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.here().is_some_and(char::is_whitespace) {
            self.next += 1;
        }
        self.here()
    }

    /// Position of the next character, starting at 1.
    pub(super) const fn position(&self) -> usize {
        self.next + 1
    }

    /// Consumes `sign` and returns true if it is next.
    pub(super) fn take(&mut self, sign: char) -> bool {
        let there = self.peek() == Some(sign);
        self.next += usize::from(there);
        there
    }

    /// Consumes `sign`, or returns an error if it is not next.
    pub(super) fn expect(&mut self, sign: char) -> Result<(), FormulaError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Returns the error for an unexpected character or end.
    pub(super) fn unexpected(&mut self) -> FormulaError {
        let found = self.peek();
        let at = self.position();
        found.map_or(FormulaError::Ended(at), |found| FormulaError::Unexpected { found, at })
    }

    /// Consumes letters, digits and underscores.
    pub(super) fn name(&mut self) -> String {
        self.take_while(|character| character.is_ascii_alphanumeric() || character == '_')
    }

    /// Consumes an unsigned number: digits, decimal point, decimal exponent.
    pub(super) fn number(&mut self) -> Result<f64, FormulaError> {
        let at = self.position();
        let mut text = self.digits();
        if self.here() == Some('.') {
            self.next += 1;
            text.push('.');
            text.push_str(&self.digits());
        }
        if self.here().is_some_and(|character| matches!(character, 'e' | 'E')) {
            let signed = self.ahead(1).is_some_and(|character| matches!(character, '+' | '-'));
            if self.ahead(1 + usize::from(signed)).is_some_and(|character| character.is_ascii_digit()) {
                text.push('e');
                text.extend(self.ahead(1).filter(|_| signed));
                self.next += 1 + usize::from(signed);
                text.push_str(&self.digits());
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            Ok(_) => Err(FormulaError::Number(at)),
            // A decimal point without digits.
            Err(_) => Err(self.unexpected()),
        }
    }

    fn digits(&mut self) -> String {
        self.take_while(|character| character.is_ascii_digit())
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let text: String = self.characters[self.next..].iter().copied().take_while(|&next| belongs(next)).collect();
        // The number is ASCII, so bytes equal characters.
        self.next += text.len();
        text
    }

    fn here(&self) -> Option<char> {
        self.ahead(0)
    }

    fn ahead(&self, by: usize) -> Option<char> {
        self.characters.get(self.next + by).copied()
    }
}
