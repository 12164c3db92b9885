//! Number notation of a table: separators for thousands and decimals.

use std::borrow::Cow;

/// Number notation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// Decimal point, with commas between thousands.
    Points,
    /// Decimal comma, with points between thousands.
    Commas,
}

impl Notation {
    /// Detects the notation from cells. Returns a note if the result is ambiguous. Commas can be decimal if a semicolon
    /// separates the cells, as spreadsheets with decimal commas write it.
    pub(super) fn detect<'a>(cells: impl Iterator<Item = &'a str>, delimiter: u8) -> (Self, Option<String>) {
        let mut grouped = None;
        let (mut has_point, mut has_comma) = (false, false);
        for cell in cells.map(str::trim).filter(|cell| is_number(cell)) {
            let (commas, points) = (cell.matches(',').count(), cell.matches('.').count());
            let last_is_comma = cell.rfind(',') > cell.rfind('.');
            match (commas, points) {
                (0, 0) => {}
                (0, 1) => has_point |= !is_grouped(cell, '.'),
                (1, _) if last_is_comma && (points > 0 || !is_grouped(cell, ',')) => has_comma = true,
                (1, 0) if delimiter == b';' => (has_comma, grouped) = (true, grouped.or(Some(cell))),
                (_, _) if commas > 0 && is_grouped(cell.split('.').next().unwrap_or(cell), ',') => {
                    has_point |= points > 0 || commas > 1;
                    grouped = grouped.or(Some(cell));
                }
                _ => {}
            }
        }
        if has_comma && !has_point {
            return (Self::Commas, Some("the table has decimal commas; points separate thousands".to_owned()));
        }
        let note = grouped.map(|cell| format!("commas in numbers such as {cell} separate thousands"));
        (Self::Points, note)
    }

    /// Converts a cell to a decimal point without thousands separators. Other text is unchanged.
    pub(super) fn plain(self, cell: &str) -> Cow<'_, str> {
        let cell = cell.trim();
        if !is_number(cell) {
            return Cow::Borrowed(cell);
        }
        match self {
            Self::Points if is_grouped(cell.split('.').next().unwrap_or(cell), ',') => {
                Cow::Owned(cell.replace(',', ""))
            }
            Self::Points => Cow::Borrowed(cell),
            Self::Commas => Cow::Owned(cell.replace('.', "").replace(',', ".")),
        }
    }
}

fn is_number(cell: &str) -> bool {
    cell.bytes().any(|byte| byte.is_ascii_digit())
        && cell.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'-' | b'+' | b'e' | b'E'))
}

/// True if separators occur only between groups of three digits.
fn is_grouped(cell: &str, separator: char) -> bool {
    let mut groups = cell.trim_start_matches(['-', '+']).split(separator);
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let is_first =
        groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && is_digits(first) && first != "0");
    let rest: Vec<&str> = groups.collect();
    is_first && !rest.is_empty() && rest.iter().all(|group| group.len() == 3 && is_digits(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_decide() {
        for (cells, notation, from, to) in [
            (&["1,100", "9.50"][..], Notation::Points, "12,345", "12345"),
            (&["1.100", "9,50"][..], Notation::Commas, "12.345", "12345"),
            (&["1.100", "9,50"][..], Notation::Commas, "9,50", "9.50"),
            (&["10", "2.5e-5"][..], Notation::Points, "2.5e-5", "2.5e-5"),
            (&["1.234,5"][..], Notation::Commas, "1.234,5", "1234.5"),
        ] {
            assert_eq!(Notation::detect(cells.iter().copied(), b',').0, notation, "{cells:?}");
            assert_eq!(notation.plain(from), to);
        }
        // Three decimals look like thousands. A semicolon between the cells decides.
        for (cells, delimiter, notation) in [
            (&["1,501", "2,512"][..], b';', Notation::Commas),
            (&["1,501", "2,512"][..], b'\t', Notation::Points),
            (&["1,501", "2.5"][..], b';', Notation::Points),
            (&["1,234,567"][..], b';', Notation::Points),
        ] {
            assert_eq!(Notation::detect(cells.iter().copied(), delimiter).0, notation, "{cells:?}");
        }
    }
}
