//! Charts of step metrics.

use std::collections::BTreeSet;

use api::run::{Comparison, OutlierReason};
use leptos::prelude::*;

use super::headline::figure_text;
use crate::charts::{Dash, Level, MAX_POINTS, Measured, Shade, StepChart, StepPlot, Stroke};
use crate::format;
use crate::runs::{Metric, Points, RunMonitor, broken_at, share_out, thin, use_run_monitor};

/// Colours for run segments and for runs. They also differ in lightness.
pub(super) const SHADES: [Shade; 6] = [
    ("#0072b2", "#56a5e0"),
    ("#b8542a", "#ee8866"),
    ("#117755", "#44bb99"),
    ("#882255", "#dd77aa"),
    ("#7a6a12", "#ccbb44"),
    ("#4455aa", "#8899ee"),
];
/// Colour for the compared plan.
const INK: Shade = ("#3d4652", "#c3cad3");
/// Maximum number of segments with separate colours. More segments are drawn as a single line with
/// gaps.
const MAX_PARTS: usize = 6;
/// Maximum number of outliers in a chart. Outliers farthest from the median come first.
const MAX_EXCEPTIONS: usize = 400;
/// Points per px of chart width: minimum and maximum per pixel column, plus a margin.
const PER_PX: f64 = 2.5;

/// Step charts and checkboxes that select them.
#[component]
pub(super) fn Charts() -> impl IntoView {
    let monitor = use_run_monitor();
    let available = Memo::new(move |_| {
        let available_metrics =
            |points: &Points| Metric::ALL.into_iter().filter(|metric| points.has_metric(*metric)).collect::<Vec<_>>();
        monitor.feed.with_points(available_metrics)
    });
    let visible = Memo::new(move |_| {
        let selected = monitor.view.with(|view| view.charts.clone());
        let is_visible =
            |metric: &Metric| selected.as_ref().map_or(metric.is_usual(), |metrics| metrics.contains(metric));
        available.get().into_iter().filter(is_visible).collect::<Vec<_>>()
    });
    let toggle = move |metric: Metric| {
        let mut now = visible.get_untracked();
        match now.iter().position(|known| *known == metric) {
            Some(index) => drop(now.remove(index)),
            None => now.push(metric),
        }
        now.sort_unstable();
        monitor.view.update(|view| view.charts = Some(now));
    };
    let choices = move || {
        let checkbox = |metric: Metric| {
            view! {
                <label class="check">
                    <input type="checkbox" data-testid=format!("show-{}", metric.id()) prop:checked=move || visible.with(|current| current.contains(&metric)) on:change=move |_| toggle(metric) />
                    {metric.title()}
                </label>
            }
        };
        available.get().into_iter().map(checkbox).collect_view()
    };
    let has_points = Memo::new(move |_| !available.with(Vec::is_empty));
    view! {
        <Show
            when=move || has_points.get()
            fallback=|| view! { <div class="empty waiting"><p>"No step has arrived yet. The charts begin with the first."</p></div> }
        >
            <div class="chart-choice">
                <fieldset class="ticks"><legend class="visually-hidden">"Charts"</legend>{choices}</fieldset>
                <StepRange />
            </div>
            <div class="run-charts">
                <For each=move || visible.get() key=|metric| *metric let:metric>
                    <MetricChart metric=metric />
                </For>
            </div>
        </Show>
    }
}

