//! Table of the choices of a layout by prediction.

use api::accuracy::AccuracyChoice;
use leptos::prelude::*;

use crate::format;

/// For each model and number of devices: how well predictions order the measured layouts, and what the predicted best
/// layout loses.
#[component]
pub(super) fn Choices(choices: Vec<AccuracyChoice>) -> impl IntoView {
    (!choices.is_empty()).then(|| {
        let lines = choices.into_iter().map(|choice| {
            let AccuracyChoice { devices, layers, hidden, layouts, spearman, regret_pct } = choice;
            view! {
                <tr>
                    <th scope="row">{format!("{layers} layers of width {hidden}")}</th>
                    <td>{format::count(devices.into())}</td>
                    <td>{format::count(layouts.into())}</td>
                    <td>{spearman.map_or_else(|| "–".to_owned(), |rank| format!("{rank:.2}"))}</td>
                    <td>{format::percent(regret_pct / 100.0)}</td>
                </tr>
            }
        });
        view! {
            <h3>"Choosing a layout by prediction"</h3>
            <p class="hint">
                "Layouts of one model on one cluster. Regret: time of the layout with the shortest prediction beyond the fastest measured layout."
            </p>
            <div class="table-scroll tall" role="region" aria-label="Choosing a layout by prediction" tabindex="0">
                <table class="figures" data-testid="accuracy-choices">
                    <thead>
                        <tr>
                            <th scope="col">"Model"</th>
                            <th scope="col">"Devices"</th>
                            <th scope="col">"Layouts"</th>
                            <th scope="col" title="Spearman's rank correlation of predicted and measured times">"Rank corr."</th>
                            <th scope="col">"Regret"</th>
                        </tr>
                    </thead>
                    <tbody>{lines.collect_view()}</tbody>
                </table>
            </div>
        }
    })
}
