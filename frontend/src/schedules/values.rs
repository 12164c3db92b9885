//! Values that differ by stage and microbatch, as typed or pasted text.

use serde_json::{Value, json};

use crate::pointer;

/// Variation of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Spread {
    /// Same value everywhere.
    #[default]
    Equal,
    /// One value per stage or rank.
    Stages,
    /// One value list per microbatch.
    Microbatches,
}

impl Spread {
    /// Detects the variation of a value.
    pub(crate) fn from_value(value: &Value) -> Self {
        match value {
            Value::Array(list) if list.iter().any(Value::is_array) => Self::Microbatches,
            Value::Array(_) => Self::Stages,
            _ => Self::Equal,
        }
    }

    /// Identifier in select elements.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Stages => "stages",
            Self::Microbatches => "microbatches",
        }
    }

    /// Parses an identifier.
    pub(crate) fn from_id(id: &str) -> Self {
        [Self::Stages, Self::Microbatches].into_iter().find(|spread| spread.id() == id).unwrap_or_default()
    }
}

/// Parses a list. Numbers are separated by commas, semicolons or spaces. In a spreadsheet line with
/// tabs, a comma may be the decimal separator.
pub(crate) fn parse_list(text: &str) -> Result<Value, String> {
    let from_spreadsheet = text.contains('\t');
    let ends = |letter: char| {
        if from_spreadsheet { letter == '\t' } else { letter == ',' || letter == ';' || letter.is_whitespace() }
    };
    let terms = text.trim().split(ends).map(str::trim).filter(|word| !word.is_empty());
    let number = |word: &str| {
        let text = if from_spreadsheet { word.replace(',', ".") } else { word.to_owned() };
        pointer::parse_number(&text).ok_or_else(|| format!("{word:?} is not a number"))
    };
    let list: Vec<Value> = terms.map(number).collect::<Result<_, _>>()?;
    if list.is_empty() { Err("a number is needed here".to_owned()) } else { Ok(Value::Array(list)) }
}

/// Parses a list per line, for each microbatch.
pub(crate) fn parse_lists(text: &str) -> Result<Value, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let lists: Vec<Value> = lines
        .map(|(index, line)| parse_list(line).map_err(|error| format!("line {}: {error}", index + 1)))
        .collect::<Result<_, _>>()?;
    if lists.is_empty() { Err("a number is needed here".to_owned()) } else { Ok(Value::Array(lists)) }
}

/// Formats a value for an input field.
pub(crate) fn write(value: &Value) -> String {
    joined(value, ", ", "\n")
}

/// Formats a value with custom separators.
pub(super) fn joined(value: &Value, between: &str, rows: &str) -> String {
    match value {
        Value::Array(list) => {
            let separator = if Spread::from_value(value) == Spread::Microbatches { rows } else { between };
            list.iter().map(|item| joined(item, between, rows)).collect::<Vec<_>>().join(separator)
        }
        number => pointer::write_number(number),
    }
}

/// Converts a value to another variation. Expansion repeats values; reduction takes the first.
pub(crate) fn spread(value: &Value, to: Spread, ranks: usize, microbatches: usize) -> Value {
    let first = |value: &Value| value.get(0).cloned().unwrap_or_else(|| json!(1));
    match (Spread::from_value(value), to) {
        (Spread::Equal, Spread::Stages) => Value::Array(vec![value.clone(); ranks]),
        (Spread::Equal, Spread::Microbatches) => Value::Array(vec![json!([value]); microbatches]),
        (Spread::Stages, Spread::Equal) | (Spread::Microbatches, Spread::Stages) => first(value),
        (Spread::Stages, Spread::Microbatches) => Value::Array(vec![value.clone(); microbatches]),
        (Spread::Microbatches, Spread::Equal) => first(&first(value)),
        _ => value.clone(),
    }
}

/// Returns a list per microbatch. Additional microbatches repeat the lists from the beginning.
pub(crate) fn for_microbatches(value: &Value, microbatches: usize) -> Value {
    match value {
        Value::Array(lists) if Spread::from_value(value) == Spread::Microbatches => {
            Value::Array(lists.iter().cycle().take(microbatches).cloned().collect())
        }
        _ => value.clone(),
    }
}

/// Adapts a list with a value per rank to a new rank count. Additional ranks repeat the last value.
pub(crate) fn for_ranks(value: &Value, before: usize, ranks: usize) -> Value {
    match value {
        Value::Array(lists) if Spread::from_value(value) == Spread::Microbatches => {
            Value::Array(lists.iter().map(|list| for_ranks(list, before, ranks)).collect())
        }
        Value::Array(list) if list.len() == before && before > 1 => {
            let last = list.last().cloned().unwrap_or_default();
            Value::Array(list.iter().cloned().chain(std::iter::repeat(last)).take(ranks).collect())
        }
        _ => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_are_typed_or_pasted() {
        assert_eq!(parse_list("1, 2;3  4.5"), Ok(json!([1, 2, 3, 4.5])));
        assert_eq!(parse_list("1,5\t2\t"), Ok(json!([1.5, 2])), "a spreadsheet with decimal commas");
        assert_eq!(parse_list("1, x"), Err("\"x\" is not a number".to_owned()));
        assert_eq!(parse_list("  "), Err("a number is needed here".to_owned()));
        assert_eq!(parse_lists("1 2\n\n3 4\n"), Ok(json!([[1, 2], [3, 4]])));
        assert_eq!(parse_lists("1\ny"), Err("line 2: \"y\" is not a number".to_owned()));
    }

    #[test]
    fn written_values_round_trip() {
        let list = json!([1, 2.5]);
        assert_eq!(parse_list(&write(&list)), Ok(list));
        let lists = json!([[1, 2], [3, 4]]);
        assert_eq!(write(&lists), "1, 2\n3, 4");
        assert_eq!(parse_lists(&write(&lists)), Ok(lists));
    }

    #[test]
    fn spread_change_preserves_values() {
        assert_eq!(spread(&json!(2), Spread::Stages, 3, 2), json!([2, 2, 2]));
        assert_eq!(spread(&json!(2), Spread::Microbatches, 3, 2), json!([[2], [2]]));
        assert_eq!(spread(&json!([1, 2]), Spread::Microbatches, 2, 2), json!([[1, 2], [1, 2]]));
        assert_eq!(spread(&json!([[1, 2], [3, 4]]), Spread::Stages, 2, 2), json!([1, 2]));
        assert_eq!(spread(&json!([[1, 2], [3, 4]]), Spread::Equal, 2, 2), json!(1));
    }

    #[test]
    fn values_follow_the_sizes() {
        assert_eq!(for_microbatches(&json!([[1], [2]]), 3), json!([[1], [2], [1]]));
        assert_eq!(for_microbatches(&json!([1, 2]), 3), json!([1, 2]));
        assert_eq!(for_ranks(&json!([1, 2]), 2, 3), json!([1, 2, 2]));
        assert_eq!(for_ranks(&json!([[1, 2], [3, 4]]), 2, 1), json!([[1], [3]]));
        assert_eq!(for_ranks(&json!([1, 2, 3, 4]), 2, 3), json!([1, 2, 3, 4]), "values of stages stay");
        assert_eq!(for_ranks(&json!([[1], [2]]), 2, 3), json!([[1], [2]]));
    }
}
