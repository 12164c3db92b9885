//! Training days, device hours and cost for a token budget.

use api::planner::certainty::{self, Interval};
use api::planner::outcome::{Budget, Metrics, PlanOutcome, PlannerResult, RunCost};
use api::planner::scenario::{PlannerKind, Scenario};
use leptos::prelude::*;
use serde::{Deserialize, Serialize};

use super::ranking;
use crate::explore::use_explore;
use crate::{format, storage};

/// User input.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Typed {
    /// Tokens in billions.
    billions: f64,
    /// Goodput in percent.
    goodput: f64,
    /// Price per device hour.
    price: f64,
}

/// Largest number of tokens in billions, and largest price per device hour. The cost of more is no finite number.
const MAX_BILLIONS: f64 = 1e9;
const MAX_PRICE: f64 = 1e6;

impl Typed {
    const FIRST: Self = Self { billions: 1000.0, goodput: 90.0, price: 2.5 };

    fn remembered() -> Self {
        storage::read(storage::BUDGET).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Self::FIRST)
    }

    fn budget(self) -> Budget {
        Budget { tokens: self.billions * 1e9, goodput: self.goodput / 100.0, price_per_hour: self.price }
    }

    /// Returns an error message for the first value out of range.
    fn complaint(self) -> Option<&'static str> {
        if !(self.billions > 0.0 && self.billions <= MAX_BILLIONS) {
            Some("Tokens must be more than 0 and at most 1,000,000,000 billions.")
        } else if !(self.goodput > 0.0 && self.goodput <= 100.0) {
            Some("Goodput must be more than 0 and at most 100 %.")
        } else if !(0.0..=MAX_PRICE).contains(&self.price) {
            Some("The price must be from 0 to 1,000,000.")
        } else {
            None
        }
    }
}

/// Throughput of a plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Throughput {
    pub(crate) planner: PlannerKind,
    /// Name of the plan.
    pub(crate) title: String,
    pub(crate) metrics: Metrics,
    /// 80 % interval of the step time in s, if it is known.
    pub(crate) step_s: Option<Interval>,
}

/// Cost of a run with a plan: planner, name of the plan, cost, and the costs at the low and the high end of the interval
/// of its duration.
type Row = (PlannerKind, String, RunCost, Option<(RunCost, RunCost)>);

/// Throughput of every plan. `scenario` is the scenario of the results, for intervals.
fn throughputs(results: &[PlannerResult], scenario: Option<&Scenario>) -> Vec<Throughput> {
    let throughput = |result: &PlannerResult| match &result.answer {
        PlanOutcome::Planned(plan) => {
            let title = ranking::short_title(result.planner).to_owned();
            let step_s = scenario.map(|scenario| certainty::step_time(scenario, plan));
            Some(Throughput { planner: result.planner, title, metrics: plan.metrics.clone(), step_s })
        }
        PlanOutcome::Infeasible { .. } => None,
    };
    results.iter().filter_map(throughput).collect()
}

fn costs(plans: &[Throughput], devices: u32, typed: Typed) -> Vec<Row> {
    let budget = typed.budget();
    let row = |plan: &Throughput| {
        let forecast =
            plan.step_s.and_then(|step_s| budget.forecast(&plan.metrics, (step_s.low, step_s.high), devices));
        let interval = forecast.map(|forecast| (forecast.low, forecast.high));
        Some((plan.planner, plan.title.clone(), budget.cost(plan.metrics.tokens_per_s, devices)?, interval))
    };
    plans.iter().filter_map(row).collect()
}

/// Formats a duration in days. Durations below two days are given in hours.
fn duration(days: f64) -> String {
    if days < 2.0 {
        format!("{}\u{202f}h", format::three_digits(24.0 * days))
    } else {
        format!("{}\u{202f}days", format::three_digits(days))
    }
}

/// Time and cost of a run with each plan of the open scenario.
#[component]
pub(super) fn BudgetCard() -> impl IntoView {
    let explore = use_explore();
    let devices = Memo::new(move |_| {
        explore.stored.with(|stored| stored.as_ref().map_or(0, |stored| stored.scenario.cluster.devices()))
    });
    let plans = Memo::new(move |_| {
        let shown = explore.stored_scenario_id();
        explore.stored.with(|stored| {
            // A preview is the outcome of another scenario than the stored one.
            let stored = stored.as_ref().filter(|stored| Some(&stored.id) == shown.as_ref());
            throughputs(&explore.results(), stored.map(|stored| &stored.scenario))
        })
    });
    view! { <CostCard plans=plans devices=devices /> }
}

