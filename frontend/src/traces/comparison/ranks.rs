//! Ranks of a run: the straggler, waits by rank, and all ranks on one axis.

use api::path;
use api::planner::trace_comparison::{Cause, RankReport, Straggler};
use api::trace::TraceSummary;
use leptos::prelude::*;
use leptos::task::spawn_local;

use super::axis::AxisChart;
use super::before_after::{activity, change, count};
use super::label;
use super::sorted_table::SortedTable;
use super::sorting::Cell;
use crate::client::{self, RequestError};
use crate::format;
use crate::gantt::time_text;
use crate::notice::ErrorNotice;

/// Choice of the traces of several ranks, and the waits between them.
#[component]
pub(crate) fn RanksCard(
    traces: RwSignal<Vec<TraceSummary>>,
    /// Identifiers of the chosen traces.
    chosen: RwSignal<Vec<String>>,
) -> impl IntoView {
    let found = RwSignal::new(None::<Result<RankReport, RequestError>>);
    // A single trace is compared on request, because most traces have one device.
    let single = RwSignal::new(false);
    Effect::new(move |_| {
        let ids = chosen.get();
        found.set(None);
        if ids.is_empty() || (ids.len() == 1 && !single.get()) {
            return;
        }
        let url = path::trace_ranks(&ids.join(","));
        spawn_local(async move {
            let answer = client::get::<RankReport>(&url).await;
            if chosen.try_get_untracked() == Some(ids) {
                found.set(Some(answer));
            }
        });
    });
    let body = move || {
        match found.get() {
        None if chosen.with(Vec::is_empty) => {
            view! { <p class="muted">"Choose the traces of at least two ranks, or a trace with several devices."</p> }.into_any()
        }
        None if chosen.with(Vec::len) == 1 && !single.get() => view! {
            <p class="muted">"Choose the trace of another rank."</p>
            <p class="actions"><button on:click=move |_| single.set(true)>"Compare the devices of this trace"</button></p>
        }
        .into_any(),
        None => view! { <div class="skeleton results-skeleton" aria-hidden="true"></div> }.into_any(),
        Some(Err(error)) => view! { <ErrorNotice error=error /> }.into_any(),
        Some(Ok(report)) => view! { <Report report=report traces=chosen.get_untracked().join(",") /> }.into_any(),
    }
    };
    let toggle = move |id: String, is_checked: bool| {
        single.set(false);
        chosen.update(|chosen| {
            chosen.retain(|other| *other != id);
            if is_checked {
                chosen.push(id);
            }
        });
    };
    let boxes = move || {
        let item = |trace: TraceSummary| {
            let id = trace.id.clone();
            let own = id.clone();
            let is_checked = move || chosen.with(|chosen| chosen.contains(&own));
            view! {
                <li><label>
                    <input type="checkbox" prop:checked=is_checked on:change=move |event| toggle(id.clone(), event_target_checked(&event)) />
                    <span class="trace-name">{label(&trace)}</span>
                </label></li>
            }
        };
        let mut traces = traces.get();
        chosen.with(|chosen| sort_for_choice(&mut traces, chosen));
        traces.into_iter().map(item).collect_view()
    };
    view! {
        <section class="card" data-testid="trace-ranks">
            <header class="card-title"><h2>"Ranks of a run"</h2></header>
            <RunChoice traces=traces chosen=chosen />
            <fieldset class="trace-boxes">
                <legend>"Traces"</legend>
                <ul class="plain">{boxes}</ul>
            </fieldset>
            <div aria-live="polite">{body}</div>
        </section>
    }
}

/// Sorts traces for the choice: chosen traces first, then by rank and name.
fn sort_for_choice(traces: &mut [TraceSummary], chosen: &[String]) {
    traces.sort_by(|first, other| {
        let key = |trace: &TraceSummary| (!chosen.contains(&trace.id), trace.rank.is_none(), trace.rank);
        key(first).cmp(&key(other)).then_with(|| first.name.cmp(&other.name))
    });
}

