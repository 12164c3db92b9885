//! Spans as a table, for screen readers and for exact values.

use api::planner::timeline::{SpanKind, Timeline};
use leptos::prelude::*;

use super::chart::Chart;
use super::describe::{grouped, has_microbatch, name, waited_ns};
use super::{TimeWindow, lod, navigation, time_text};

/// Table rows per page.
const PAGE: usize = 100;

/// Number of spans that overlap the window.
fn count(timeline: &Timeline, window: TimeWindow) -> usize {
    lanes(timeline).map(|lane| lod::visible(timeline, lane, window).len()).sum()
}

/// Spans on a table page, ordered by lane.
fn page_spans(timeline: &Timeline, window: TimeWindow, page: usize) -> Vec<usize> {
    lanes(timeline).flat_map(|lane| lod::visible(timeline, lane, window)).skip(page * PAGE).take(PAGE).collect()
}

fn lanes(timeline: &Timeline) -> impl Iterator<Item = std::ops::Range<usize>> {
    timeline.lane_offsets.windows(2).map(|ends| ends[0] as usize..ends[1] as usize)
}

/// Table cells for a span: rank, kind, stage, microbatch, start, duration, wait time, tokens.
fn cells(timeline: &Timeline, span: usize) -> [String; 8] {
    let kind = SpanKind::from_index(timeline.kind[span]);
    let microbatch_text = |text: String| if kind.is_some_and(has_microbatch) { text } else { String::new() };
    let microbatch = timeline.microbatch[span];
    let tokens = timeline.microbatches.get(microbatch as usize).map_or(0, |shape| shape.tokens);
    let start = timeline.start_ns[span] as f64;
    let (from, _, unit) = time_text::interval(start, timeline.end_ns(span) as f64);
    [
        timeline.span_rank(span).to_string(),
        kind.map_or_else(String::new, |kind| name(kind).to_owned()),
        microbatch_text(timeline.stage[span].to_string()),
        microbatch_text(microbatch.to_string()),
        format!("{from} {unit}"),
        time_text::duration(timeline.duration_ns[span] as f64),
        time_text::duration(waited_ns(timeline, span) as f64),
        microbatch_text(grouped(u64::from(tokens))),
    ]
}

/// Number of visible columns. Pages with abstract time units hide the tokens.
fn columns() -> usize {
    if time_text::measure() == time_text::Measure::Physical { HEADS.len() } else { HEADS.len() - 1 }
}

const HEADS: [&str; 8] = ["Rank", "Action", "Stage", "Microbatch", "Start", "Duration", "Waited", "Tokens"];

/// Paginated table of the spans in the window, 100 per page. Computed only while it is open.
#[component]
pub(crate) fn SpanTable(chart: Chart) -> impl IntoView {
    let open = RwSignal::new(false);
    let page = RwSignal::new(0_usize);
    let page_content = move || {
        let timeline = chart.timeline.get().filter(|_| open.get())?;
        let window = chart.visible_window();
        let count = count(&timeline, window);
        let last = count.saturating_sub(1) / PAGE;
        let page = page.get().min(last);
        Some((timeline, window, count, page, last))
    };
    let body = move || {
        let Some((timeline, window, count, at, last)) = page_content() else { return ().into_any() };
        let rows = page_spans(&timeline, window, at)
            .into_iter()
            .map(|span| {
                let [rank, action_name, rest @ ..] = cells(&timeline, span);
                let is_selected = move || chart.selected() == Some(span);
                view! {
                    <tr aria-selected=move || is_selected().to_string()>
                        <td>{rank}</td>
                        <td>
                            <button type="button" on:click=move |_| navigation::show(chart, span)>{action_name}</button>
                        </td>
                        {rest.into_iter().take(columns() - 2).map(|cell| view! { <td>{cell}</td> }).collect_view()}
                        {chart.difference_text(&timeline, span).map(|difference| view! { <td>{difference}</td> })}
                    </tr>
                }
            })
            .collect_view();
        let compares = chart.inks.with(|inks| inks.as_ref().is_some_and(|inks| inks.0.compares()));
        let first = if count == 0 { 0 } else { at * PAGE + 1 };
        let range = format!(
            "{}–{} of {}",
            grouped(first as u64),
            grouped((at * PAGE + PAGE).min(count) as u64),
            grouped(count as u64)
        );
        view! {
            <div class="gantt-table-scroll" tabindex="0" role="region" aria-label="Spans in the window">
                <table>
                    <thead>
                        <tr>
                            {HEADS.into_iter().take(columns()).map(|head| view! { <th scope="col">{head}</th> }).collect_view()}
                            {compares.then(|| view! { <th scope="col">"Against the baseline"</th> })}
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
            <p class="gantt-pages">
                <button type="button" disabled={at == 0} on:click=move |_| page.set(at.saturating_sub(1))>"Previous"</button>
                <span aria-live="polite">{range}</span>
                <button type="button" disabled={at >= last} on:click=move |_| page.set(at + 1)>"Next"</button>
            </p>
        }
        .into_any()
    };
    view! {
        <details
            class="gantt-table"
            on:toggle=move |event| open.set(event_target::<web_sys::Element>(&event).has_attribute("open"))
        >
            <summary>"Table view"</summary>
            {body}
        </details>
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn pages_list_every_visible_span_exactly_once() {
        let timeline = sample::one_f_one_b(4, 40);
        let window = TimeWindow::fit(timeline.makespan_ns);
        // 4 x 80 compute spans and 6 x 40 sends.
        assert_eq!(count(&timeline, window), 560);
        let seen: Vec<usize> = (0..6).flat_map(|page| page_spans(&timeline, window, page)).collect();
        assert_eq!(seen, (0..560).collect::<Vec<_>>());
        assert_eq!(page_spans(&timeline, window, 5).len(), 60);
        assert!(page_spans(&timeline, window, 6).is_empty());
    }

    #[test]
    fn a_narrow_window_lists_only_its_spans() {
        let timeline = sample::one_f_one_b(2, 3);
        // Rank 0 computes F0 until 1000. No other span runs before.
        assert_eq!(page_spans(&timeline, TimeWindow { start_ns: 0.0, end_ns: 900.0 }, 0), [0]);
    }

    #[test]
    fn table_row_matches_chart() {
        let timeline = sample::one_f_one_b(2, 3);
        assert_eq!(
            cells(&timeline, 2),
            ["0", "backward", "0", "0", "4.20 µs", "2.00 µs", "2.20 µs", "4,096"].map(String::from)
        );
    }
}