/// Time and cost of a run over a number of tokens with each plan. Hidden if there is no plan.
#[component]
pub(crate) fn CostCard(
    #[prop(into)] plans: Signal<Vec<Throughput>>,
    #[prop(into)] devices: Signal<u32>,
) -> impl IntoView {
    let typed = RwSignal::new(Typed::remembered());
    let rows = Memo::new(move |_| plans.with(|plans| costs(plans, devices.get(), typed.get())));
    let has_plan = Memo::new(move |_| plans.with(|plans| !plans.is_empty()));
    let field = move |id: &'static str,
                      label: &'static str,
                      unit: &'static str,
                      read: fn(&Typed) -> f64,
                      write: fn(&mut Typed, f64)| {
        let change = move |event| {
            let value = event_target_value(&event).parse().unwrap_or(f64::NAN);
            typed.update(|typed| write(typed, value));
            if typed.with_untracked(|typed| typed.complaint().is_none())
                && let Ok(text) = serde_json::to_string(&typed.get_untracked())
            {
                storage::write(storage::BUDGET, &text);
            }
        };
        view! {
            <label class="budget-field" for=id>
                {label}" "<small>{unit}</small>
                <input id=id type="number" min="0" step="any" inputmode="decimal" value=read(&typed.get_untracked()).to_string() on:input=change />
            </label>
        }
    };
    let lines = move || {
        let line = |(planner, title, cost, interval): Row| {
            let range = |text: &dyn Fn(&RunCost) -> String| {
                interval.map(|(low, high)| {
                    view! { <small class="below">{format!("80\u{202f}%: {} to {}", text(&low), text(&high))}</small> }
                })
            };
            let hours = |cost: &RunCost| format::large(cost.device_hours);
            let money = |cost: &RunCost| format::large(cost.money);
            let time = |cost: &RunCost| duration(cost.days);
            view! {
                <tr data-planner=planner.id()>
                    <th scope="row"><span class="pill" data-planner-colour=planner.id()></span>" "{title}</th>
                    <td data-value=cost.days.to_string()>{time(&cost)}{range(&time)}</td>
                    <td data-value=cost.device_hours.to_string()>{hours(&cost)}{range(&hours)}</td>
                    <td data-value=cost.money.to_string()>{money(&cost)}{range(&money)}</td>
                </tr>
            }
        };
        rows.get().into_iter().map(line).collect_view()
    };
    let complaint =
        move || typed.get().complaint().map(|text| view! { <p class="field-error" role="alert">{text}</p> });
    view! {
        <Show when=move || has_plan.get()>
            <section class="card" data-testid="card-budget">
                <header class="card-title"><h2>"Time and cost of a run"</h2></header>
                <div class="budget-fields">
                    {field("budget-tokens", "Tokens", "billions", |typed| typed.billions, |typed, value| typed.billions = value)}
                    {field("budget-goodput", "Goodput", "%", |typed| typed.goodput, |typed, value| typed.goodput = value)}
                    {field("budget-price", "Price", "US$ per GPU hour", |typed| typed.price, |typed, value| typed.price = value)}
                </div>
                {complaint}
                <div class="table-scroll" role="region" aria-label="Time and cost of a run by planner" tabindex="0">
                    <table class="figures">
                        <thead><tr><th scope="col">"Planner"</th><th scope="col">"Wall time"</th><th scope="col">"GPU hours"</th><th scope="col">"Cost (US$)"</th></tr></thead>
                        <tbody>{lines}</tbody>
                    </table>
                </div>
                <p class="hint">
                    {move || format!(
                        "Wall time = tokens / (tokens/s × goodput), on {} devices. Goodput is the share of the wall time that computes useful steps; restarts, checkpoints and evaluation reduce it. Cost = GPU hours × price.",
                        format::count(devices.get().into())
                    )}
                </p>
            </section>
        </Show>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_are_in_hours() {
        let plain = |days| duration(days).replace('\u{202f}', " ");
        assert_eq!(plain(0.5), "12.0 h");
        assert_eq!(plain(14.47), "14.5 days");
    }

    #[test]
    fn every_field_has_a_separate_error() {
        assert_eq!(Typed::FIRST.complaint(), None);
        for billions in [0.0, 1e300] {
            assert!(Typed { billions, ..Typed::FIRST }.complaint().unwrap().starts_with("Tokens"), "{billions}");
        }
        assert!(Typed { goodput: 120.0, ..Typed::FIRST }.complaint().unwrap().starts_with("Goodput"));
        assert!(Typed { price: f64::NAN, ..Typed::FIRST }.complaint().unwrap().starts_with("The price"));
    }

    /// 1,000 billion tokens at 1 token/s (test plan), 90 % goodput, two devices.
    #[test]
    fn every_plan_has_a_row() {
        let result = super::super::breakdown::tests::planned(PlannerKind::OneFOneB, vec![]);
        let rows = costs(&throughputs(&[result], None), 2, Typed::FIRST);
        assert_eq!(rows.len(), 1);
        let hours = 1e12 / 0.9 / 3600.0;
        assert!((rows[0].2.device_hours / (2.0 * hours) - 1.0).abs() < 1e-12);
        assert!((rows[0].2.money / (5.0 * hours) - 1.0).abs() < 1e-12);
        assert_eq!(rows[0].3, None);
    }

    #[test]
    fn the_interval_of_the_step_time_is_that_of_the_run() {
        let result = super::super::breakdown::tests::planned(PlannerKind::OneFOneB, vec![]);
        let mut plan = throughputs(&[result], None).remove(0);
        let step_s = plan.metrics.iteration_s;
        plan.step_s = Some(Interval { low: step_s / 2.0, high: step_s * 3.0 });
        let (_, _, expected, range) = costs(&[plan], 2, Typed::FIRST).remove(0);
        let (low, high) = range.unwrap();
        assert!((low.days * 2.0 / expected.days - 1.0).abs() < 1e-12);
        assert!((high.days / 3.0 / expected.days - 1.0).abs() < 1e-12);
    }

    #[test]
    fn plans_of_a_known_scenario_have_intervals() {
        let example = include_str!("../../../examples/vlm-s-image-heavy.json");
        let scenario = api::planner::scenario::parse(example).unwrap();
        let result = super::super::breakdown::tests::planned(PlannerKind::OneFOneB, vec![]);
        let plan = throughputs(&[result], Some(&scenario)).remove(0);
        let step_s = plan.metrics.iteration_s;
        let interval = plan.step_s.expect("an interval");
        assert!(interval.low < step_s && step_s < interval.high, "{interval:?}");
        let (_, _, cost, range) = costs(&[plan], 2, Typed::FIRST).remove(0);
        let (low, high) = range.expect("an interval of the cost");
        assert!(low.money < cost.money && cost.money < high.money);
    }
}
