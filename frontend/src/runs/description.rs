//! Text for a run: state, progress, size.

use api::run::{RunOrigin, RunState, RunSummary};
use leptos::prelude::*;

use crate::format;

/// Run state as text and symbol, not only as colour.
#[component]
pub(crate) fn StateBadge(
    #[prop(into)] state: Signal<RunState>,
    /// True if the run ended before its last step.
    #[prop(into)]
    ended_early: Signal<bool>,
    #[prop(optional_no_strip)] exit_code: Option<i32>,
) -> impl IntoView {
    let is_early = move || state.get() == RunState::Ended && ended_early.get();
    let mark = move || if is_early() { "■" } else { mark(state.get()) };
    view! {
        <span class="state" data-state=move || state.get().id()>
            <i aria-hidden="true">{mark}</i>
            {move || if is_early() { "Ended early" } else { state_text(state.get()) }}
            {exit_code.filter(|code| *code != 0).map(|code| format!(", exit code {code}"))}
        </span>
    }
}

const fn state_text(state: RunState) -> &'static str {
    match state {
        RunState::Waiting => "Waiting for its first step",
        RunState::Live => "Live",
        RunState::Stalled => "Stalled",
        RunState::Ended => "Ended",
        RunState::Crashed => "Crashed",
    }
}

const fn mark(state: RunState) -> &'static str {
    match state {
        RunState::Waiting => "○",
        RunState::Live => "●",
        RunState::Stalled => "◐",
        RunState::Ended => "✓",
        RunState::Crashed => "✕",
    }
}

/// True if the run ended before the last step that its log states. The last tenth is not counted, because a log can have
/// only some steps, or count them from 0.
pub(crate) fn has_ended_early(summary: &RunSummary) -> bool {
    let is_before = |total: u64| summary.last_step.is_some_and(|last| (last as f64 + 1.0) < 0.9 * total as f64);
    summary.state == RunState::Ended && summary.total_steps.is_some_and(is_before)
}

/// Describes the origin of a log.
pub(crate) const fn origin_text(origin: RunOrigin) -> &'static str {
    match origin {
        RunOrigin::Live => "sent live",
        RunOrigin::Imported => "imported",
        RunOrigin::Rehearsal => "rehearsal",
    }
}

/// Estimates the remaining time in s from the median step time. Returns `None` if the log does not
/// contain the total step count.
fn remaining_s(summary: &RunSummary) -> Option<f64> {
    let (total, last) = (summary.total_steps?, summary.last_step.unwrap_or(0));
    let left = total.checked_sub(last).filter(|left| *left > 0)?;
    summary.median_step_s.map(|median| median * left as f64).filter(|time| time.is_finite() && *time >= 0.0)
}

/// Formats the remaining time with its basis, for example "about 8 min left at 2.00 s per step".
pub(crate) fn remaining_text(summary: &RunSummary) -> Option<String> {
    let (left_s, step_s) = (remaining_s(summary)?, summary.median_step_s?);
    Some(format!("about {} left at {} per step", clock(left_s), format::seconds(step_s)))
}

/// Formats the progress: "step 120 of 500, 24.0 %".
pub(crate) fn progress_text(summary: &RunSummary) -> String {
    match (summary.last_step, summary.total_steps.filter(|total| *total > 0)) {
        (None, _) => "no step yet".to_owned(),
        (Some(last), None) => format!("step {}", format::count(last)),
        (Some(last), Some(total)) => format!(
            "step {} of {}, {}",
            format::count(last),
            format::count(total),
            format::percent(last as f64 / total as f64)
        ),
    }
}

/// Formats a duration: "8 s", "12 min", "3 h 20 min", "4 d 2 h".
pub(crate) fn clock(seconds: f64) -> String {
    let seconds = if seconds.is_finite() { seconds.max(0.0).round() as u64 } else { 0 };
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    let with = |large: u64, name: &str, small: u64, unit: &str| {
        if small == 0 {
            format!("{large}\u{202f}{name}")
        } else {
            format!("{large}\u{202f}{name} {small}\u{202f}{unit}")
        }
    };
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}\u{202f}s"),
        (0, 0, _) => format!("{minutes}\u{202f}min"),
        (0, _, _) => with(hours, "h", minutes % 60, "min"),
        _ => with(days, "d", hours % 24, "h"),
    }
}

