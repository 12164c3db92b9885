//! Key figures of a prepared scenario, and miniature timelines of its plans.

use std::fmt::Write as _;

use api::front_page::{Headline, HeadlinePlan};
use api::planner::outcome::ENGINE;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use crate::format;

/// Row height for a rank, including the gap below, in pixels.
const ROW: usize = 7;
const BAR: usize = 6;
/// Gap between two plans in pixels.
const GAP: usize = 4;
/// CSS class by span kind number.
const KINDS: [&str; 8] = ["f", "b", "i", "w", "c", "c", "c", "o"];

/// Shows step time and MFU for the fastest plan and the step time of the baseline. It names the
/// engine if the figures come from another engine version.
#[component]
pub(super) fn HeadlineMetrics(headline: Headline) -> impl IntoView {
    let Headline { engine, best, baseline, is_at_risk, .. } = headline;
    let baseline = baseline.map(|plan| {
        let slowest = if plan.planner == ONE_F_ONE_B { "" } else { "slowest " };
        format!(", {slowest}{} {}", plan.planner, format::seconds(plan.iteration_s))
    });
    let old = (engine != ENGINE).then(|| format!(" · as of {engine}"));
    view! {
        <span class="tile-figures">
            {best.planner}" "<b>{format::seconds(best.iteration_s)}</b>{baseline}
            {is_at_risk.then(|| view! { <span class="slower">" · ! At risk of running out of memory"</span> })}
            <span class="muted">{format!(" · MFU {}", format::percent(best.mfu))}{old}</span>
        </span>
    }
}

/// Name of the usual baseline.
const ONE_F_ONE_B: &str = PlannerKind::OneFOneB.short_title();

/// Returns the speedup of the fastest plan over the baseline with the name of the baseline: 1F1B, or the slowest plan.
/// Returns `None` for a gain below 0.5 %.
pub(super) fn gain(headline: &Headline) -> Option<(String, &'static str)> {
    let baseline = headline.baseline.as_ref()?;
    let name = if baseline.planner == ONE_F_ONE_B { "vs. 1F1B" } else { "vs. slowest" };
    headline.gain.filter(|gain| *gain >= 1.005).map(|gain| (format::speedup(gain), name))
}

/// Explains the colours of the strips.
pub(super) fn legend() -> impl IntoView {
    let entries = [
        ("f", "forward"),
        ("b", "backward"),
        ("i", "input gradient"),
        ("w", "weight gradient"),
        ("c", "communication"),
        ("o", "optimizer"),
    ];
    let entries = entries.map(|(class, name)| {
        let shape = format!("<rect class=\"{class}\" width=\"10\" height=\"10\"/>");
        view! { <li><svg class="strips key" viewBox="0 0 10 10" aria-hidden="true" inner_html=shape></svg>{name}</li> }
    });
    view! { <ul class="chart-legend strips-legend">{entries.into_iter().collect_view()}</ul> }
}

/// Returns an image with the baseline above the fastest plan.
pub(super) fn strips(headline: &Headline) -> impl IntoView + use<> {
    let (shapes, width, height) = picture(headline);
    let description = headline.baseline.as_ref().map_or_else(
        || format!("First iteration of {}", headline.best.planner),
        |baseline| format!("First iteration of {} above that of {}", baseline.planner, headline.best.planner),
    );
    let view_box = format!("0 0 {width} {height}");
    view! {
        <svg class="strips" viewBox=view_box preserveAspectRatio="none" role="img" aria-label=description inner_html=shapes></svg>
    }
}

/// Returns the SVG shapes, width and height.
fn picture(headline: &Headline) -> (String, usize, usize) {
    let plans: Vec<(&HeadlinePlan, &str)> = match &headline.baseline {
        Some(baseline) => vec![(baseline, "faint"), (&headline.best, "")],
        None => vec![(&headline.best, "")],
    };
    let width = plans.iter().flat_map(|(plan, _)| &plan.strip).map(String::len).max().unwrap_or(1);
    let (mut shapes, mut top) = (String::new(), 0);
    for (plan, class) in plans {
        // `write!` to a string cannot fail.
        let _ = write!(shapes, "<g class=\"{class}\">");
        for rank in &plan.strip {
            draw(&mut shapes, rank, top);
            top += ROW;
        }
        shapes.push_str("</g>");
        top += GAP;
    }
    (shapes, width, top.saturating_sub(GAP).max(1))
}

/// Draws adjacent cells of the same kind as a single bar.
fn draw(shapes: &mut String, rank: &str, top: usize) {
    let mut left = 0;
    for run in rank.as_bytes().chunk_by(|a, b| a == b) {
        let kind = run[0].checked_sub(b'0').and_then(|number| KINDS.get(usize::from(number)));
        if let Some(kind) = kind {
            let width = run.len();
            let _ =
                write!(shapes, "<rect class=\"{kind}\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{BAR}\"/>");
        }
        left += run.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(strip: &[&str]) -> HeadlinePlan {
        let strip = strip.iter().map(|&rank| rank.to_owned()).collect();
        HeadlinePlan { planner: "1F1B".to_owned(), iteration_s: 2.0, mfu: 0.4, strip }
    }

    #[test]
    fn a_picture_has_a_bar_per_run_and_both_plans() {
        let headline = Headline {
            engine: String::new(),
            best: plan(&["001."]),
            baseline: Some(plan(&["00.11", ".<x\">"])),
            gain: Some(1.25),
            is_at_risk: false,
        };
        let (shapes, width, height) = picture(&headline);
        assert_eq!((width, height), (5, 3 * ROW + GAP));
        assert_eq!(shapes.matches("<rect").count(), 4, "signs that are no kind are not drawn: {shapes}");
        assert!(shapes.contains("<rect class=\"b\" x=\"3\" y=\"0\" width=\"2\" height=\"6\"/>"));
        assert!(shapes.contains("<rect class=\"f\" x=\"0\" y=\"18\" width=\"2\" height=\"6\"/>"));
        assert_eq!(gain(&headline), Some(("1.25×".to_owned(), "vs. 1F1B")));
        let slowest = HeadlinePlan { planner: "HotSPa".to_owned(), ..plan(&["0"]) };
        let other = Headline { baseline: Some(slowest), ..headline.clone() };
        assert_eq!(gain(&other), Some(("1.25×".to_owned(), "vs. slowest")));
        assert_eq!(gain(&Headline { gain: Some(1.0), ..headline }), None);
    }
}
