//! Several headings of one column: cells of a row that contradict each other.

use super::cells::{Cells, Rejection, parse, quoted, truth};
use super::column::{COLUMNS, Column, FRAMEWORK, GPU, Holds, MODEL, PRESET, position};
use super::presets::{Presets, counted};
use planner::training::Framework;

/// Checks that all cells of a column have the same value.
///
/// # Errors
/// The first column with two values.
pub(super) fn check(cells: Cells<'_>, presets: &Presets) -> Result<(), Rejection> {
    // Few tables have two headings of a column.
    if !cells.columns.iter().flatten().any(|heading| heading.is_copy) {
        return Ok(());
    }
    for column in COLUMNS {
        let mut stated = cells.stated(column);
        let Some((first, heading)) = stated.next() else { continue };
        for (other, copy) in stated {
            if !is_same(column, (first, heading.factor), (other, copy.factor), presets) {
                let says = format!("two values in the row, {} and {}", quoted(first), quoted(other));
                return Err(Rejection { column: column.name, says });
            }
        }
    }
    Ok(())
}

/// True if two texts, each with the factor of its unit, mean the same value of a column.
fn is_same(column: Column, (a, scale_a): (&str, f64), (b, scale_b): (&str, f64), presets: &Presets) -> bool {
    if a.eq_ignore_ascii_case(b) && scale_a.to_bits() == scale_b.to_bits() {
        return true;
    }
    let numbers = || Some((parse(a)? * scale_a, parse(b)? * scale_b));
    match column.holds {
        // Numbers in GB and in GiB are rounded.
        Holds::Number(..) => numbers().is_some_and(|(a, b)| (a - b).abs() <= 1e-2 * b.abs()),
        Holds::Integer(..) => numbers().is_some_and(|(a, b)| (a - b).abs() < 0.5),
        Holds::Flag => truth(a).is_some() && truth(a) == truth(b),
        Holds::Word(words) => position(words, a).is_some() && position(words, a) == position(words, b),
        Holds::Name(_) if column == GPU => {
            let device = |text: &str| presets.cluster(counted(text).0).ok().map(|cluster| cluster.name.clone());
            device(a).is_some() && device(a) == device(b)
        }
        Holds::Name(_) if column == MODEL || column == PRESET => {
            let model = |text: &str| presets.model(text).ok().map(|model| model.modules.clone());
            model(a).is_some() && model(a) == model(b)
        }
        Holds::Name(_) if column == FRAMEWORK => {
            Framework::named(a).is_some() && Framework::named(a) == Framework::named(b)
        }
        Holds::Name(_) => false,
    }
}
