//! Tooltip of a chart.

use api::planner::timeline::SpanKind;
use leptos::prelude::*;

use super::chart::Chart;
use super::describe::{Details, grouped, has_microbatch};
use super::surface::{Surface, tooltip_style};
use super::{hit, time_text};

/// Tooltip size in px. If the space is unavailable, the tooltip appears on the opposite pointer
/// side.
const EXTENT: (f64, f64) = (250.0, 90.0);

/// Tooltip with title, start, duration and tokens for the span under the pointer.
#[component]
pub(crate) fn Tooltip(chart: Chart) -> impl IntoView {
    let content = Memo::new(move |_| {
        let (x, _) = chart.viewport.pointer.get()?;
        let span = chart.hover.get().filter(|hover| hover.chart == chart.number)?.span;
        let timeline = chart.timeline.get().filter(|timeline| span < timeline.len())?;
        let (start, length) = (timeline.start_ns[span] as f64, timeline.duration_ns[span] as f64);
        let mut lines = vec![time_text::range(start, start + length), time_text::duration(length)];
        let exposed = timeline.span_exposed_ns(span);
        if exposed > 0 {
            lines.push(format!("{} exposed communication", time_text::duration(exposed as f64)));
        }
        let kind = SpanKind::from_index(timeline.kind[span]);
        if kind.is_some_and(has_microbatch)
            && let Some(shape) = timeline.microbatches.get(timeline.microbatch[span] as usize)
            // A schedule without a model has no tokens.
            && shape.tokens > 0
        {
            lines.push(format!("{} tokens", grouped(u64::from(shape.tokens))));
        }
        lines.extend(chart.difference_text(&timeline, span));
        let together = hit::together(&timeline, chart.visible_window(), chart.plot_px(), x - super::rows::HEADER, span);
        if together > 1 {
            lines.push(format!("one of {} spans in this pixel", grouped(together as u64)));
        }
        let title = chart.layout.with(|layout| Details::named(&timeline, span, &layout.0.names).title);
        Some((title, lines))
    });
    let position_style =
        move || tooltip_style(chart.viewport.pointer.get().unwrap_or_default(), chart.viewport.size.get(), EXTENT);
    view! {
        <Show when=move || content.with(Option::is_some)>
            <div class="gantt-tooltip" aria-hidden="true" style=position_style>
                <strong>{move || content.get().map(|content| content.0)}</strong>
                {move || {
                    let lines = content.get().map(|content| content.1).unwrap_or_default();
                    lines.into_iter().map(|line| view! { <span>{line}</span> }).collect_view()
                }}
            </div>
        </Show>
    }
}
