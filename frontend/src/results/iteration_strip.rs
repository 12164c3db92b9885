//! Bar chart of iteration times. A click selects the iteration.

use api::planner::outcome::Planned;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::ranking;
use crate::explore::use_explore;
use crate::format;

/// Returns the bar index after an arrow key.
fn moved(from: usize, key: &str, count: usize) -> Option<usize> {
    let last = count.checked_sub(1)?;
    match key {
        "ArrowLeft" => from.checked_sub(1),
        "ArrowRight" => Some(from + 1).filter(|&to| to <= last),
        "Home" => Some(0),
        "End" => Some(last),
        _ => None,
    }
}

/// Bars for the selected planner. A mark on each bar shows the baseline.
#[component]
pub(super) fn IterationStrip() -> impl IntoView {
    let explore = use_explore();
    let selected = Memo::new(move |_| ranking::selected_planner(&explore.results(), explore.view.get().planner));
    let baseline = Memo::new(move |_| ranking::baseline_planner(&explore.results(), explore.view.get().baseline));
    let times = move |planner: Option<_>| -> Vec<f64> {
        let planned = planner.and_then(|planner| explore.planned(planner));
        planned
            .map(|planned| planned.iterations.iter().map(|iteration| iteration.iteration_s).collect())
            .unwrap_or_default()
    };
    let bars = Memo::new(move |_| times(selected.get()));
    let marks = Memo::new(move |_| times(baseline.get().filter(|planner| Some(*planner) != selected.get())));
    let max_seconds =
        Memo::new(move |_| bars.with(|bars| marks.with(|marks| bars.iter().chain(marks).copied().fold(0.0, f64::max))));
    let current_iteration = Memo::new(move |_| explore.displayed.with(|content| content.iteration as usize));
    let strategies = Memo::new(move |_| {
        let planned = selected.get().and_then(|planner| explore.planned(planner));
        planned.map(|planned| strategies(&planned)).unwrap_or_default()
    });
    let strategy_at = move |index: usize| {
        strategies.with(|known| known.iter().find(|known| known.iterations.contains(&index)).cloned())
    };
    let on_key = move |event: web_sys::KeyboardEvent| {
        if let Some(to) = moved(current_iteration.get_untracked(), &event.key(), bars.with_untracked(Vec::len)) {
            event.prevent_default();
            explore.show_iteration(to as u32);
            focus_bar(to);
        }
    };
    let bar = move |(index, seconds): (usize, f64)| {
        let share = move |seconds: f64| if max_seconds.get() > 0.0 { 100.0 * seconds / max_seconds.get() } else { 0.0 };
        let strategy = strategy_at(index);
        let label = format!("Iteration {index}: {}", format::seconds(seconds));
        let label = match &strategy {
            Some(strategy) => format!("{label}, strategy {}: {}", letter(strategy.number), strategy.label),
            None => label,
        };
        let mark = move || marks.with(|marks| marks.get(index).copied());
        view! {
            <button
                class="column"
                id=format!("iteration-{index}")
                data-testid=format!("iteration-{index}")
                data-value=seconds.to_string()
                data-strategy=strategy.map(|strategy| (strategy.number % COLOURS).to_string())
                title=label.clone()
                aria-label=label
                aria-pressed=move || (current_iteration.get() == index).to_string()
                tabindex=move || if current_iteration.get() == index { "0" } else { "-1" }
                on:click=move |_| explore.show_iteration(index as u32)
            >
                <i style:height=move || format!("{:.1}%", share(seconds))></i>
                {move || mark().map(|seconds| view! { <u style:bottom=format!("{:.1}%", share(seconds))></u> })}
            </button>
        }
    };
    let caption = move || {
        let planner = selected.get()?;
        let time = bars.with(|bars| bars.get(current_iteration.get()).copied())?;
        Some(view! {
            <b>{format!("Iteration {}", current_iteration.get())}</b>
            {format!(" {} with {}", format::seconds(time), ranking::short_title(planner))}
            {marks.with(|marks| marks.get(current_iteration.get()).copied()).map(|mark| format!(" · line: baseline, {}", format::seconds(mark)))}
            {format!(" · the table shows the mean of all {} iterations", bars.with(Vec::len))}
        })
    };
    view! {
        <Show when=move || bars.with(|bars| bars.len() > 1)>
            <div class="strip-block">
                <p class="strip-caption">{caption}</p>
                <div class="strip" role="group" aria-label="Step times; arrow keys choose an iteration" on:keydown=on_key>
                    {move || bars.get().into_iter().enumerate().map(bar).collect_view()}
                </div>
                <Show when=move || strategies.with(|known| !known.is_empty())>
                    <ul class="strategy-legend" data-testid="strategies" aria-label="Strategies of the iterations">
                        {move || strategies.get().into_iter().map(entry).collect_view()}
                    </ul>
                </Show>
            </div>
        </Show>
    }
}

/// Number of strategies with a distinct colour. Letters continue beyond it.
const COLOURS: u32 = 8;

/// A strategy and the iterations that use it.
#[derive(Debug, Clone, PartialEq)]
struct UsedStrategy {
    number: u32,
    label: String,
    iterations: Vec<usize>,
}

/// Returns strategies in order of first use. Empty if the planner has no strategies.
fn strategies(planned: &Planned) -> Vec<UsedStrategy> {
    let mut known: Vec<UsedStrategy> = Vec::new();
    for (index, iteration) in planned.iterations.iter().enumerate() {
        let Some(strategy) = &iteration.strategy else { continue };
        match known.iter_mut().find(|known| known.number == strategy.number) {
            Some(known) => known.iterations.push(index),
            None => {
                known.push(UsedStrategy {
                    number: strategy.number,
                    label: strategy.label.clone(),
                    iterations: vec![index],
                });
            }
        }
    }
    known
}

/// A, B, ... Z, then A1, B1, ...
fn letter(number: u32) -> String {
    let letter = char::from(b'A' + (number % 26) as u8);
    if number < 26 { letter.to_string() } else { format!("{letter}{}", number / 26) }
}

fn entry(used: UsedStrategy) -> impl IntoView {
    let times = match used.iterations.len() {
        1 => "1 iteration".to_owned(),
        count => format!("{count} iterations"),
    };
    view! {
        <li>
            <span class="pill" data-strategy=(used.number % COLOURS).to_string()></span>
            <b>{letter(used.number)}</b>
            <span class="notation">{used.label}</span>
            <span class="muted">{times}</span>
        </li>
    }
}

fn focus_bar(index: usize) {
    let bar = document().get_element_by_id(&format!("iteration-{index}"));
    if let Some(bar) = bar.and_then(|bar| bar.dyn_into::<web_sys::HtmlElement>().ok()) {
        // If the element was removed, focus is not needed.
        drop(bar.focus());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_on_behind_z() {
        assert_eq!([0, 25, 26, 53].map(letter), ["A", "Z", "A1", "B2"]);
    }

    #[test]
    fn arrows_stay_on_the_strip() {
        assert_eq!(moved(0, "ArrowLeft", 8), None);
        assert_eq!(moved(3, "ArrowLeft", 8), Some(2));
        assert_eq!(moved(7, "ArrowRight", 8), None);
        assert_eq!(moved(3, "End", 8), Some(7));
        assert_eq!(moved(3, "x", 8), None);
        assert_eq!(moved(0, "Home", 0), None);
    }
}
