//! Explains time differences between a plan and the baseline by component.

use api::planner::outcome::PlannerResult;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::{PARTS, of_planners};
use crate::charts::StackedRow;
use crate::explore::use_explore;
use crate::format;
use crate::results::ranking;

/// Difference between a plan and the baseline.
#[derive(Debug, Clone, PartialEq)]
struct Difference {
    plan: String,
    /// Difference by component in s. Negative if the plan is faster.
    parts: Vec<f64>,
    /// Sum over all components in s.
    whole: f64,
    /// Baseline time divided by plan time.
    speedup: f64,
}

impl Difference {
    fn of(plan: &StackedRow, baseline: &StackedRow) -> Self {
        let parts: Vec<f64> = plan.values.iter().zip(&baseline.values).map(|(own, other)| own - other).collect();
        let (own, other) = (plan.total(), baseline.total());
        Self { plan: plan.label.clone(), parts, whole: own - other, speedup: if own > 0.0 { other / own } else { 1.0 } }
    }

    /// Formats the difference as a sentence, largest components first. Components below 1/200 of
    /// the baseline time are omitted.
    fn words(&self, baseline: &str, time_s: f64) -> String {
        let mut parts: Vec<(&str, f64)> = PARTS.iter().map(|part| part.name).zip(self.parts.iter().copied()).collect();
        parts.retain(|(_, seconds)| seconds.abs() >= time_s / 200.0);
        parts.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let reasons: Vec<String> = parts
            .into_iter()
            .map(|(name, seconds)| format!("{name} {}", format::seconds_difference(seconds)))
            .collect();
        let reasons = if reasons.is_empty() { "all parts are alike".to_owned() } else { reasons.join(", ") };
        let plan = &self.plan;
        let factor = format::three_digits(self.speedup);
        format!("{plan} is {factor}× as fast as {baseline} ({}): {reasons}.", format::seconds_difference(self.whole))
    }
}

/// Explains the time difference between two plans from the same planner. `there` names the other
/// plan. Returns `None` if a plan has no breakdown.
pub(in crate::results) fn of_the_same(
    here: &PlannerResult,
    untimed_degrees: &PlannerResult,
    there: &str,
) -> Option<String> {
    let row = |result: &PlannerResult| of_planners(std::slice::from_ref(result)).pop();
    let (plan, baseline) = (row(here)?, row(untimed_degrees)?);
    Some(Difference::of(&plan, &baseline).words(there, baseline.total()))
}

/// Compares all plans with the baseline. Returns `None` if the baseline has no breakdown.
fn differences(results: &[PlannerResult], baseline: PlannerKind) -> Option<(StackedRow, Vec<Difference>)> {
    let rows = of_planners(results);
    let name = ranking::short_title(baseline);
    let reference = rows.iter().find(|row| row.label == name)?.clone();
    let others = rows.iter().filter(|row| row.label != name).map(|row| Difference::of(row, &reference)).collect();
    Some((reference, others))
}

/// Time differences as sentences and as a table.
#[component]
pub(super) fn Explained() -> impl IntoView {
    let explore = use_explore();
    let shown = Memo::new(move |_| {
        let results = explore.results();
        let baseline = ranking::baseline_of(&results, explore.view.get().baseline)?;
        differences(&results, baseline).filter(|(_, others)| !others.is_empty())
    });
    move || {
        let Some((reference, others)) = shown.get() else {
            return view! { <p class="hint">"There is only one plan; a second planner gives something to compare with."</p> }
                .into_any();
        };
        let baseline = reference.label.clone();
        let sentences =
            others.iter().map(|other| view! { <li>{other.words(&baseline, reference.total())}</li> }).collect_view();
        let cell = |seconds: f64, time_s: f64| {
            let alike = seconds.abs() < time_s / 1000.0;
            let text = if alike { "–".to_owned() } else { format::seconds_difference(seconds) };
            view! { <td class:faster=(!alike && seconds < 0.0) class:slower={!alike && seconds > 0.0}>{text}</td> }
        };
        let whole_s = reference.total();
        let lines = others
            .into_iter()
            .map(|other| {
                view! {
                    <tr>
                        <th scope="row">{other.plan}</th>
                        {other.parts.into_iter().map(|seconds| cell(seconds, whole_s)).collect_view()}
                        {cell(other.whole, whole_s)}
                    </tr>
                }
            })
            .collect_view();
        let headings = PARTS.iter().map(|part| view! { <th scope="col">{part.name}</th> }).collect_view();
        view! {
            <ul class="explained" data-testid="explained">{sentences}</ul>
            <div class="table-scroll" role="region" aria-label="Differences to the baseline" tabindex="0">
                <table class="figures" data-testid="time-differences">
                    <thead>
                        <tr>
                            <th scope="col">{format!("Against {baseline}")}</th>
                            {headings}
                            <th scope="col">"Sum"</th>
                        </tr>
                    </thead>
                    <tbody>{lines}</tbody>
                </table>
            </div>
            <p class="hint">"Means of all ranks and iterations. Blue takes less than the baseline, orange more; the baseline is chosen in the table of plans."</p>
        }
        .into_any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, values: [f64; 6]) -> StackedRow {
        StackedRow { label: label.to_owned(), values: values.to_vec() }
    }

    #[test]
    fn the_largest_part_is_named_first_and_small_ones_are_not() {
        // 10 s compared with 8 s: 3 s less bubble, 1 s more communication, 1 ms optimizer.
        let baseline = row("1F1B", [5.0, 0.0, 1.0, 0.0, 0.0, 4.0]);
        let plan = row("Wait-free", [5.0, 0.0, 2.0, 0.0, 0.001, 1.0]);
        let difference = Difference::of(&plan, &baseline);
        assert!((difference.whole + 1.999).abs() < 1e-9 && (difference.speedup - 10.0 / 8.001).abs() < 1e-9);
        let words = difference.words("1F1B", 10.0);
        assert!(words.starts_with("Wait-free is 1.25× as fast as 1F1B"), "{words}");
        let (bubble, communication) = (words.find("bubble −3"), words.find("exposed in actions +1"));
        assert!(bubble.is_some() && bubble < communication, "{words}");
        assert!(!words.contains("optimizer"), "{words}");
    }

    #[test]
    fn a_plan_like_the_baseline_says_so() {
        let same = row("1F1B", [5.0, 0.0, 1.0, 0.0, 0.0, 4.0]);
        assert!(Difference::of(&same, &same).words("GPipe", 10.0).ends_with("all parts are alike."));
    }
}
