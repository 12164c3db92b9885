//! Parser for the text that torch prints with `_format_pipeline_order`: a column per rank, a row
//! per step.
//!
//! ```text
//!         Rank 0  Rank 1
//! Step 0: 0F0
//! Step 1: 0F1     1F0
//! Step 2:         1B0     <-- ERROR HERE
//! ```

use super::MAX_CELLS;

/// Marker at the end of a step.
const MARK: &str = "<-- ERROR HERE";

/// Converts the text to a table with a row per rank. Returns `None` for other formats.
pub(super) fn rows_by_rank(text: &str) -> Option<String> {
    let mut lines = text.lines().skip_while(|line| !line.trim_start().starts_with("Rank 0"));
    let starts: Vec<usize> = lines.next()?.match_indices("Rank ").map(|(at, _)| at).collect();
    let mut cells: Vec<Vec<&str>> = vec![Vec::new(); starts.len()];
    let mut steps = 0_usize;
    for line in lines {
        let Some((label, _)) = line.split_once(':').filter(|(label, _)| label.starts_with("Step ")) else { continue };
        steps += 1;
        if steps.saturating_mul(starts.len()) > MAX_CELLS {
            return None;
        }
        for column in &mut cells {
            column.push("");
        }
        let body = line.split(MARK).next().unwrap_or(line);
        let mut at = label.len() + 1;
        for part in body.get(at..)?.split_inclusive(' ') {
            let cell = part.trim();
            if !cell.is_empty() {
                // A column starts at the position of its header.
                let rank = starts.iter().rposition(|&start| start <= at)?;
                *cells[rank].last_mut()? = cell;
            }
            at += part.len();
        }
    }
    let rows: Vec<String> = cells.iter().map(|row| row.join(",")).collect();
    (steps > 0).then(|| rows.join("\n"))
}
