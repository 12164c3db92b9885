//! Colour legend.

use std::sync::Arc;

use api::planner::timeline::{SpanKind, Timeline};
use leptos::prelude::*;

use super::colours::Tone;
use super::observers::{theme, theme_version};
use super::palette::{LEGEND, fill, outline};
use super::shared;

/// Span kinds of the page's charts with their colours. Hatching marks idle time.
#[component]
pub(crate) fn Legend(
    /// Timelines of the page. The legend lists only kinds in these timelines, or all kinds for
    /// `None`.
    #[prop(optional, into)]
    timelines: Option<Signal<Vec<Arc<Timeline>>>>,
) -> impl IntoView {
    let version = theme_version();
    let present = Memo::new(move |_| {
        let Some(timelines) = timelines else { return [true; LEGEND.len()] };
        timelines.with(|timelines| {
            LEGEND.map(|(entry, _)| {
                let colour = fill(entry, theme());
                let drawn_so =
                    |&number: &u8| SpanKind::from_index(number).is_some_and(|kind| fill(kind, theme()) == colour);
                let is_communication = entry == SpanKind::SendForward;
                timelines.iter().any(|timeline| {
                    timeline.kind.iter().any(drawn_so) || is_communication && !timeline.exposed_ns.is_empty()
                })
            })
        })
    });
    let differences = shared::differences_enabled();
    let theme_changed = version.clone();
    let tones = move || {
        theme_changed.track();
        let theme = theme();
        let entry = |tone: Tone| {
            let style = format!("background:{0};border-color:{0}", tone.fill(theme));
            view! { <li><i class="gantt-key" style=style aria-hidden="true"></i>{tone.label()}</li> }
        };
        Tone::ALL.map(entry).collect_view()
    };
    let kinds = move || {
        version.track();
        let theme = theme();
        let entries = LEGEND.into_iter().zip(present.get()).filter(|&(_, present)| present);
        entries
            .map(|((kind, name), _)| {
                let edge = outline(kind, theme).unwrap_or(fill(kind, theme));
                let style = format!("background:{};border-color:{edge}", fill(kind, theme));
                let explanation = (kind == SpanKind::SendForward)
                    .then_some("Lower edge of a bar: communication inside the action that its computation waits for, drawn together at the end of the action. Below the bar: sends between stages. On a row: gradient sync.");
                view! { <li title=explanation><i class="gantt-key" style=style aria-hidden="true"></i>{name}</li> }
            })
            .collect_view()
    };
    view! {
        <ul class="gantt-legend" data-testid="gantt-legend">
            {move || if differences.get() { tones().into_any() } else { kinds().into_any() }}
            <li><i class="gantt-key gantt-key-idle" aria-hidden="true"></i>"idle"</li>
            <li><i class="gantt-key gantt-key-critical" aria-hidden="true"></i>"critical path"</li>
        </ul>
    }
}
