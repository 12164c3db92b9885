//! Interprets commas in tables with semicolon separators: `754,000` is 754000 in English and 754 in
//! large parts of Europe.

use super::number::is_grouped;

/// Evidence about the comma notation of a column.
#[derive(Debug, Default)]
pub(super) struct Commas {
    /// First number with a comma before three digits.
    grouped: Option<String>,
    /// True if the column has an integer with at most three digits.
    has_small: bool,
    /// True if the column has an integer with more than three digits.
    has_large: bool,
    /// True if a number has only one interpretation, such as `1261,5`.
    is_decided: bool,
}

impl Commas {
    /// Adds a cell to the evidence.
    pub(super) fn see(&mut self, cell: &str) {
        let digits = cell.trim().trim_start_matches(['-', '+']);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.'));
        if digits.is_empty() || digits.len() > 40 || !is_number {
            return;
        }
        match (digits.matches(',').count(), digits.contains('.')) {
            (0, false) if digits.len() <= 3 => self.has_small = true,
            (0, false) => self.has_large = true,
            (0, true) => {}
            (1, false) if is_grouped(digits, ',') => {
                self.grouped.get_or_insert_with(|| cell.trim().to_owned());
            }
            _ => self.is_decided = true,
        }
    }

    /// Returns an ambiguous number if no other number of the column resolves it. If all other
    /// numbers are integers below 1000, a comma separates thousands.
    pub(super) fn ambiguous(&self) -> Option<&str> {
        let are_thousands = self.has_small && !self.has_large;
        self.grouped.as_deref().filter(|_| !self.is_decided && !are_thousands)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_decides_or_has_two_readings() {
        for (cells, expected) in [
            (&["754,000", "512,000"][..], Some("754,000")),
            (&["754,125", "2048"], Some("754,125")),
            (&["754,000", "1261,500"], None),
            (&["754,000", "1,234,567"], None),
            (&["1.754,000", "754,000"], None),
            (&["1,234", "512", "77"], None),
            (&["512", "1024"], None),
            (&["a,b", ""], None),
        ] {
            let mut commas = Commas::default();
            for cell in cells {
                commas.see(cell);
            }
            assert_eq!(commas.ambiguous(), expected, "{cells:?}");
        }
    }
}
