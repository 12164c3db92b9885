//! A prepared scenario as a line: title, table or figure in the paper, model and devices.

use leptos::prelude::*;

use super::summary::ScenarioSummary;
use crate::format;

#[component]
pub(crate) fn ScenarioLine(entry: ScenarioSummary) -> impl IntoView {
    let ScenarioSummary { slug, title, summary, scenario, paper, is_synthetic } = entry;
    let devices = u64::from(scenario.cluster.nodes) * u64::from(scenario.cluster.per_node);
    let location = paper.map(|paper| paper.place);
    let synthetic = is_synthetic.then(|| {
        view! { <span class="chip" title="Samples come from synthetic distributions: the data of the paper are not public">"synthetic data"</span> }
    });
    view! {
        <li>
            <a href=format!("/new?ready={slug}") data-testid=format!("gallery-{slug}")>{title}</a>
            <span class="chips">
                {location.map(|text| view! { <span class="chip place">{text}</span> })}
                <span class="chip">{scenario.model.name}</span>
                <span class="chip">{format!("{} devices", format::count(devices))}</span>
                {synthetic}
            </span>
            <p class="summary">{summary}</p>
        </li>
    }
}
