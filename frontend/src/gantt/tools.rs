//! Tool bar below a chart: action search, rank folding, and a summary of differences.

use api::planner::timeline::{SpanKind, Timeline};
use leptos::prelude::*;
use web_sys::KeyboardEvent;

use super::chart::{Chart, Same};
use super::colours::{Colouring, Tone};
use super::describe::grouped;
use super::differences::{Aspect, Differences};
use super::navigation;
use super::query::Query;
use crate::format::{signed_percent, three_digits};

/// Search example.
const EXAMPLE: &str = "r3 mb7 B, stage 5, > 10 ms, critical";

/// Search result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Found {
    /// Empty query.
    Nothing,
    /// First invalid word.
    Unreadable(String),
    /// Matching spans, sorted by time.
    Spans(Same<Vec<usize>>),
}

impl Found {
    /// Runs a query on a timeline.
    pub(crate) fn search(chart_query: &str, timeline: Option<&Timeline>) -> Self {
        let Some(timeline) = timeline.filter(|_| !chart_query.trim().is_empty()) else { return Self::Nothing };
        match Query::parse(chart_query) {
            Err(word) => Self::Unreadable(word),
            Ok(query) if query.is_empty() => Self::Nothing,
            Ok(query) => Self::Spans(Same(std::sync::Arc::new(query.matches(timeline)))),
        }
    }
}

/// Tool bar component.
#[component]
pub(crate) fn Tools(chart: Chart, found: Memo<Found>) -> impl IntoView {
    let step = move |forward: bool| {
        let Found::Spans(spans) = found.get_untracked() else { return };
        let selected = untrack(|| chart.selected());
        if let Some(span) = next(&spans.0, selected, forward) {
            navigation::show(chart, span);
        }
    };
    let key = move |event: KeyboardEvent| match event.key().as_str() {
        "Enter" => {
            event.prevent_default();
            step(!event.shift_key());
        }
        "Escape" => {
            chart.query.set(String::new());
            if let Some(canvas) = chart.viewport.canvas.get_untracked() {
                // If the element rejects the focus, the focus does not move.
                drop(canvas.focus());
            }
        }
        _ => {}
    };
    let count = move || match found.get() {
        Found::Nothing => String::new(),
        Found::Unreadable(word) => format!("“{word}” is not understood; for example {EXAMPLE}"),
        Found::Spans(spans) if spans.0.is_empty() => "nothing found".to_owned(),
        Found::Spans(spans) => {
            let position = chart.selected().and_then(|span| spans.0.iter().position(|&other| other == span));
            let total = grouped(spans.0.len() as u64);
            position
                .map_or_else(|| format!("{total} found"), |index| format!("{} of {total}", grouped(index as u64 + 1)))
        }
    };
    let none = move || !matches!(found.get(), Found::Spans(spans) if !spans.0.is_empty());
    let can_fold = move || chart.groups.with(|groups| !groups.is_empty());
    let all_folded = move || {
        let folded = chart.arrangement.with(|arrangement| arrangement.folded.len());
        chart.groups.with(|groups| folded == groups.len())
    };
    let pinned = move || chart.arrangement.with(|arrangement| arrangement.pinned.len());
    view! {
        <div class="gantt-tools">
            <input
                type="search"
                class="gantt-search"
                node_ref=chart.viewport.search
                placeholder="Search actions  /"
                title=format!("For example {EXAMPLE}")
                aria-label="Search actions of this chart"
                spellcheck="false"
                autocomplete="off"
                prop:value=move || chart.query.get()
                on:input=move |event| chart.query.set(event_target_value(&event))
                on:keydown=key
            />
            <Show when=move || !none()>
                <button type="button" class="quiet" aria-label="Previous action found" on:click=move |_| step(false)>"‹"</button>
                <button type="button" class="quiet" aria-label="Next action found" on:click=move |_| step(true)>"›"</button>
            </Show>
            <span class="muted" role="status">{count}</span>
            <span class="muted" role="status" data-testid="gantt-differences">{move || differences(chart)}</span>
            <span class="grow"></span>
            <Show when=move || { pinned() > 0 }>
                <button type="button" class="quiet" on:click=move |_| chart.arrangement.update(|arrangement| arrangement.pinned.clear())>
                    {move || format!("Unpin {}", pinned())}
                </button>
            </Show>
            <Show when=can_fold>
                <button type="button" class="quiet" data-testid="gantt-fold" on:click=move |_| navigation::fold_all(chart)>
                    {move || if all_folded() { "Unfold ranks" } else { "Fold ranks" }}
                </button>
            </Show>
        </div>
    }
}

