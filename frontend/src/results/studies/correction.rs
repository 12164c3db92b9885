//! DFLOP adaptive correction for a run with slow shapes: benefit, cost, and the iteration that
//! switches it off.

mod settings;

use std::sync::Arc;

use api::planner::analysis::CorrectionStudy;
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
fn off(study: &CorrectionStudy, (least, most): (f64, f64)) -> Option<Curve> {
    let at = f64::from(study.switched_off?);
    Some(curve("switches itself off", INK, Dash::Dotted, Form::Level, vec![(at, least), (at, most)]))
}

fn times(study: &CorrectionStudy) -> Vec<Curve> {
    let mut curves = vec![
        curve("without correction", WITHOUT, Dash::Dashed, Form::Steps, by_iteration(&study.without_s)),
        curve("with correction and its cost", WITH, Dash::Solid, Form::Steps, by_iteration(&study.with_s)),
    ];
    curves.extend(off(study, ends(study.without_s.iter().chain(&study.with_s).copied())));
    curves
}

fn benefits(study: &CorrectionStudy) -> Vec<Curve> {
    let percent =
        |values: Vec<(f64, f64)>| values.into_iter().map(|(at, share)| (at, 100.0 * share)).collect::<Vec<_>>();
    let of = percent(by_iteration(&study.benefits));
    let decided = study.decisions.iter().map(|decision| (f64::from(decision.iteration), decision.benefit));
    let decided = percent(decided.collect());
    let cost = percent(vec![(0.0, study.cost), ((study.net.len().max(2) - 1) as f64, study.cost)]);
    let extent = ends(of.iter().chain(&decided).chain(&cost).map(|point| point.1).collect::<Vec<_>>().into_iter());
    let mut curves = vec![
        curve("benefit of the iteration, B", WITH, Dash::Solid, Form::Marked, of),
        curve("cost of watching, C", COST, Dash::Long, Form::Level, cost),
    ];
    if !decided.is_empty() {
        curves.push(curve("mean benefit that decides", INK, Dash::Solid, Form::Rings, decided));
    }
    curves.extend(off(study, extent));
    curves
}

/// Summarizes the study in sentences.
fn verdict(study: &CorrectionStudy) -> Vec<String> {
    let iterations = format::count(study.net.len() as u64);
    let shapes = match study.slow_shapes {
        0 => format!("None of {} shapes is slow.", format::count(study.shapes.into())),
        slow => format!(
            "{} of {} shapes are slow: an item of them takes {} longer.",
            format::count(slow.into()),
            format::count(study.shapes.into()),
            format::seconds(study.delay_s)
        ),
    };
    let last = study.decisions.last();
    let off = match (study.switched_off, last) {
        (Some(at), Some(Decision { benefit, .. })) => format!(
            "It switches itself off at the end of iteration {at}: a mean benefit of {} is not above the cost of {}.",
            format::percent(*benefit),
            format::percent(study.cost)
        ),
        (_, Some(Decision { benefit, .. })) => format!(
            "It stays on for all {iterations} iterations: the mean benefit was {} at its last decision, above the cost of {}.",
            format::percent(*benefit),
            format::percent(study.cost)
        ),
        (_, None) => {
            format!("It never came to a decision: {iterations} iterations are fewer than benefits are averaged over.")
        }
    };
    let settled = match study.settled {
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

pub(super) fn show(study: Arc<CorrectionStudy>) -> impl IntoView {
    let words = verdict(&study);
    let spoken = words.join(" ");
    let lines = words.into_iter().map(|words| view! { <li>{words}</li> }).collect_view();
    let notes = study.notes.iter().map(|note| view! { <p class="hint">{note.clone()}</p> }).collect_view();
    let told = (!study.penalties.is_empty()).then(|| penalties(&study.penalties));
    view! {
        <ul class="plain" data-testid="correction-verdict">{lines}</ul>
        <h3>"Time of a step"</h3>
        <CurveChart
            curves=Signal::stored(times(&study))
            over=Signal::stored("iteration".to_owned())
            label=Signal::stored(format!("Time of every step with and without correction. {spoken}"))
            test_id="correction-times"
        />
        <h3>"Benefit against cost"</h3>
        <CurveChart
            curves=Signal::stored(benefits(&study))
            over=Signal::stored("iteration".to_owned())
            up="% of throughput"
            label=Signal::stored(format!("Benefit of every iteration against the cost of watching. {spoken}"))
            test_id="correction-benefits"
        />
        {notes}
        <details class="advanced" data-testid="correction-table">
            <summary>"As a table"</summary>
            <Table study=study />
        </details>
        {told}
    }
}

#[component]
fn Table(study: Arc<CorrectionStudy>) -> impl IntoView {
    let line = |iteration: usize| {
        let benefit = study.benefits.get(iteration).map_or_else(|| "–".to_owned(), |benefit| format::percent(*benefit));
        let decision = study.decisions.iter().find(|decision| decision.iteration as usize == iteration);
        let decision = decision.map(|of| {
            format!(
                "{} on average: {}",
                format::percent(of.benefit),
                if of.stays_on { "stays on" } else { "switches off" }
            )
        });
        view! {
            <tr data-iteration=iteration.to_string()>
                <th scope="row">{iteration.to_string()}</th>
                <td>{format::seconds(study.without_s[iteration])}</td>
                <td>{format::seconds(study.with_s[iteration])}</td>
                <td>{format::signed_percent(study.net[iteration])}</td>
                <td>{benefit}</td>
                <td class="notation">{decision.unwrap_or_default()}</td>
            </tr>
        }
    };
    let whole = study.net.len().min(study.without_s.len()).min(study.with_s.len());
    let lines = (0..whole).map(line).collect_view();
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
fn penalties(told: &[Penalty]) -> impl IntoView + use<> {
    let line = |of: &Penalty| {
        view! {
            <tr>
                <th scope="row">{of.shape.clone()}</th>
                <td>{format::count(of.items.into())}</td>
                <td>{format::ratio(of.penalty)}</td>
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
                <tbody>{told.iter().map(line).collect_view()}</tbody>
            </table>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(switched_off: Option<u32>, benefit: f64) -> CorrectionStudy {
        let decision = Decision { iteration: 2, benefit, stays_on: switched_off.is_none() };
        CorrectionStudy {
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
    fn where_it_gives_up_stands_a_line_over_both_charts() {
        let drawn = times(&study(Some(2), 0.01));
        assert_eq!(drawn[2].points, [(2.0, 2.0), (2.0, 2.6)]);
        let drawn = benefits(&study(Some(2), 0.01));
        assert_eq!(drawn[2].points, [(2.0, 1.0)], "the decision is ringed, in percent");
        assert_eq!(drawn[3].points, [(2.0, 0.0), (2.0, 4.0)]);
        assert_eq!((times(&study(None, 0.1)).len(), benefits(&study(None, 0.1)).len()), (2, 3));
    }

    #[test]
    fn the_verdict_says_what_decided() {
        let words = |study: &CorrectionStudy| verdict(study).join(" ").replace('\u{202f}', " ");
        let off = words(&study(Some(2), 0.01));
        assert!(off.starts_with("3 of 100 shapes are slow: an item of them takes 500 ms longer."), "{off}");
        assert!(
            off.contains("at the end of iteration 2: a mean benefit of 1.00 % is not above the cost of 4.00 %"),
            "{off}"
        );
        assert!(words(&study(None, 0.1)).contains("stays on for all 4 iterations"));
        let mut short = study(None, 0.1);
        short.decisions.clear();
        assert!(words(&short).contains("never came to a decision"));
    }
}
