//! Two traces side by side.

use api::path;
use api::planner::trace_comparison::{Activity, KernelDifference, PhaseDifference, TraceDifference};
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
    let total = headline(&difference);
    let unknown = unknown_phases(&difference.phases);
    let notes = difference.notes.iter().map(|note| view! { <p class="hint">{note.clone()}</p> }).collect_view();
    let phases = difference.phases.iter().map(|row| {
        let is_unknown = if PASSES.contains(&row.phase.as_str()) { unknown } else { (false, false) };
        let times = times(row.before_ns, row.after_ns, row.difference_ns, is_unknown);
        [vec![Cell::text(format::capitalised(&row.phase.replace('_', " ")))], times].concat()
    });
    let kernels = difference.kernels.iter().map(|row| {
        let counts = [row.before_count, row.after_count].map(count).to_vec();
        let names = vec![Cell::text(row.name.clone()), Cell::text(activity(row.activity))];
        [names, times(row.before_ns, row.after_ns, row.difference_ns, (false, false)), counts].concat()
    });
    let steps = difference.steps.iter().map(|row| {
        let numbers = [row.before, row.after].map(count).to_vec();
        [numbers, times(row.before_ns, row.after_ns, row.difference_ns, (false, false))].concat()
    });
    let table = |table: &str| format!("{csv}&format=csv&table={table}");
    let time = [("Before", true), ("After", true), ("Difference", true), ("Change", true)];
    let kernel_headings =
        [vec![("Kernel", false), ("Type", false)], time.to_vec(), vec![("Count before", true), ("Count after", true)]];
    let has_steps = !difference.steps.is_empty();
    view! {
        <p class="trace-name" data-testid="difference-total">{total}</p>
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

/// Phases that a trace shows only with launches or annotations.
const PASSES: [&str; 3] = ["forward", "backward", "optimizer"];

/// True for the trace before, and for the trace after, if it does not show the passes.
fn unknown_phases(phases: &[PhaseDifference]) -> (bool, bool) {
    let passes = || phases.iter().filter(|row| PASSES.contains(&row.phase.as_str()));
    (passes().all(|row| row.before_ns == 0), passes().all(|row| row.after_ns == 0))
}

/// Returns the answer in one line: ratio, times, and the kernel with the largest part of the difference.
fn headline(difference: &TraceDifference) -> Option<String> {
    let total = difference.phases.iter().find(|phase| phase.phase == "total")?;
    let over = match difference.steps.len() {
        0 => "in the complete traces".to_owned(),
        1 => "in one step".to_owned(),
        count => format!("in {} steps", format::count(count as u64)),
    };
    let [before, after] = [total.before_ns, total.after_ns].map(|ns| time_text::duration(ns as f64));
    if before == after {
        return Some(format!("Same time: {before} {over}."));
    }
    let is_faster = total.after_ns < total.before_ns;
    let (long, short) = (total.before_ns.max(total.after_ns), total.before_ns.min(total.after_ns));
    let ratio = match short {
        0 => String::new(),
        _ => format!("{} ", format::ratio(long as f64 / short as f64)),
    };
    let word = if is_faster { "faster" } else { "slower" };
    let share = share(total.before_ns, total.difference_ns);
    let share = if share.is_empty() { share } else { format!(" ({share})") };
    let is_cause = |kernel: &&KernelDifference| kernel.difference_ns != 0 && (kernel.difference_ns < 0) == is_faster;
    let largest = difference
        .kernels
        .iter()
        .filter(is_cause)
        .max_by_key(|kernel| kernel.difference_ns.unsigned_abs())
        .map_or_else(String::new, |kernel| {
            format!(", most of it in {}: {}", short_name(&kernel.name), change(kernel.difference_ns))
        });
    Some(format::capitalised(&format!("{ratio}{word}: {before} → {after} {over}{share}{largest}.")))
}

/// Kernel name without return type, template parameters and arguments.
fn short_name(name: &str) -> String {
    let name = name.strip_prefix("void ").unwrap_or(name);
    let end = name.find(['<', '(']).filter(|end| *end > 0).unwrap_or(name.len());
    name[..end].to_owned()
}

/// Cells of a row: times, difference and relative change. Times with the same text count as equal. A time that a trace
/// does not show is a dash.
fn times(before_ns: u64, after_ns: u64, difference_ns: i64, is_unknown: (bool, bool)) -> Vec<Cell> {
    let dash = || Cell::number("–", -1.0);
    let time = |ns: u64, is_unknown: bool| {
        if is_unknown { dash() } else { Cell::number(time_text::duration(ns as f64), ns as f64) }
    };
    let (before, after) = (time(before_ns, is_unknown.0), time(after_ns, is_unknown.1));
    if is_unknown.0 || is_unknown.1 {
        return vec![before, after, Cell::number("–", 0.0), Cell::number("–", 0.0)];
    }
    if before.text == after.text {
        return vec![before, after, Cell::number("same", 0.0), Cell::number("", 0.0)];
    }
    let relative = if before_ns == 0 { f64::INFINITY } else { difference_ns as f64 / before_ns as f64 };
    let share = share(before_ns, difference_ns);
    let difference = Cell::number(change(difference_ns), difference_ns as f64);
    vec![before, after, difference, Cell::number(if share.is_empty() { "new".to_owned() } else { share }, relative)]
}

pub(super) fn count(count: u64) -> Cell {
    Cell::number(format::count(count), count as f64)
}

/// Returns a difference in percent of the time before. Empty without a difference or a time before.
fn share(before_ns: u64, difference_ns: i64) -> String {
    if before_ns == 0 || difference_ns == 0 {
        return String::new();
    }
    format::signed_percent(difference_ns as f64 / before_ns as f64)
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
    use api::planner::trace_comparison::TraceSide;

    use super::*;

    fn phase(phase: &str, before_ns: u64, after_ns: u64) -> PhaseDifference {
        let difference_ns = after_ns.cast_signed() - before_ns.cast_signed();
        PhaseDifference { phase: phase.to_owned(), before_ns, after_ns, difference_ns }
    }

    fn texts(cells: &[Cell]) -> Vec<String> {
        cells.iter().map(|cell| cell.text.replace('\u{202f}', " ")).collect()
    }

    #[test]
    fn the_first_line_states_ratio_and_largest_part() {
        let kernel = |name: &str, difference_ns: i64| KernelDifference {
            name: name.to_owned(),
            activity: Activity::Compute,
            before_ns: 20_000_000,
            after_ns: 20_000_000_u64.saturating_add_signed(difference_ns),
            difference_ns,
            before_count: 1,
            after_count: 1,
        };
        let side = || TraceSide { name: String::new(), rank: 0, steps: 0, slices: 0, left_out: 0 };
        let mut difference = TraceDifference {
            before: side(),
            after: side(),
            kernels: vec![kernel("copy", 6_000_000), kernel("void gemm<128, 64>(float*)", -5_000_000)],
            phases: vec![phase("total", 60_000_000, 50_000_000)],
            steps: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(
            headline(&difference).map(|text| text.replace('\u{202f}', " ")).as_deref(),
            Some("1.20× faster: 60.0 ms → 50.0 ms in the complete traces (−16.7 %), most of it in gemm: −5.00 ms.")
        );
        difference.phases = vec![phase("total", 60_000_000, 60_000_007)];
        assert_eq!(
            headline(&difference).map(|text| text.replace('\u{202f}', " ")).as_deref(),
            Some("Same time: 60.0 ms in the complete traces.")
        );
    }

    #[test]
    fn unknown_phases_have_no_time() {
        let phases = [phase("forward", 0, 5), phase("backward", 0, 9), phase("compute", 20, 20)];
        assert_eq!(unknown_phases(&phases), (true, false));
        assert_eq!(texts(&times(0, 5, 5, (true, false))), ["–", "5 ns", "–", "–"]);
    }

    #[test]
    fn times_with_equal_texts_are_the_same() {
        assert_eq!(texts(&times(1_010_007, 1_010_000, -7, (false, false))), ["1.01 ms", "1.01 ms", "same", ""]);
        assert_eq!(texts(&times(200, 210, 10, (false, false))), ["200 ns", "210 ns", "+10 ns", "+5.00 %"]);
        assert_eq!(texts(&times(0, 10, 10, (false, false)))[3], "new");
    }

    #[test]
    fn differences_have_a_sign() {
        for (difference, sign) in [(1_500_000, Some('+')), (-1_500_000, Some('−')), (0, Some('0'))] {
            assert_eq!(change(difference).chars().next(), sign);
        }
    }
}
