//! Commas in the numbers of a table whose cells are separated by semicolons: `754,000` is 754000 in English and 754 in most of Europe.

use super::number::is_grouped;

/// What the numbers of a column show so far.
#[derive(Debug, Default)]
pub(super) struct Commas {
    /// The first number with a comma in front of three digits.
    grouped: Option<String>,
    /// A whole number of at most three digits.
    has_small: bool,
    /// A whole number of more digits.
    has_large: bool,
    /// A number that has one reading, such as `1261,5`.
    is_decided: bool,
}

impl Commas {
    /// Takes a cell.
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

    /// A number with two readings, if no other number of the column decides. Beside whole numbers below 1000 only, a comma separates thousands.
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
