//! DFLOP adaptive correction for a run with slow shapes: benefit, cost, and the iteration that
//! switches it off.

mod settings;

use std::sync::Arc;

use api::planner::analysis::CorrectionAnalysis;
use api::planner::analysis::correction::{Decision, Penalty};
use leptos::prelude::*;

pub(super) use settings::{Settings, SettingsForm};

use crate::charts::{Curve, CurveChart, Dash, Form};
use crate::format;

const WITHOUT: (&str, &str) = ("#b8542a", "#ee8866");
const WITH: (&str, &str) = ("#0072b2", "#56a5e0");
const COST: (&str, &str) = ("#b3261e", "#ff8f85");
const INK: (&str, &str) = ("#1a2028", "#e6e9ed");

fn curve(
    name: &str,
    (light, dark): (&'static str, &'static str),
    dash: Dash,
    form: Form,
    points: Vec<(f64, f64)>,
) -> Curve {
    Curve { name: name.to_owned(), light, dark, dash, form, points }
}

/// Pairs each value with its iteration number, starting at 0.
fn by_iteration(values: &[f64]) -> Vec<(f64, f64)> {
    values.iter().enumerate().map(|(iteration, &value)| (iteration as f64, value)).collect()
}

/// Returns minimum and maximum.
fn ends(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
}

/// Vertical line at the iteration that switches the correction off.
fn off(analysis: &CorrectionAnalysis, (lower, upper): (f64, f64)) -> Option<Curve> {
    let at = f64::from(analysis.switched_off?);
    Some(curve("switched off", INK, Dash::Dotted, Form::Level, vec![(at, lower), (at, upper)]))
}

fn times(analysis: &CorrectionAnalysis) -> Vec<Curve> {
    let mut curves = vec![
        curve("without correction", WITHOUT, Dash::Dashed, Form::Steps, by_iteration(&analysis.without_s)),
        curve("with correction and its cost", WITH, Dash::Solid, Form::Steps, by_iteration(&analysis.with_s)),
    ];
    curves.extend(off(analysis, ends(analysis.without_s.iter().chain(&analysis.with_s).copied())));
    curves
}

fn benefits(analysis: &CorrectionAnalysis) -> Vec<Curve> {
    let percent =
        |values: Vec<(f64, f64)>| values.into_iter().map(|(at, share)| (at, 100.0 * share)).collect::<Vec<_>>();
    let benefit_points = percent(by_iteration(&analysis.benefits));
    let decided = analysis.decisions.iter().map(|decision| (f64::from(decision.iteration), decision.benefit));
    let decided = percent(decided.collect());
    let cost = percent(vec![(0.0, analysis.cost), ((analysis.net.len().max(2) - 1) as f64, analysis.cost)]);
    let extent =
        ends(benefit_points.iter().chain(&decided).chain(&cost).map(|point| point.1).collect::<Vec<_>>().into_iter());
    let mut curves = vec![
        curve("benefit of the iteration, B", WITH, Dash::Solid, Form::Marked, benefit_points),
        curve("cost of watching, C", COST, Dash::Long, Form::Level, cost),
    ];
    if !decided.is_empty() {
        curves.push(curve("mean benefit that decides", INK, Dash::Solid, Form::Rings, decided));
    }
    curves.extend(off(analysis, extent));
    curves
}

/// Summarizes the study in sentences.
fn summary_lines(analysis: &CorrectionAnalysis) -> Vec<String> {
    let iterations = format::count(analysis.net.len() as u64);
    let shapes = match analysis.slow_shapes {
        0 => format!("None of {} shapes is slow.", format::count(analysis.shapes.into())),
        slow => format!(
            "{} of {} shapes are slow: an item of them takes {} longer.",
            format::count(slow.into()),
            format::count(analysis.shapes.into()),
            format::seconds(analysis.delay_s)
        ),
    };
    let last = analysis.decisions.last();
    let off = match (analysis.switched_off, last) {
        (Some(at), Some(Decision { benefit, .. })) => format!(
            "It is switched off at the end of iteration {at}: a mean benefit of {} is not above the cost of {}.",
            format::percent(*benefit),
            format::percent(analysis.cost)
        ),
        (_, Some(Decision { benefit, .. })) => format!(
            "It stays on for all {iterations} iterations: the mean benefit was {} at its last decision, above the cost of {}.",
            format::percent(*benefit),
            format::percent(analysis.cost)
        ),
        (_, None) => {
            format!("It never came to a decision: {iterations} iterations are fewer than benefits are averaged over.")
        }
    };
    let settled = match analysis.settled {
        gain if gain > 0.0 => {
            format!("In the last half of the run steps are {} faster with it, its cost counted.", format::percent(gain))
        }
        gain if gain < 0.0 => format!(
            "In the last half of the run steps are {} slower with it, its cost counted.",
            format::percent(-gain)
        ),
        _ => "In the last half of the run steps are as fast as without it.".to_owned(),
    };
    vec![shapes, off, settled]
}

