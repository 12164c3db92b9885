//! First tile: choose a model and a cluster for a new scenario.

use api::front_page::NamedOption;
use leptos::prelude::*;

/// Initial choice of model, cluster and node count.
const MODEL: &str = "llama-3-8b";
const CLUSTER: &str = "h100";
const NODES: u32 = 4;
const MAX_NODES: u32 = 4096;

/// Pickers for model and cluster, and a link to the full form.
#[component]
pub(super) fn NewScenario(
    /// Models and clusters. Both lists are empty until loaded.
    presets: Signal<(Vec<NamedOption>, Vec<NamedOption>)>,
) -> impl IntoView {
    let model = RwSignal::new(MODEL.to_owned());
    let cluster = RwSignal::new(CLUSTER.to_owned());
    let nodes = RwSignal::new(NODES);
    let href = move || address(&model.get(), &cluster.get(), nodes.get());
    let set_nodes = move |event| {
        if let Ok(count) = event_target_value(&event).parse::<u32>() {
            nodes.set(count.clamp(1, MAX_NODES));
        }
    };
    view! {
        <section class="new-scenario" aria-labelledby="new">
            <h2 id="new">"New scenario"</h2>
            <div class="new-fields">
                <label>
                    "Model"
                    <select data-testid="new-model" on:change=move |event| model.set(event_target_value(&event))>
                        {move || options(presets.with(|presets| presets.0.clone()), model)}
                    </select>
                </label>
                <label>
                    "Cluster"
                    <select data-testid="new-cluster" on:change=move |event| cluster.set(event_target_value(&event))>
                        {move || options(presets.with(|presets| presets.1.clone()), cluster)}
                    </select>
                </label>
                <label>
                    "Nodes"
                    <input type="number" min="1" max=MAX_NODES.to_string() data-testid="new-nodes" prop:value=move || nodes.get().to_string() on:change=set_nodes />
                </label>
                <a class="button primary" href=href data-testid="start-scenario">"Plan"</a>
            </div>
            <p class="new-more">
                <a href="/new" data-testid="new-scenario">"Open the form"</a>
                " · "
                <a href="/datasets">"Upload sample lengths"</a>
            </p>
        </section>
    }
}

/// Picker options. Until the list is loaded, only the current choice is present.
fn options(choices: Vec<NamedOption>, selected: RwSignal<String>) -> impl IntoView {
    let now = selected.get_untracked();
    let choices = if choices.is_empty() { vec![NamedOption { id: now.clone(), name: now.clone() }] } else { choices };
    let option = |NamedOption { id, name }: NamedOption| {
        let selected = id == now;
        view! { <option value=id prop:selected=selected>{name}</option> }
    };
    choices.into_iter().map(option).collect_view()
}

fn address(model: &str, cluster: &str, nodes: u32) -> String {
    format!("/new?model={model}&cluster={cluster}&nodes={nodes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_presets_exist() {
        assert!(api::planner::model::presets::model(MODEL).is_some());
        assert!(api::planner::cluster::presets::clusters().iter().any(|preset| preset.id == CLUSTER));
        assert_eq!(address(MODEL, CLUSTER, NODES), "/new?model=llama-3-8b&cluster=h100&nodes=4");
    }
}