/// Next or previous match relative to the selected span, with wraparound.
fn next(found: &[usize], selected: Option<usize>, forward: bool) -> Option<usize> {
    let current_index = selected.and_then(|span| found.iter().position(|&other| other == span));
    let count = found.len();
    let at = match (current_index, forward) {
        (None, true) => 0,
        (None, false) => count.checked_sub(1)?,
        (Some(index), true) => (index + 1) % count,
        (Some(match_index), false) => (match_index + count - 1) % count,
    };
    found.get(at).copied()
}

/// Number of differing actions and their total difference as text. Empty if differences are hidden.
fn differences(chart: Chart) -> String {
    let (Some(timeline), Some(inks)) = (chart.timeline.get(), chart.inks.get()) else { return String::new() };
    match &inks.0.colouring {
        Colouring::Differences { against, pairs, aspect } => counted((&timeline, against), pairs, *aspect),
        Colouring::NotComparable { reason } => reason.clone(),
        Colouring::Kinds | Colouring::Search(_) => String::new(),
    }
}

fn counted((timeline, against): (&Timeline, &Timeline), pairs: &Differences, aspect: Aspect) -> String {
    let computes = |span: &usize| SpanKind::from_index(timeline.kind[*span]).is_some_and(SpanKind::is_compute_lane);
    let shares = (0..timeline.len()).filter(computes).filter_map(|span| pairs.at(timeline, against, span, aspect));
    let (mut less, mut more) = (0_u64, 0_u64);
    for (_, share) in shares {
        match Tone::from_share(share) {
            Tone::MuchLess | Tone::Less => less += 1,
            Tone::MuchMore | Tone::More => more += 1,
            Tone::Same | Tone::SequentialWorkers => {}
        }
    }
    let (faster, slower) = match aspect {
        Aspect::Duration => ("faster", "slower"),
        Aspect::End => ("end earlier", "end later"),
    };
    let sum = match aspect {
        Aspect::Duration => format!("; {}", summed(pairs.sum())),
        Aspect::End => String::new(),
    };
    format!(
        "{} of {} actions have a counterpart: {} {faster}, {} {slower}{sum}{}",
        grouped(pairs.matched as u64),
        grouped(pairs.actions as u64),
        grouped(less),
        grouped(more),
        pairs.remainder().unwrap_or_default(),
    )
}

/// Formats the total difference in device-seconds: "−1.20 device-s (−3.10 %) in all".
fn summed((device_ns, share): (f64, f64)) -> String {
    let sign = if device_ns < 0.0 { "−" } else { "+" };
    format!("{sign}{} device-s ({}) in all", three_digits(device_ns.abs() / 1e9), signed_percent(share))
}

#[cfg(test)]
mod tests {
    use super::super::rank_devices::{ComparedDevices, RankDevices};
    use super::super::sample;
    use super::*;

    #[test]
    fn difference_sum_counts_devices() {
        let before = sample::one_f_one_b(2, 3);
        let mut after = before.clone();
        // 1,250 ns instead of 1,000 ns on two devices: 500 device-ns of (2 x 3 x 3,000) x 2 =
        // 36,000.
        after.duration_ns[0] += 250;
        let devices = ComparedDevices { current: RankDevices::Uniform(2), other: RankDevices::Uniform(2) };
        let pairs = Differences::between(&after, &before, &devices);
        let text = counted((&after, &before), &pairs, Aspect::Duration);
        assert!(text.starts_with("12 of 12 actions have a counterpart: 0 faster, 1 slower; +"), "{text}");
        assert!((pairs.sum().0 - 500.0).abs() < 1e-9 && (pairs.sum().1 - 500.0 / 36_000.0).abs() < 1e-12);
        assert_eq!(summed((-1.2e9, -0.031)).replace('\u{202f}', " "), "−1.20 device-s (−3.10 %) in all");
        assert!(counted((&after, &before), &pairs, Aspect::End).ends_with("end later"));
    }

    #[test]
    fn search_wraps_around_matches() {
        let found = [4, 9, 2];
        assert_eq!(next(&found, None, true), Some(4));
        assert_eq!(next(&found, None, false), Some(2));
        assert_eq!(next(&found, Some(9), true), Some(2));
        assert_eq!(next(&found, Some(2), true), Some(4));
        assert_eq!(next(&found, Some(4), false), Some(2));
        assert_eq!(next(&[], None, false), None);
    }

    #[test]
    fn a_query_is_empty_unreadable_or_found() {
        let timeline = sample::one_f_one_b(2, 3);
        assert_eq!(Found::search("  ", Some(&timeline)), Found::Nothing);
        assert_eq!(Found::search("F1", None), Found::Nothing);
        assert_eq!(Found::search("hello", Some(&timeline)), Found::Unreadable("hello".to_owned()));
        let Found::Spans(spans) = Found::search("F1", Some(&timeline)) else { panic!("it can be read") };
        assert_eq!(spans.0.len(), 2);
    }
}
