//! Numbers, names and signs of a text, one after the other.

use super::FormulaError;

/// A text and how far it has been read.
pub(super) struct Scan {
    characters: Vec<char>,
    next: usize,
}

impl Scan {
    pub(super) fn new(text: &str) -> Self {
        Self { characters: text.chars().collect(), next: 0 }
    }

    /// The next character behind white space.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.here().is_some_and(char::is_whitespace) {
            self.next += 1;
        }
        self.here()
    }

    /// Place of the next character, counted from 1.
    pub(super) const fn place(&self) -> usize {
        self.next + 1
    }

    /// Passes over `sign` if it is next.
    pub(super) fn take(&mut self, sign: char) -> bool {
        let there = self.peek() == Some(sign);
        self.next += usize::from(there);
        there
    }

    /// Passes over `sign`, which must be next.
    pub(super) fn expect(&mut self, sign: char) -> Result<(), FormulaError> {
        if self.take(sign) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// What stands next cannot stand there.
    pub(super) fn unexpected(&mut self) -> FormulaError {
        let found = self.peek();
        let at = self.place();
        found.map_or(FormulaError::Ended(at), |found| FormulaError::Unexpected { found, at })
    }

    /// The letters, digits and underscores that come next.
    pub(super) fn name(&mut self) -> String {
        self.run_of(|character| character.is_ascii_alphanumeric() || character == '_')
    }

    /// A number without sign: digits, a point, an exponent of ten.
    pub(super) fn number(&mut self) -> Result<f64, FormulaError> {
        let at = self.place();
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
            // A point without digits.
            Err(_) => Err(self.unexpected()),
        }
    }

    fn digits(&mut self) -> String {
        self.run_of(|character| character.is_ascii_digit())
    }

    fn run_of(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let text: String = self.characters[self.next..].iter().copied().take_while(|&next| belongs(next)).collect();
        // All that belongs is ASCII: a byte for each character.
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