/// Fields that select the step range.
#[component]
fn StepRange() -> impl IntoView {
    let monitor = use_run_monitor();
    let all = Memo::new(move |_| {
        monitor.feed.with_points(|points| {
            let steps = || points.samples().iter().map(|sample| sample.step);
            Some((steps().min()?, steps().max()?))
        })
    });
    let end = move |bound: fn((u64, u64)) -> u64| {
        move || monitor.view.with(|view| view.steps).map(|steps| bound(steps).to_string()).unwrap_or_default()
    };
    let set = move |event, bound_index: usize| {
        let Some((first, last)) = all.get_untracked() else { return };
        let typed = event_target_value(&event).trim().parse::<u64>().ok();
        monitor.view.update(|view| {
            let (from, to) = view.steps.unwrap_or((first, last));
            let (from, to) =
                if bound_index == 0 { (typed.unwrap_or(first), to) } else { (from, typed.unwrap_or(last)) };
            // Store no range for the full run, because the run may still grow. An explicit range
            // stays fixed.
            view.steps = (from <= to && (from, to) != (first, last)).then_some((from, to));
        });
    };
    let hint = move |select_bound: fn((u64, u64)) -> u64| {
        move || all.get().map(|all| select_bound(all).to_string()).unwrap_or_default()
    };
    let recent = move |_| {
        if let Some((first, last)) = all.get_untracked() {
            monitor.view.update(|view| view.steps = Some((last.saturating_sub(99).max(first), last)));
        }
    };
    view! {
        <fieldset class="step-range">
            <legend class="visually-hidden">"Steps that are drawn"</legend>
            <label>"Steps "<input inputmode="numeric" size="7" aria-label="First step drawn" placeholder=hint(|all| all.0) prop:value=end(|steps| steps.0) on:change=move |event| set(event, 0) /></label>
            <label>"to "<input inputmode="numeric" size="7" aria-label="Last step drawn" placeholder=hint(|all| all.1) prop:value=end(|steps| steps.1) on:change=move |event| set(event, 1) /></label>
            <button type="button" class="quiet" on:click=recent>"Last 100"</button>
            <button type="button" class="quiet" disabled=move || monitor.view.with(|view| view.steps.is_none()) on:click=move |_| monitor.view.update(|view| view.steps = None)>"All"</button>
        </fieldset>
    }
}

#[component]
fn MetricChart(metric: Metric) -> impl IntoView {
    let monitor = use_run_monitor();
    let width = RwSignal::new(560.0);
    let plot = Memo::new(move |_| step_plot(monitor, metric, width.get()));
    let median = Memo::new(move |_| {
        let quantity = metric.quantity()?;
        monitor.comparison.with(|comparison| {
            let comparison = comparison.as_ref().filter(|comparison| comparison.job.is_comparable())?;
            let prediction = comparison.predictions.iter().find(|prediction| prediction.quantity == quantity)?;
            Some((prediction.measured?, prediction.band.value, prediction.error))
        })
    });
    let own = Memo::new(move |_| monitor.feed.with_points(|points| figure_text(points, metric)));
    let facts = move || {
        let compared = median.get().map(|(measured, predicted, error)| {
            let error = error.map(|error| format!(", {}", format::signed_percent(error))).unwrap_or_default();
            format!("median {}, predicted {}{error}", metric.text(measured), metric.text(predicted))
        });
        compared.or_else(|| own.get())
    };
    // A single value without a prediction needs no axes: the title states it.
    let is_single = Memo::new(move |_| plot.with(|plot| plot.count() == 1 && plot.levels.is_empty()));
    let label = Signal::derive(move || {
        let points = plot.with(StepPlot::count);
        let facts = facts().map(|facts| format!("; {facts}")).unwrap_or_default();
        format!("{} over the steps: {points} points drawn{facts}", metric.title())
    });
    view! {
        <section class="card chart-card">
            <header class="card-title">
                <h2>{metric.title()}</h2>
                <span class="muted">{facts}</span>
            </header>
            <Show when=move || !is_single.get()>
                <StepChart plot=plot label=label test_id=format!("chart-{}", metric.id()) width=width />
            </Show>
        </section>
    }
}

/// Line segments as (step, value) points.
type Parts = Vec<Vec<(f64, f64)>>;

/// Reduces the points in all segments together to at most `most`.
fn thinned(parts: Vec<Vec<(f64, f64)>>, max_points: usize) -> Vec<Vec<(f64, f64)>> {
    let shares = share_out(&parts.iter().map(Vec::len).collect::<Vec<_>>(), max_points);
    parts.iter().zip(shares).map(|(part, share)| thin(part, share)).collect()
}

/// Joins segments into a line with gaps.
fn joined(parts: Vec<Vec<(f64, f64)>>) -> Vec<(f64, f64)> {
    let mut points: Vec<(f64, f64)> = Vec::new();
    for part in parts {
        if let (Some(last), Some(_)) = (points.last().copied(), part.first()) {
            points.push((last.0, f64::NAN));
        }
        points.extend(part);
    }
    points
}

/// Returns the first step of every segment except the first segment.
fn restarts(points: &Points, steps: Option<(u64, u64)>) -> Vec<f64> {
    let within = |step: u64| steps.is_none_or(|(from, to)| (from..=to).contains(&step));
    let pairs = points.samples().windows(2).filter(|pair| pair[0].segment != pair[1].segment);
    pairs.map(|pair| pair[1].step).filter(|step| within(*step)).map(|step| step as f64).collect()
}

