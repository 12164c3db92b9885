//! Stated cells that have no effect in their row.

use std::fmt::Write;

use super::cells::{Cells, parse, truth};
use super::column::{COLUMNS, Column, Facts, Holds, Reason, position};

/// A column that a row states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedColumn {
    /// Name of the column.
    pub column: &'static str,
    /// Reason why the value has no effect in the row. `None` if it has one.
    pub without_effect: Reason,
    /// The value is the default of the column, or the value that switches the setting off.
    pub is_neutral: bool,
}

/// Returns the columns that a row states, in the order of [`COLUMNS`].
pub(super) fn stated(cells: Cells<'_>, facts: &Facts<'_>) -> Vec<StatedColumn> {
    let stated = COLUMNS.into_iter().filter_map(|column| Some((column, cells.text(column)?)));
    let entry = |(column, text): (Column, &str)| StatedColumn {
        column: column.name,
        without_effect: facts.reason(column),
        is_neutral: is_neutral(column, text),
    };
    stated.map(entry).collect()
}

/// Returns the columns without effect by reason, for example "`top_k`, `expert_ffn`: no experts; `cp_exchange`: CP is 1".
pub(super) fn describe(stated: &[StatedColumn]) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for StatedColumn { column, without_effect, .. } in stated {
        let Some(reason) = without_effect else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, columns)) => columns.push(column),
            None => reasons.push((reason, vec![column])),
        }
    }
    let mut text = String::new();
    for (reason, columns) in reasons {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{}: {reason}", if text.is_empty() { "" } else { "; " }, columns.join(", "));
    }
    text
}

/// True for the default of a column, and for 0 and false, which switch a setting off.
fn is_neutral(column: Column, text: &str) -> bool {
    let default = column.default.split([' ', ';', ':', ',']).next().unwrap_or("");
    match column.holds {
        Holds::Flag => truth(text) == Some(false) || truth(text) == truth(default),
        Holds::Integer(..) | Holds::Number(..) => {
            parse(text).is_some_and(|number| number == 0.0 || Some(number) == default.parse().ok())
        }
        Holds::Word(words) => position(words, text).is_some_and(|at| at == 0 || Some(at) == position(words, default)),
        Holds::Name(_) => false,
    }
}
