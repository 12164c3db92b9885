//! Explains time differences between a plan and the baseline by component.

use api::planner::outcome::PlannerResult;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use super::{PARTS, planner_rows};
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
    total_s: f64,
    /// Baseline time divided by plan time.
    speedup: f64,
}

impl Difference {
    fn between(plan: &StackedRow, baseline: &StackedRow) -> Self {
        let parts: Vec<f64> =
            plan.values.iter().zip(&baseline.values).map(|(seconds, other)| seconds - other).collect();
        let (plan_total, other) = (plan.total(), baseline.total());
        Self {
            plan: plan.label.clone(),
            parts,
            total_s: plan_total - other,
            speedup: if plan_total > 0.0 { other / plan_total } else { 1.0 },
        }
    }

    /// Formats the difference as a sentence, largest components first. Components below 1/200 of
    /// the baseline time are omitted.
    fn describe(&self, baseline: &str, time_s: f64) -> String {
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
        format!("{plan} is {factor}× as fast as {baseline} ({}): {reasons}.", format::seconds_difference(self.total_s))
    }
}

/// Explains the time difference between two plans from the same planner. `there` names the other
/// plan. Returns `None` if a plan has no breakdown.
pub(in crate::results) fn explain_difference(
    here: &PlannerResult,
    untimed_degrees: &PlannerResult,
    there: &str,
) -> Option<String> {
    let row = |result: &PlannerResult| planner_rows(std::slice::from_ref(result)).pop();
    let (plan, baseline) = (row(here)?, row(untimed_degrees)?);
    Some(Difference::between(&plan, &baseline).describe(there, baseline.total()))
}

/// Compares all plans with the baseline. Returns `None` if the baseline has no breakdown.
fn differences(results: &[PlannerResult], baseline: PlannerKind) -> Option<(StackedRow, Vec<Difference>)> {
    let rows = planner_rows(results);
    let name = ranking::short_title(baseline);
    let reference = rows.iter().find(|row| row.label == name)?.clone();
    let others = rows.iter().filter(|row| row.label != name).map(|row| Difference::between(row, &reference)).collect();
    Some((reference, others))
}

/// Time differences as sentences and as a table.
#[component]
pub(super) fn Explained() -> impl IntoView {
    let explore = use_explore();
    let comparison = Memo::new(move |_| {
        let results = explore.results();
        let baseline = ranking::baseline_planner(&results, explore.view.get().baseline)?;
        differences(&results, baseline).filter(|(_, others)| !others.is_empty())
    });
    move || {
        let Some((reference, others)) = comparison.get() else {
            return view! { <p class="hint">"There is only one plan; a second planner gives something to compare with."</p> }
                .into_any();
        };
        let baseline = reference.label.clone();
        let sentences =
            others.iter().map(|other| view! { <li>{other.describe(&baseline, reference.total())}</li> }).collect_view();
        let cell = |seconds: f64, time_s: f64| {
            let alike = seconds.abs() < time_s / 1000.0;
            let text = if alike { "–".to_owned() } else { format::seconds_difference(seconds) };
            view! { <td class:faster=(!alike && seconds < 0.0) class:slower={!alike && seconds > 0.0}>{text}</td> }
        };
        let reference_s = reference.total();
        let lines = others
            .into_iter()
            .map(|other| {
                view! {
                    <tr>
                        <th scope="row">{other.plan}</th>
                        {other.parts.into_iter().map(|seconds| cell(seconds, reference_s)).collect_view()}
                        {cell(other.total_s, reference_s)}
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
    fn description_names_biggest_part_first_and_omits_small_parts() {
        // 10 s compared with 8 s: 3 s less bubble, 1 s more communication, 1 ms optimizer.
        let baseline = row("1F1B", [5.0, 0.0, 1.0, 0.0, 0.0, 4.0]);
        let plan = row("Wait-free", [5.0, 0.0, 2.0, 0.0, 0.001, 1.0]);
        let difference = Difference::between(&plan, &baseline);
        assert!((difference.total_s + 1.999).abs() < 1e-9 && (difference.speedup - 10.0 / 8.001).abs() < 1e-9);
        let text = difference.describe("1F1B", 10.0);
        assert!(text.starts_with("Wait-free is 1.25× as fast as 1F1B"), "{text}");
        let (bubble, communication) =
            (text.find("bubble −3"), text.find("exposed communication (TP, CP, EP, sends) +1"));
        assert!(bubble.is_some() && bubble < communication, "{text}");
        assert!(!text.contains("optimizer"), "{text}");
    }

    #[test]
    fn a_plan_like_the_baseline_says_so() {
        let same = row("1F1B", [5.0, 0.0, 1.0, 0.0, 0.0, 4.0]);
        assert!(Difference::between(&same, &same).describe("GPipe", 10.0).ends_with("all parts are alike."));
    }
}
