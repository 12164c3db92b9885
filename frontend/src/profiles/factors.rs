//! Ratios of measured to planned time by phase, and the correction by the profile.

use api::profile::PhaseFactor;
use leptos::prelude::*;

use crate::format;

/// Factor table. Profiles from files have no factors.
#[component]
pub(crate) fn Factors(factors: Vec<PhaseFactor>) -> impl IntoView {
    (!factors.is_empty()).then(|| {
        let dash = || "–".to_owned();
        let row = |factor: PhaseFactor| {
            view! {
                <tr>
                    <th scope="row">{factor.phase}<small class="under">{factor.detail}</small></th>
                    <td class="number">{format::seconds(factor.measured_s)}</td>
                    <td class="number">{format::seconds(factor.predicted_s)}</td>
                    <td class="number">{format::ratio(factor.ratio)}</td>
                    <td class="number">{factor.factor.map_or_else(dash, format::ratio)}</td>
                    <td class="number">{factor.after_s.map_or_else(dash, format::seconds)}</td>
                </tr>
            }
        };
        view! {
            <div class="table-scroll" role="region" aria-label="Phases and factors" tabindex="0">
                <table class="list figures" data-testid="factors">
                    <thead>
                        <tr>
                            <th scope="col">"Phase of a step"</th>
                            <th scope="col" class="number">"Measured"</th>
                            <th scope="col" class="number">"Predicted"</th>
                            <th scope="col" class="number">"Ratio"</th>
                            <th scope="col" class="number">"Factor on layers"</th>
                            <th scope="col" class="number">"Predicted with it"</th>
                        </tr>
                    </thead>
                    <tbody>{factors.into_iter().map(row).collect_view()}</tbody>
                </table>
            </div>
        }
    })
}
