//! Sections on intervals in docs/accuracy.md.

use std::fmt::Write;

use crate::certainty::order::ALL;
use crate::certainty::{Evaluation, MemoryEvaluation, OrderBin, Score, SetCoverage, StepTimeEvaluation};

/// Formats the evaluation of the model of errors.
pub fn section(evaluation: &Evaluation) -> String {
    let mut text = String::from(
        "\n## Intervals\n\n\
         Every prediction has an 80 % interval, from the distribution of ln(measured / predicted) over the sets \
         (models.md, section 18).\nCoverage is the fraction of measurements inside the interval. Each set is evaluated \
         with a model that is fitted to the other sets.\nThe width is the upper bound divided by the lower bound. The \
         pinball loss is that of both bounds, in ln.\n\n",
    );
    step_time(&mut text, &evaluation.step_time);
    peak_memory(&mut text, &evaluation.peak_memory);
    order(&mut text, &evaluation.order);
    text
}

// `writeln!` to a string cannot fail, so results are ignored below.

const HEAD: &str = "| set | rows | coverage % | width | pinball loss |\n|---|---:|---:|---:|---:|\n";

fn line(text: &mut String, name: &str, rows: &str, score: Score) {
    let Score { coverage, width, pinball } = score;
    let _ = writeln!(text, "| {name} | {rows} | {:.0} | {:.2} | {pinball:.4} |", 100.0 * coverage, width.exp());
}

fn sets(text: &mut String, sets: &[SetCoverage]) {
    text.push_str(HEAD);
    for SetCoverage { set, rows, score } in sets {
        line(text, &format!("[{set}](#{set})"), &rows.to_string(), *score);
    }
}

fn step_time(text: &mut String, evaluation: &StepTimeEvaluation) {
    let StepTimeEvaluation { sets: by_set, mean, constant, tested, used } = evaluation;
    text.push_str("### Step times\n\n");
    sets(text, by_set);
    line(text, "mean of the sets", "", *mean);
    line(text, "one constant interval with the same coverage", "", *constant);
    let large: Vec<&SetCoverage> = by_set.iter().filter(|set| set.rows >= 20).collect();
    let inside = large.iter().filter(|set| (0.75..=0.85).contains(&set.score.coverage)).count();
    let narrower = 100.0 * (1.0 - mean.width / constant.width);
    let _ = writeln!(
        text,
        "\nBoth bounds are shifted so that the mean coverage of the sets is 80 %. The errors of a set have a common \
         offset, which the\nproperties of a step do not predict. So the coverage of single sets varies: {inside} of \
         {} sets with at least 20 rows are within the\ntarget of 75 to 85 %. In ln, the interval is {narrower:.0} % \
         narrower than a constant interval with the same coverage (target: 25 %).\n",
        large.len()
    );
    text.push_str("| property added to the model | pinball loss |\n|---|---:|\n");
    for (feature, loss) in tested {
        let chosen = if used.contains(feature) { " (used)" } else { "" };
        let _ = writeln!(text, "| {}{chosen} | {loss:.4} |", feature.title());
    }
    text.push_str("\nA property is used if it lowers the loss on sets that are left out by at least 2 %.\n\n");
}

fn peak_memory(text: &mut String, evaluation: &MemoryEvaluation) {
    let MemoryEvaluation { sets: by_set, mean, fitted, exhausted } = evaluation;
    text.push_str("### Peak memory\n\n");
    sets(text, by_set);
    line(text, "mean of the sets", "", *mean);
    let _ = writeln!(
        text,
        "\nMean stated probability of running out of memory: {:.0} % for {} runs that fitted, {:.0} % for {} runs that \
         ran out. The sets contain\nfew runs that ran out, and only runs that fitted have a measurement. So the \
         probability is uncertain near the limit.\n",
        100.0 * fitted.1,
        fitted.0,
        100.0 * exhausted.1,
        exhausted.0
    );
}

fn order(text: &mut String, bins: &[OrderBin]) {
    text.push_str(
        "### Order of two layouts\n\n\
         Pairs of layouts of one model on one cluster. Stated is the mean probability that the layout with the shorter \
         predicted time is\nfaster. Observed is the fraction of pairs in which it is. A set is evaluated with a fit to the other sets; the last lines\nshow all sets with the fit to all of them.\n\n\
         | set | pairs | stated % | observed % |\n|---|---:|---:|---:|\n",
    );
    for OrderBin { set, pairs, stated, observed } in bins {
        let name = if set == ALL { set.clone() } else { format!("[{set}](#{set})") };
        let _ = writeln!(text, "| {name} | {pairs} | {:.0} | {:.0} |", 100.0 * stated, 100.0 * observed);
    }
}