/// Chooses all traces of a run.
#[component]
fn RunChoice(traces: RwSignal<Vec<TraceSummary>>, chosen: RwSignal<Vec<String>>) -> impl IntoView {
    let runs = move || {
        let mut runs: Vec<String> = traces.get().into_iter().filter_map(|trace| trace.run).collect();
        runs.sort_unstable();
        runs.dedup();
        runs
    };
    let choose = move |run: String| {
        if !run.is_empty() {
            let own = traces.get_untracked().into_iter().filter(|trace| trace.run.as_deref() == Some(&run));
            chosen.set(own.map(|trace| trace.id).collect());
        }
    };
    view! {
        <Show when=move || !runs().is_empty()>
            <div class="field picker">
                <label for="ranks-run">"All traces of the run"</label>
                <select id="ranks-run" on:change=move |event| choose(event_target_value(&event))>
                    <option value="">"No run"</option>
                    {move || runs().into_iter().map(|run| view! { <option value=run.clone()>{run.clone()}</option> }).collect_view()}
                </select>
            </div>
        </Show>
    }
}

#[component]
fn Report(report: RankReport, traces: String) -> impl IntoView {
    let time = |ns: u64| Cell::number(time_text::duration(ns as f64), ns as f64);
    let number = |rank: u32| Cell::number(rank.to_string(), f64::from(rank));
    let ranks = report.ranks.iter().map(|rank| {
        let times = [rank.caused_ns, rank.late_ns, rank.waited_ns, rank.compute_ns, rank.communication_ns];
        let rest = [rank.copy_ns, rank.idle_ns].map(time);
        let first = vec![number(rank.rank), Cell::text(rank.name.clone())];
        [first, times.map(time).to_vec(), rest.to_vec(), vec![count(rank.last), count(rank.last_steps)]].concat()
    });
    let groups = report.groups.iter().map(|group| {
        vec![
            Cell::text(group.operation.clone()),
            Cell::text(if group.group.is_empty() { "–".to_owned() } else { group.group.clone() }),
            count(group.collectives),
            time(group.wait_ns),
            time(group.transfer_ns),
            number(group.last),
            time(group.caused_ns),
        ]
    });
    let collectives = report.longest.iter().map(|collective| {
        let step = collective.step.map_or_else(|| Cell::number("–", -1.0), count);
        vec![
            Cell::text(collective.operation.clone()),
            step,
            count(collective.number),
            time(collective.wait_ns),
            time(collective.transfer_ns),
            number(collective.first),
            number(collective.last),
        ]
    });
    let steps: Vec<u64> = report.steps.iter().map(|step| step.step).collect();
    let csv = path::trace_ranks(&traces);
    let table = |table: &str| format!("{csv}&format=csv&table={table}");
    let summary = format!(
        "{} collectives on {} ranks, {} of waiting in sum. Clocks are aligned on the ends of collectives, with a median deviation of {}.",
        format::count(report.collectives),
        report.ranks.len(),
        time_text::duration(report.wait_ns as f64),
        time_text::duration(report.clock_deviation_ns as f64)
    );
    let notes = report.notes.iter().map(|note| view! { <p class="hint">{note.clone()}</p> }).collect_view();
    let kernels_csv = table("kernels");
    view! {
        {report.straggler.clone().map(|straggler| view! { <StragglerText straggler=straggler /> })}
        <p>{summary}</p>
        {notes}
        <AxisChart traces=traces steps=steps />
        <SortedTable
            title="By rank"
            test_id="ranks-table"
            headings=vec![
                ("Rank", true), ("Trace", false), ("Wait caused", true), ("Caused by this rank alone", true), ("Waits itself", true),
                ("Compute", true), ("Communication", true), ("Copies", true), ("Idle", true), ("Last in collectives", true), ("Last in steps", true),
            ]
            rows=ranks.collect()
            csv=table("ranks")
        />
        {report.straggler.clone().map(|straggler| view! { <StragglerKernels straggler=straggler csv=kernels_csv /> })}
        <SortedTable
            title="By process group"
            test_id="ranks-groups"
            headings=vec![
                ("Operation", false), ("Group", false), ("Collectives", true), ("Wait", true), ("Transfer", true),
                ("Last rank", true), ("Wait it causes", true),
            ]
            rows=groups.collect()
            csv=table("groups")
        />
        <SortedTable
            title="Collectives with the longest waits"
            test_id="ranks-collectives"
            headings=vec![
                ("Operation", false), ("Step", true), ("Number", true), ("Wait", true), ("Transfer", true),
                ("First rank", true), ("Last rank", true),
            ]
            rows=collectives.collect()
            csv=table("collectives")
        />
    }
}

