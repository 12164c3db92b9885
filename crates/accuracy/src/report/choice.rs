//! Section on the choice of a layout in docs/accuracy.md.

use std::fmt::Write;

use crate::choice::Choice;

/// Groups of a set above this count appear only in its mean.
const LISTED: usize = 16;

/// Formats the rank correlation and the regret by model and number of devices.
pub fn section(choices: &[Choice]) -> String {
    let mut text = String::from(
        "\n## Choice of a layout\n\nLayouts of one model on one cluster with the same sequences, batch and precision, for groups with at least \
         5 layouts. Regret: how much\nslower the layout with the shortest predicted time was than the fastest measured one. Spearman is the rank \
         correlation of predicted and\nmeasured times in the group.\n\n| set | model (layers, hidden size) | devices | layouts | Spearman | regret % |\n\
         |---|---|---:|---:|---:|---:|\n",
    );
    // Writing to a string cannot fail.
    for group in choices.chunk_by(|a, b| a.set == b.set) {
        let set = group[0].set;
        for Choice { devices, model: (layers, hidden), layouts, spearman, regret, .. } in
            group.iter().filter(|_| group.len() <= LISTED)
        {
            let order = spearman.map_or("–".to_owned(), |rank| format!("{rank:.2}"));
            let _ = writeln!(
                text,
                "| [{set}](#{set}) | {layers}, {hidden} | {devices} | {layouts} | {order} | {:.1} |",
                100.0 * regret
            );
        }
        if group.len() < 2 {
            continue;
        }
        let ranks: Vec<f64> = group.iter().filter_map(|choice| choice.spearman).collect();
        let _ = writeln!(
            text,
            "| [{set}](#{set}) | mean of {} groups |  | {} | {:.2} | {:.1} |",
            group.len(),
            group.iter().map(|choice| choice.layouts).sum::<usize>(),
            ranks.iter().sum::<f64>() / ranks.len().max(1) as f64,
            100.0 * group.iter().map(|choice| choice.regret).sum::<f64>() / group.len() as f64
        );
    }
    text
}
