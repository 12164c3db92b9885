//! Buttons that add or remove modules.

use api::planner::model::{Model, Module, ModuleRole};
use leptos::prelude::*;
use serde_json::Value;

use crate::catalogue::use_catalogue;
use crate::explore::modalities::leave_out_unread;
use crate::explore::use_explore;
use crate::pointer;

/// Order of the roles along the data flow: encoders, backbone, generator.
const fn role_order(role: ModuleRole) -> u8 {
    match role {
        ModuleRole::VisionEncoder | ModuleRole::AudioEncoder => 0,
        ModuleRole::Backbone => 1,
        ModuleRole::Generator => 2,
    }
}

const fn role_name(role: ModuleRole) -> &'static str {
    match role {
        ModuleRole::VisionEncoder => "Vision encoders",
        ModuleRole::AudioEncoder => "Audio encoders",
        ModuleRole::Backbone => "Language models",
        ModuleRole::Generator => "Generators",
    }
}

/// Preset modules for roles that the model does not have yet. Removes duplicate names.
fn addable(presets: &[Model], model: &Model) -> Vec<Module> {
    let mut found: Vec<Module> = Vec::new();
    for module in presets.iter().flat_map(|preset| &preset.modules) {
        let has_role = model.modules.iter().any(|existing| existing.role == module.role);
        if !has_role && found.iter().all(|known| known.name != module.name) {
            found.push(module.clone());
        }
    }
    found.sort_by_key(|module| role_order(module.role));
    found
}

/// Inserts a module in data-flow order. For an encoder, sets the projection width to the hidden
/// size of the backbone.
fn with(mut model: Model, mut module: Module) -> Model {
    if let (Some(patch), Some(backbone)) = (&mut module.patch, model.backbone())
        && patch.projected_width.is_some()
    {
        patch.projected_width = Some(backbone.hidden);
    }
    let at = model
        .modules
        .iter()
        .position(|existing| role_order(existing.role) > role_order(module.role))
        .unwrap_or(model.modules.len());
    model.modules.insert(at, module);
    model
}

/// Parses the model from the form. Returns `None` if the model is invalid.
fn parse_model(scenario: &Value) -> Option<Model> {
    serde_json::from_value(pointer::get(scenario, "/model")?.clone()).ok()
}

/// Picker that adds a preset module to the model.
#[component]
pub(super) fn AddModule() -> impl IntoView {
    let explore = use_explore();
    let catalogue = use_catalogue();
    let choices = Memo::new(move |_| {
        let model = explore.scenario.with(parse_model)?;
        let presets = catalogue.presets.get()?;
        let presets: Vec<Model> = presets.models.iter().map(|preset| preset.model.clone()).collect();
        Some(addable(&presets, &model))
    });
    let add = move |name: String| {
        let module = choices
            .with_untracked(|choices| choices.iter().flatten().find(|candidate| candidate.name == name).cloned());
        let Some((module, model)) = module.zip(explore.scenario.with_untracked(parse_model)) else { return };
        if let Ok(value) = serde_json::to_value(with(model, module)) {
            explore.set("/model", value);
        }
    };
    let options = move || {
        let choices = choices.get().unwrap_or_default();
        let groups = choices.chunk_by(|a, b| a.role == b.role).map(|group| {
            let options =
                group.iter().map(|module| view! { <option value=module.name.clone()>{module.name.clone()}</option> });
            view! { <optgroup label=role_name(group[0].role)>{options.collect_view()}</optgroup> }
        });
        groups.collect_view()
    };
    let has_choices = Memo::new(move |_| choices.with(|choices| choices.as_ref().is_some_and(|all| !all.is_empty())));
    view! {
        <Show when=move || has_choices.get()>
            <div class="field">
                <label for="add-module">"Add a module"</label>
                <select
                    id="add-module"
                    data-testid="add-module"
                    on:change=move |event| add(event_target_value(&event))
                >
                    <option value="">"Choose"</option>
                    {options}
                </select>
            </div>
        </Show>
    }
}

/// Button that removes a module.
#[component]
pub(super) fn RemoveModule(index: usize, name: String) -> impl IntoView {
    let explore = use_explore();
    let remove = move |_| {
        explore.edit("/model", |scenario| {
            if let Some(Value::Array(modules)) = scenario.pointer_mut("/model/modules")
                && index < modules.len()
                && modules.len() > 1
            {
                modules.remove(index);
            }
            leave_out_unread(scenario);
        });
    };
    view! { <button class="quiet" type="button" on:click=remove>{format!("Remove {name}")}</button> }
}

#[cfg(test)]
mod tests {
    use api::planner::model::presets::{model, models};

    use super::*;

    #[test]
    fn an_encoder_goes_before_the_backbone_and_projects_to_its_width() {
        let presets: Vec<Model> = models().into_iter().map(|preset| preset.model).collect();
        let llama = model("llama-3-8b").unwrap();
        let choices = addable(&presets, &llama);
        assert!(choices.iter().all(|module| module.role != ModuleRole::Backbone), "there is one already");
        let encoder = choices.into_iter().find(|module| module.name == "InternViT-300M").unwrap();
        let both = with(llama.clone(), encoder);
        assert_eq!(both.modules.len(), 2);
        assert_eq!(both.modules[1].name, "Llama-3 8B");
        assert_eq!(both.modules[0].patch.unwrap().projected_width, Some(4096));
        let generator = addable(&presets, &both).into_iter().find(|module| module.name == "DiT 5B").unwrap();
        assert_eq!(with(both, generator).modules[2].name, "DiT 5B");
    }
}
