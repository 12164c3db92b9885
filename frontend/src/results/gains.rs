//! Table of the gains of the ingredients of a plan.

use api::planner::outcome::Gain;
use api::planner::scenario::PlannerKind;
use leptos::prelude::*;

use crate::explore::use_explore;
use crate::format;

/// Gains of a plan. Empty if the outcome reports none.
#[component]
pub(super) fn Gains(planner: PlannerKind) -> impl IntoView {
    let explore = use_explore();
    let gains = Memo::new(move |_| explore.planned(planner).map(|planned| planned.gains.clone()).unwrap_or_default());
    let rows = move || {
        let row = |gain: Gain| {
            let times = times(&gain).map(|text| view! { <td>{text}</td> });
            let ingredient = format::capitalised(&gain.ingredient);
            view! { <tr><th scope="row">{ingredient}</th><td class="label">{gain.opponent}</td>{times}</tr> }
        };
        gains.get().into_iter().map(row).collect_view()
    };
    view! {
        <Show when=move || gains.with(|gains| !gains.is_empty())>
            <p class="hint">"Step times on the representative batch"</p>
            <div class="table-scroll" role="region" aria-label="Gains of the ingredients of the plan" tabindex="0">
                <table class="figures gains" data-testid="gains">
                    <thead>
                        <tr>
                            <th scope="col">"Ingredient"</th>
                            <th scope="col" class="label">"Compared with"</th>
                            <th scope="col">"Before"</th>
                            <th scope="col">"After"</th>
                            <th scope="col">"Saved"</th>
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </Show>
    }
}

/// Times before and after, and the difference in seconds and in percent of the time before.
fn times(gain: &Gain) -> [String; 3] {
    let saved_s = gain.opponent_s - gain.iteration_s;
    let saved = format!("{} ({})", format::seconds(saved_s), format::percent(saved_s / gain.opponent_s));
    [format::seconds(gain.opponent_s), format::seconds(gain.iteration_s), saved]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_time_is_relative_to_the_time_before() {
        let text = |before, after| {
            let gain = Gain::new("free settings", "1F1B", before, after).expect("finite times");
            times(&gain).map(|text| text.replace('\u{202f}', " "))
        };
        assert_eq!(text(10.0, 8.0), ["10.0 s", "8.00 s", "2.00 s (20.0 %)"]);
        assert_eq!(text(10.0, 10.0)[2], "0 s (0 %)");
        assert_eq!(text(10.0, 10.5)[2], "−500 ms (−5.00 %)");
    }
}