pub(super) fn show(analysis: Arc<CorrectionAnalysis>) -> impl IntoView {
    let summary = summary_lines(&analysis);
    let spoken = summary.join(" ");
    let lines = summary.into_iter().map(|text| view! { <li>{text}</li> }).collect_view();
    let notes = analysis.notes.iter().map(|note| view! { <p class="hint">{note.clone()}</p> }).collect_view();
    let penalty_table = (!analysis.penalties.is_empty()).then(|| penalties(&analysis.penalties));
    view! {
        <ul class="plain" data-testid="correction-verdict">{lines}</ul>
        <h3>"Time of a step"</h3>
        <CurveChart
            curves=Signal::stored(times(&analysis))
            over=Signal::stored("iteration".to_owned())
            label=Signal::stored(format!("Time of every step with and without correction. {spoken}"))
            test_id="correction-times"
        />
        <h3>"Benefit against cost"</h3>
        <CurveChart
            curves=Signal::stored(benefits(&analysis))
            over=Signal::stored("iteration".to_owned())
            up="% of throughput"
            label=Signal::stored(format!("Benefit of every iteration against the cost of watching. {spoken}"))
            test_id="correction-benefits"
        />
        {notes}
        <details class="advanced" data-testid="correction-table">
            <summary>"As a table"</summary>
            <Table analysis=analysis />
        </details>
        {penalty_table}
    }
}

#[component]
fn Table(analysis: Arc<CorrectionAnalysis>) -> impl IntoView {
    let line = |iteration: usize| {
        let benefit =
            analysis.benefits.get(iteration).map_or_else(|| "–".to_owned(), |benefit| format::percent(*benefit));
        let decision = analysis.decisions.iter().find(|decision| decision.iteration as usize == iteration);
        let decision = decision.map(|step_decision| {
            format!(
                "{} on average: {}",
                format::percent(step_decision.benefit),
                if step_decision.stays_on { "stays on" } else { "switches off" }
            )
        });
        view! {
            <tr data-iteration=iteration.to_string()>
                <th scope="row">{iteration.to_string()}</th>
                <td>{format::seconds(analysis.without_s[iteration])}</td>
                <td>{format::seconds(analysis.with_s[iteration])}</td>
                <td>{format::signed_percent(analysis.net[iteration])}</td>
                <td>{benefit}</td>
                <td class="notation">{decision.unwrap_or_default()}</td>
            </tr>
        }
    };
    let row_count = analysis.net.len().min(analysis.without_s.len()).min(analysis.with_s.len());
    let lines = (0..row_count).map(line).collect_view();
    let headings = ["Iteration", "Without", "With, cost counted", "Net", "Benefit", "Decision"]
        .map(|text| view! { <th scope="col">{text}</th> });
    view! {
        <div class="table-scroll tall" role="region" aria-label="Steps with and without correction" tabindex="0">
            <table class="figures assignment">
                <thead><tr>{headings}</tr></thead>
                <tbody>{lines}</tbody>
            </table>
        </div>
    }
}

/// Slow shapes estimated from a run.
fn penalties(entries: &[Penalty]) -> impl IntoView + use<> {
    let line = |penalty: &Penalty| {
        view! {
            <tr>
                <th scope="row">{penalty.shape.clone()}</th>
                <td>{format::count(penalty.items.into())}</td>
                <td>{format::ratio(penalty.penalty)}</td>
            </tr>
        }
    };
    view! {
        <h3>"What the run says of its shapes"</h3>
        <div class="table-scroll tall" role="region" aria-label="Shapes of the run, slowest first" tabindex="0">
            <table class="figures" data-testid="correction-penalties">
                <thead>
                    <tr>
                        <th scope="col">"Shape of an item"</th>
                        <th scope="col">"Items seen"</th>
                        <th scope="col">"Times as long as planned"</th>
                    </tr>
                </thead>
                <tbody>{entries.iter().map(line).collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_analysis(switched_off: Option<u32>, benefit: f64) -> CorrectionAnalysis {
        let decision = Decision { iteration: 2, benefit, stays_on: switched_off.is_none() };
        CorrectionAnalysis {
            shapes: 100,
            slow_shapes: 3,
            delay_s: 0.5,
            without_s: vec![2.0, 2.0, 2.5, 2.25],
            with_s: vec![2.08, 2.08, 2.6, 2.25],
            net: vec![-0.038, -0.038, -0.038, 0.0],
            benefits: vec![0.0, 0.0, 0.0],
            cost: 0.04,
            decisions: vec![decision],
            switched_off,
            settled: -0.019,
            penalties: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn switch_off_step_is_marked_in_both_charts() {
        let drawn = times(&sample_analysis(Some(2), 0.01));
        assert_eq!(drawn[2].points, [(2.0, 2.0), (2.0, 2.6)]);
        let drawn = benefits(&sample_analysis(Some(2), 0.01));
        assert_eq!(drawn[2].points, [(2.0, 1.0)], "the decision is ringed, in percent");
        assert_eq!(drawn[3].points, [(2.0, 0.0), (2.0, 4.0)]);
        assert_eq!((times(&sample_analysis(None, 0.1)).len(), benefits(&sample_analysis(None, 0.1)).len()), (2, 3));
    }

    #[test]
    fn summary_explains_the_decision() {
        let summary_text = |analysis: &CorrectionAnalysis| summary_lines(analysis).join(" ").replace('\u{202f}', " ");
        let off = summary_text(&sample_analysis(Some(2), 0.01));
        assert!(off.starts_with("3 of 100 shapes are slow: an item of them takes 500 ms longer."), "{off}");
        assert!(
            off.contains("at the end of iteration 2: a mean benefit of 1.00 % is not above the cost of 4.00 %"),
            "{off}"
        );
        assert!(summary_text(&sample_analysis(None, 0.1)).contains("stays on for all 4 iterations"));
        let mut short = sample_analysis(None, 0.1);
        short.decisions.clear();
        assert!(summary_text(&short).contains("never came to a decision"));
    }
}