/// Formats the time since `moment_ms` (ms since 1970): "12 s ago".
pub(crate) fn ago(moment_ms: f64, now_ms: f64) -> String {
    let passed = (now_ms - moment_ms) / 1e3;
    if passed < 2.0 { "just now".to_owned() } else { format!("{} ago", clock(passed)) }
}

/// Formats a size in decimal units: "89.9 kB".
pub(crate) fn size(bytes: u64) -> String {
    if bytes < 1_000 {
        return format!("{bytes}\u{202f}B");
    }
    let (unit, name) =
        [(1e9, "GB"), (1e6, "MB")].into_iter().find(|(unit, _)| bytes as f64 >= *unit * 0.9995).unwrap_or((1e3, "kB"));
    format!("{}\u{202f}{name}", format::three_digits(bytes as f64 / unit))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a run at 50 % progress.
    pub(crate) fn summary() -> RunSummary {
        RunSummary {
            id: "ab12".into(),
            name: "Nightly".into(),
            note: None,
            tags: vec!["a100".into()],
            origin: RunOrigin::Live,
            state: RunState::Live,
            scenario: None,
            plan: None,
            created_at: "2026-11-21T00:50:17Z".into(),
            updated_at: None,
            exit_code: None,
            end_reason: None,
            bytes: 89_865,
            points: 250,
            last_step: Some(250),
            total_steps: Some(500),
            median_step_s: Some(2.0),
            traces: 0,
            pinned: false,
            deleted_at: None,
        }
    }

    fn plain(text: &str) -> String {
        text.replace('\u{202f}', " ")
    }

    #[test]
    fn the_rest_is_known_only_where_the_log_says_how_long_it_is() {
        assert_eq!(remaining_s(&summary()), Some(500.0));
        assert_eq!(remaining_s(&RunSummary { total_steps: Some(0), ..summary() }), None);
        assert_eq!(remaining_s(&RunSummary { last_step: Some(600), ..summary() }), None, "past its end");
        assert_eq!(remaining_s(&RunSummary { median_step_s: None, ..summary() }), None);
        assert_eq!(remaining_s(&RunSummary { last_step: None, ..summary() }), Some(1_000.0));
    }

    #[test]
    fn the_rest_follows_the_median_step() {
        assert_eq!(
            remaining_text(&summary()).map(|text| plain(&text)).as_deref(),
            Some("about 8 min left at 2.00 s per step")
        );
    }

    #[test]
    fn a_run_can_end_before_its_last_step() {
        let ended = |last_step, total_steps| {
            has_ended_early(&RunSummary { state: RunState::Ended, last_step, total_steps, ..summary() })
        };
        assert!(ended(Some(49), Some(1_000)));
        assert!(!ended(Some(500), Some(500)));
        assert!(!ended(Some(990), Some(1_000)), "every tenth step is logged");
        assert!(!ended(Some(9), Some(10)), "steps from 0");
        assert!(!ended(Some(49), None));
        assert!(!has_ended_early(&summary()), "a live run");
    }

    #[test]
    fn progress_divides_by_no_zero() {
        assert_eq!(plain(&progress_text(&summary())), "step 250 of 500, 50.0 %");
        assert_eq!(progress_text(&RunSummary { total_steps: Some(0), ..summary() }), "step 250");
        assert_eq!(progress_text(&RunSummary { last_step: None, ..summary() }), "no step yet");
    }

    #[test]
    fn durations_and_sizes() {
        for (seconds, text) in
            [(8.2, "8 s"), (61.0, "1 min"), (7_200.0, "2 h"), (12_000.0, "3 h 20 min"), (352_800.0, "4 d 2 h")]
        {
            assert_eq!(plain(&clock(seconds)), text);
        }
        assert_eq!(plain(&ago(1_000.0, 13_000.0)), "12 s ago");
        assert_eq!(ago(1_000.0, 500.0), "just now", "clocks differ");
        for (bytes, text) in [(12, "12 B"), (89_865, "89.9 kB"), (999_900, "1.00 MB"), (2_147_483_648, "2.15 GB")] {
            assert_eq!(plain(&size(bytes)), text);
        }
    }
}