fn step_plot(monitor: RunMonitor, metric: Metric, width_px: f64) -> StepPlot {
    let steps = monitor.view.with(|view| view.steps);
    let max_points = ((width_px * PER_PX) as usize).clamp(600, MAX_POINTS);
    let comparison = monitor.comparison.get();
    let (left_out, mut exceptional_points) = exceptions(monitor, comparison.as_deref(), metric, steps);
    let segments =
        monitor.feed.with_points(|points| points.series_without(metric, steps, |row| left_out.contains(&row)));
    let others: Vec<(String, Parts)> = monitor
        .others
        .get()
        .into_iter()
        .map(|other| {
            let name = other.feed.detail.with(|detail| detail.as_ref().map(|detail| detail.summary.name.clone()));
            let parts = other.feed.with_points(|points| points.series(metric, steps));
            (name.unwrap_or_else(|| other.feed.id()), parts.into_iter().map(|(_, part)| part).collect())
        })
        .collect();
    let share = max_points / (1 + others.len());
    let (numbers, parts): (Vec<u32>, Vec<Vec<(f64, f64)>>) = segments.into_iter().unzip();
    let parts: Vec<_> = thinned(parts, share)
        .into_iter()
        .zip(&numbers)
        .map(|(part, number)| broken_at(part, &left_out_steps(comparison.as_deref(), metric, *number)))
        .collect();
    let mut tracks: Vec<Measured> = if others.is_empty() && parts.len() > 1 && parts.len() <= MAX_PARTS {
        let part = |(number, points): (u32, Vec<(f64, f64)>)| Measured {
            name: format!("part {}", number + 1),
            shade: SHADES[number as usize % SHADES.len()],
            points,
        };
        numbers.into_iter().zip(parts).map(part).collect()
    } else {
        let name = match monitor.summary() {
            Some(summary) if !others.is_empty() => summary.name,
            _ => "measured".to_owned(),
        };
        vec![Measured { name, shade: SHADES[0], points: joined(parts) }]
    };
    for (index, (name, parts)) in others.into_iter().enumerate() {
        let shade = SHADES[(index + 1) % SHADES.len()];
        tracks.push(Measured { name, shade, points: joined(thinned(parts, share)) });
    }
    tracks.retain(|track| !track.points.is_empty());
    exceptional_points.sort_by(|first, other| other.3.total_cmp(&first.3));
    exceptional_points.truncate(MAX_EXCEPTIONS);
    StepPlot {
        tracks,
        levels: levels(monitor, comparison.as_deref(), metric),
        exceptional_points: exceptional_points.into_iter().map(|(step, value, text, _)| (step, value, text)).collect(),
        left_out: left_out.len(),
        restarts: monitor.feed.with_points(|points| restarts(points, steps)),
        steps: extent(monitor, steps),
        unit: metric.unit(),
        is_clipped: metric == Metric::StepTime,
    }
}

/// First and last step over all runs in the charts.
fn extent(monitor: RunMonitor, steps: Option<(u64, u64)>) -> Option<(f64, f64)> {
    let within = |step: &u64| steps.is_none_or(|(from, to)| (from..=to).contains(step));
    let ends = |points: &Points| {
        let steps = || points.samples().iter().map(|sample| sample.step).filter(within);
        Some((steps().min()?, steps().max()?))
    };
    let current_ends = monitor.feed.with_points(ends);
    let others = monitor.others.get().into_iter().filter_map(|other| other.feed.with_points(ends));
    let joined =
        current_ends.into_iter().chain(others).reduce(|first, other| (first.0.min(other.0), first.1.max(other.1)));
    joined.map(|(first, last)| (first as f64, last as f64))
}

/// Outlier: step, value, text, distance from the median.
type Exception = (f64, f64, String, f64);

