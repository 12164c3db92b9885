//! Two traces side by side.

use api::path;
use api::planner::trace_comparison::{Activity, TraceDifference};
use api::trace::TraceSummary;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::label;
use super::sorted_table::SortedTable;
use super::sorting::Cell;
use crate::client::{self, RequestError};
use crate::format;
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Choice of two traces, and their differences by phase, kernel and step.
#[component]
pub(crate) fn DifferenceCard(
    traces: RwSignal<Vec<TraceSummary>>,
    /// Identifier of the trace before the change; empty if not chosen.
    before: RwSignal<String>,
    /// Identifier of the trace after the change.
    after: RwSignal<String>,
) -> impl IntoView {
    let found = RwSignal::new(None::<Result<TraceDifference, RequestError>>);
    Effect::new(move |_| {
        let pair = (before.get(), after.get());
        found.set(None);
        if pair.0.is_empty() || pair.1.is_empty() {
            return;
        }
        let url = path::trace_difference(&pair.0, &pair.1);
        spawn_local(async move {
            let answer = client::get::<TraceDifference>(&url).await;
            let current = before.try_get_untracked().zip(after.try_get_untracked());
            if current == Some(pair) {
                found.set(Some(answer));
            }
        });
    });
    let is_chosen = move || before.with(|id| !id.is_empty()) && after.with(|id| !id.is_empty());
    let body = move || match found.get() {
        None if is_chosen() => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        None => view! { <p class="muted">"Choose two traces of the same program."</p> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error /> }.into_any(),
        Some(Ok(difference)) => {
            let csv = path::trace_difference(&before.get_untracked(), &after.get_untracked());
            view! { <Tables difference=difference csv=csv /> }.into_any()
        }
    };
    view! {
        <section class="card" data-testid="trace-difference">
            <header class="card-title"><h2>"Before and after"</h2></header>
            <TraceChoice id="trace-before" title="Before" traces=traces chosen=before />
            <TraceChoice id="trace-after" title="After" traces=traces chosen=after />
            <div aria-live="polite">{body}</div>
        </section>
    }
}

#[component]
fn TraceChoice(
    id: &'static str,
    title: &'static str,
    traces: RwSignal<Vec<TraceSummary>>,
    chosen: RwSignal<String>,
) -> impl IntoView {
    let options = move || {
        let current = chosen.get();
        let option = |trace: TraceSummary| {
            let selected = trace.id == current;
            view! { <option value=trace.id.clone() selected=selected>{label(&trace)}</option> }
        };
        traces.get().into_iter().map(option).collect_view()
    };
    view! {
        <div class="field picker">
            <label for=id>{title}</label>
            <select id=id on:change=move |event| chosen.set(event_target_value(&event))>
                <option value="" selected=move || chosen.with(String::is_empty)>"No trace"</option>
                {options}
            </select>
        </div>
    }
}

#[component]
fn Tables(difference: TraceDifference, csv: String) -> impl IntoView {
    let total = difference.phases.iter().find(|phase| phase.phase == "total").map(|total| {
        let over = match difference.steps.len() {
            0 => "the complete traces".to_owned(),
            1 => "one step".to_owned(),
            count => format!("{} steps", format::count(count as u64)),
        };
        format!(
            "{over}: {} before, {} after, {}{}.",
            time_text::duration(total.before_ns as f64),
            time_text::duration(total.after_ns as f64),
            change(total.difference_ns),
            share(total.before_ns, total.difference_ns)
        )
    });
    let notes = difference.notes.iter().map(|note| view! { <p class="hint">{note.clone()}</p> }).collect_view();
    let phases = difference.phases.iter().map(|row| {
        let times = times(row.before_ns, row.after_ns, row.difference_ns);
        [vec![Cell::text(format::capitalised(&row.phase.replace('_', " ")))], times].concat()
    });
    let kernels = difference.kernels.iter().map(|row| {
        let counts = [row.before_count, row.after_count].map(count).to_vec();
        let names = vec![Cell::text(row.name.clone()), Cell::text(activity(row.activity))];
        [names, times(row.before_ns, row.after_ns, row.difference_ns), counts].concat()
    });
    let steps = difference.steps.iter().map(|row| {
        let numbers = [row.before, row.after].map(count).to_vec();
        [numbers, times(row.before_ns, row.after_ns, row.difference_ns)].concat()
    });
    let table = |table: &str| format!("{csv}&format=csv&table={table}");
    let time = [("Before", true), ("After", true), ("Difference", true)];
    let kernel_headings =
        [vec![("Kernel", false), ("Type", false)], time.to_vec(), vec![("Count before", true), ("Count after", true)]];
    let has_steps = !difference.steps.is_empty();
    view! {
        <p data-testid="difference-total">{total.map(|total| format::sentence(&total))}</p>
        {notes}
        <SortedTable
            title="By phase"
            test_id="difference-phases"
            headings=[vec![("Phase", false)], time.to_vec()].concat()
            rows=phases.collect()
            csv=table("phases")
        />
        <SortedTable
            title="By kernel"
            test_id="difference-kernels"
            headings=kernel_headings.concat()
            rows=kernels.collect()
            csv=table("kernels")
        />
        {has_steps.then(|| view! {
            <SortedTable
                title="By step"
                test_id="difference-steps"
                headings=[vec![("Step before", true), ("Step after", true)], time.to_vec()].concat()
                rows=steps.collect()
                csv=table("steps")
            />
        })}
    }
}

fn times(before_ns: u64, after_ns: u64, difference_ns: i64) -> Vec<Cell> {
    let time = |ns: u64| Cell::number(time_text::duration(ns as f64), ns as f64);
    vec![time(before_ns), time(after_ns), Cell::number(change(difference_ns), difference_ns as f64)]
}

pub(super) fn count(count: u64) -> Cell {
    Cell::number(format::count(count), count as f64)
}

/// Returns a difference in percent of the time before, in parentheses. Empty without a difference or a time before.
fn share(before_ns: u64, difference_ns: i64) -> String {
    if before_ns == 0 || difference_ns == 0 {
        return String::new();
    }
    format!(" ({})", format::signed_percent(difference_ns as f64 / before_ns as f64))
}

/// Returns a difference with its sign.
pub(super) fn change(difference_ns: i64) -> String {
    let size = time_text::duration(difference_ns.unsigned_abs() as f64);
    match difference_ns {
        0 => size,
        1.. => format!("+{size}"),
        _ => format!("−{size}"),
    }
}

pub(super) const fn activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Compute => "compute",
        Activity::Communication => "communication",
        Activity::Copy => "copy",
    }
}

#[cfg(test)]
mod tests {
    use super::{change, share};

    #[test]
    fn differences_have_a_share() {
        assert_eq!(share(200, 10).replace('\u{202f}', " "), " (+5.00 %)");
        assert_eq!((share(0, 10), share(10, 0)), (String::new(), String::new()));
    }

    #[test]
    fn differences_have_a_sign() {
        for (difference, sign) in [(1_500_000, Some('+')), (-1_500_000, Some('−')), (0, Some('0'))] {
            assert_eq!(change(difference).chars().next(), sign);
        }
    }
}
