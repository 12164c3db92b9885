//! Access to the cells of a row by column, and rejection reasons.

use csv::StringRecord;

use super::column::{Column, Holds, position};
use super::heading::Heading;
use super::suggestion::did_you_mean;

/// Reason why a row is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{column}: {says}")]
pub struct Rejection {
    /// Column that causes the rejection.
    pub column: &'static str,
    /// The invalid value and the reason.
    pub says: String,
}

/// Rejects a row because of the value in `column`.
pub(super) fn refuse<T>(column: Column, says: impl Into<String>) -> Result<T, Rejection> {
    Err(Rejection { column: column.name, says: says.into() })
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Cells<'t> {
    /// Known column at each cell position.
    pub(super) columns: &'t [Option<Heading>],
    pub(super) record: &'t StringRecord,
}

impl<'t> Cells<'t> {
    /// Returns the cell text; `None` if the column is missing or the cell is empty.
    pub(super) fn text(self, column: Column) -> Option<&'t str> {
        self.stated(column).next().map(|(text, _)| text)
    }

    /// Returns the texts of all cells of a column that are not empty, with their headings. The exact name is first.
    pub(super) fn stated(self, column: Column) -> impl Iterator<Item = (&'t str, Heading)> {
        let named = move |is_copy: bool| {
            let at = move |(index, heading): (usize, &Option<Heading>)| {
                let heading = heading.filter(|heading| heading.column == column.name && heading.is_copy == is_copy)?;
                let text = self.record.get(index).map(str::trim).filter(|cell| !cell.is_empty())?;
                Some((text, heading))
            };
            self.columns.iter().enumerate().filter_map(at)
        };
        named(false).chain(named(true))
    }

    /// Returns the factor from the unit in the header to the unit of the column.
    fn factor(self, column: Column) -> f64 {
        self.stated(column).next().map_or(1.0, |(_, heading)| heading.factor)
    }

    /// Parses an integer in the column's range. Zero decimals (`8.0`) are accepted because data
    /// frames write them, and commas between groups of three digits because spreadsheets do.
    pub(super) fn integer(self, column: Column) -> Result<Option<u32>, Rejection> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let number = parse(text).filter(|number| number.fract() == 0.0);
        let Some(number) = number else { return refuse(column, format!("{} is not a whole number", quoted(text))) };
        if text.contains('.') && text.rsplit('.').next().is_some_and(|group| group.len() == 3) {
            let plain = text.replace('.', "");
            return refuse(column, format!("{} is {number} or {plain}; write it without a point", quoted(text)));
        }
        let (min, max) = if let Holds::Integer(min, max) = column.holds { (min, max) } else { (0, u32::MAX) };
        if number < f64::from(min) || number > f64::from(max) {
            return refuse(column, format!("{} is not in {min} to {max}", clipped(text)));
        }
        Ok(Some(number as u32))
    }

    /// Parses a number in the column's range.
    pub(super) fn number(self, column: Column) -> Result<Option<f64>, Rejection> {
        let Some(text) = self.text(column) else { return Ok(None) };
        let Some(number) = parse(text).map(|number| number * self.factor(column)) else {
            return refuse(column, format!("{} is not a number", quoted(text)));
        };
        if text.contains(',') {
            let (point, plain) = (text.replace(',', "."), text.replace(',', ""));
            return refuse(column, format!("{} is {point} or {plain}; write it without a comma", quoted(text)));
        }
        match column.holds {
            Holds::Number(min, max) if number < min || number > max => {
                refuse(column, format!("{} is not in {min} to {max}", clipped(text)))
            }
            _ => Ok(Some(number)),
        }
    }

    pub(super) fn flag(self, column: Column) -> Result<Option<bool>, Rejection> {
        let Some(text) = self.text(column) else { return Ok(None) };
        match truth(text) {
            None => refuse(column, format!("{} is neither true nor false", quoted(text))),
            truth => Ok(truth),
        }
    }

    /// Returns the index in the column's word list; 0 if the cell is empty.
    pub(super) fn word(self, column: Column) -> Result<usize, Rejection> {
        let Some(text) = self.text(column) else { return Ok(0) };
        let terms = if let Holds::Word(terms) = column.holds { terms } else { &[] };
        position(terms, text).map_or_else(
            || {
                let meant = did_you_mean(text, terms.iter().copied());
                refuse(column, format!("{} is none of {}{meant}", quoted(text), terms.join(", ")))
            },
            Ok,
        )
    }
}

/// Returns the value of a cell that is true or false.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "yes" | "on" | "1" | "1.0" => Some(true),
        "false" | "no" | "off" | "0" | "0.0" => Some(false),
        _ => None,
    }
}

/// Parses a number, also with commas between groups of three digits: `131,072`.
pub(super) fn parse(text: &str) -> Option<f64> {
    let mut groups = text.split(',');
    let has_groups = text.contains(',')
        && groups.next().is_some_and(|first| (1..4).contains(&first.len()))
        && text.split(',').all(|group| group.bytes().all(|byte| byte.is_ascii_digit()))
        && groups.all(|group| group.len() == 3);
    let number = if has_groups { text.replace(',', "").parse::<f64>() } else { text.parse::<f64>() };
    number.ok().filter(|number| number.is_finite())
}

/// Quotes a cell for messages, shortened and on a single line.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", clipped(text))
}

fn clipped(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut excerpt: String = text.chars().take(MAX_CHARS).collect();
    if text.chars().nth(MAX_CHARS).is_some() {
        excerpt.push_str("...");
    }
    excerpt
}