#[component]
fn StragglerText(straggler: Straggler) -> impl IntoView {
    let steps = straggler.step_share.map_or_else(String::new, |share| {
        format!(", with the longest wait in {} of the steps", format::percent(share))
    });
    let ratio = straggler.same_kernels_ratio.map_or_else(String::new, |ratio| {
        format!(" Kernels that all ranks run equally often take {} as long.", format::ratio(ratio))
    });
    let is_one = straggler.slow_ranks.len() < 2;
    let (word, subject, causes, arrives) =
        if is_one { ("Straggler", "It", "causes", "arrives") } else { ("Stragglers", "They", "cause", "arrive") };
    let of = if is_one {
        "Against the median of the other ranks".to_owned()
    } else {
        format!("Rank {} against the median of the ranks that are not slow", straggler.rank)
    };
    let parts = [straggler.excess_compute_ns, straggler.excess_idle_ns, straggler.excess_copy_ns];
    let largest = parts.into_iter().map(i64::unsigned_abs).max().unwrap_or(0);
    view! {
        <p data-testid="straggler">
            <b>{format!("{word}: {}", straggler.named())}</b>
            {format!(
                ". {subject} {causes} {} of the waiting and {arrives} last in {} of the collectives{steps}. {}",
                format::percent(straggler.caused_share),
                format::percent(straggler.last_share),
                reason(straggler.cause)
            )}
        </p>
        <p>
            {format!(
                "Each other rank loses about {}. {of}: compute {}, idle {}, copies {}.{ratio}",
                time_text::duration(straggler.lost_ns as f64),
                excess(straggler.excess_compute_ns, largest),
                excess(straggler.excess_idle_ns, largest),
                excess(straggler.excess_copy_ns, largest)
            )}
        </p>
    }
}

/// Formats an excess. Less than a thousandth of the largest one is noise of the clock.
fn excess(excess_ns: i64, largest_ns: u64) -> String {
    if excess_ns.unsigned_abs() <= largest_ns / 1_000 { "the same".to_owned() } else { change(excess_ns) }
}

const fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::SlowerKernels => "The same kernels take longer: the device is slower, or runs at a lower clock.",
        Cause::MoreWork => "More kernels, or other kernels: more work.",
        Cause::Host => "The device is idle: the host launches late, for example because of data loading.",
        Cause::Copies => "Copies take longer.",
        Cause::Unknown => "The device takes no longer than the others: a link or the start of the step may be late.",
    }
}

#[component]
fn StragglerKernels(straggler: Straggler, csv: String) -> impl IntoView {
    let time = |ns: u64| Cell::number(time_text::duration(ns as f64), ns as f64);
    let rows = straggler.kernels.iter().map(|kernel| {
        vec![
            Cell::text(kernel.name.clone()),
            Cell::text(activity(kernel.activity)),
            time(kernel.time_ns),
            time(kernel.median_ns),
            Cell::number(change(kernel.excess_ns), kernel.excess_ns as f64),
            count(kernel.count),
            count(kernel.median_count),
        ]
    });
    view! {
        <SortedTable
            title="Kernels that take longer on the straggler"
            test_id="straggler-kernels"
            headings=vec![
                ("Kernel", false), ("Type", false), ("Straggler", true), ("Median of the others", true), ("Difference", true),
                ("Count", true), ("Median count", true),
            ]
            rows=rows.collect()
            csv=csv
        />
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_of_the_clock_is_no_excess() {
        assert_eq!((excess(1, 14_000_000), excess(0, 0)), ("the same".to_owned(), "the same".to_owned()));
        assert_eq!(excess(-20_000, 14_000_000), change(-20_000));
    }

    #[test]
    fn chosen_ranks_are_first_and_in_order() {
        let trace = |id: &str, rank: Option<u32>| TraceSummary {
            id: id.to_owned(),
            name: id.to_owned(),
            note: None,
            tags: Vec::new(),
            run: None,
            rank,
            plan: None,
            format: String::new(),
            created_at: String::new(),
            deleted_at: None,
            raw_bytes: 0,
            stored_bytes: 0,
            slices: 0,
            span_ns: 0,
            actions: 0,
            pinned: false,
        };
        let mut traces = [trace("a", None), trace("b", Some(0)), trace("c", Some(10)), trace("d", Some(2))];
        sort_for_choice(&mut traces, &["c".to_owned(), "d".to_owned()]);
        assert_eq!(traces.map(|trace| trace.id), ["d", "c", "b", "a"]);
    }
}