/// Returns the rows of outliers, and the outliers to draw.
fn exceptions(
    monitor: RunMonitor,
    comparison: Option<&Comparison>,
    metric: Metric,
    steps: Option<(u64, u64)>,
) -> (BTreeSet<u64>, Vec<Exception>) {
    let Some(comparison) = comparison.filter(|_| metric.follows_step_time()) else { return <_>::default() };
    let within = |step: u64| steps.is_none_or(|(from, to)| (from..=to).contains(&step));
    let visible_outliers = || comparison.outliers.iter().filter(|outlier| within(outlier.step));
    let rows = visible_outliers().map(|outlier| outlier.row).collect();
    let drawn = monitor.feed.with_points(|points| {
        let samples = points.samples();
        let drawn = visible_outliers().filter_map(|outlier| {
            let index = samples.binary_search_by_key(&outlier.row, |sample| sample.row).ok()?;
            let value = samples[index].value(metric)?;
            let reason = match outlier.reason {
                OutlierReason::WarmUp => "warm-up",
                OutlierReason::Slow => "far slower than the median",
                OutlierReason::Fast => "far faster than the median",
            };
            let text = format!("step {}: {}<br>outlier: {reason}", format::count(outlier.step), metric.text(value));
            Some((outlier.step as f64, value, text, outlier.deviations.abs()))
        });
        drawn.collect()
    });
    (rows, drawn)
}

/// Steps of the outliers of a segment, which the line of a metric leaves out.
fn left_out_steps(comparison: Option<&Comparison>, metric: Metric, segment: u32) -> BTreeSet<u64> {
    let outliers = comparison.filter(|_| metric.follows_step_time()).map_or(&[][..], |comparison| &comparison.outliers);
    outliers.iter().filter(|outlier| outlier.segment == segment).map(|outlier| outlier.step).collect()
}

fn levels(monitor: RunMonitor, comparison: Option<&Comparison>, metric: Metric) -> Vec<Level> {
    let Some(quantity) = metric.quantity() else { return Vec::new() };
    // A plan for a different job gives no prediction for this run.
    let comparison = comparison.filter(|comparison| comparison.job.is_comparable());
    let level = |comparison: &Comparison, name: String, shade: Shade, dash: Dash| {
        let prediction = comparison.predictions.iter().find(|prediction| prediction.quantity == quantity)?;
        let band = &prediction.band;
        Some(Level { name, shade, dash, value: band.value, band: (band.low, band.high) })
    };
    let mut levels: Vec<Level> = comparison
        .and_then(|comparison| level(comparison, "predicted, with its band".to_owned(), INK, Dash::Dashed))
        .into_iter()
        .collect();
    let next = comparison.and_then(|comparison| {
        let prediction = comparison.predictions.iter().find(|prediction| prediction.quantity == quantity)?;
        let next = prediction.next.as_ref()?;
        let name = "expected range of the next steps (from the measured steps)".to_owned();
        Some(Level { name, shade: INK, dash: Dash::Dotted, value: next.value, band: (next.low, next.high) })
    });
    levels.extend(next);
    let wanted = monitor.view.with(|view| view.plans.clone());
    monitor.plans.with(|plans| {
        for planner in
            wanted.iter().filter(|planner| comparison.is_some_and(|comparison| comparison.planner != **planner))
        {
            let Some(other) = plans.get(planner) else { continue };
            levels.extend(level(
                other,
                planner.title().to_owned(),
                Stroke::for_planner(*planner).colours(),
                Dash::Dotted,
            ));
        }
    });
    levels
}

#[cfg(test)]
mod tests {
    use api::run::RunPoint;

    use super::*;

    #[test]
    fn parts_are_joined_with_a_break() {
        let line = joined(vec![vec![(1.0, 5.0), (2.0, 6.0)], vec![], vec![(2.0, 7.0)]]);
        assert_eq!(line.len(), 4);
        assert!(line[2].1.is_nan() && line[3] == (2.0, 7.0));
        assert_eq!(joined(vec![]), []);
    }

    #[test]
    fn all_parts_together_are_few_enough() {
        let long: Vec<(f64, f64)> = (0..30_000).map(|index| (f64::from(index), f64::from(index % 7))).collect();
        let parts = thinned(vec![long.clone(), long[..10_000].to_vec()], 2_000);
        assert!(parts.iter().map(Vec::len).sum::<usize>() <= 2_000);
        assert!(parts[0].len() > 2 * parts[1].len());
    }

    #[test]
    fn a_restart_is_where_the_next_part_begins() {
        let point = |row, segment, step| RunPoint { row, segment, step, ..RunPoint::default() };
        let mut points = Points::default();
        points.add(&[point(1, 0, 1), point(2, 0, 2), point(3, 1, 2), point(4, 2, 40)]);
        assert_eq!(restarts(&points, None), [2.0, 40.0]);
        assert_eq!(restarts(&points, Some((1, 10))), [2.0]);
    }
}
