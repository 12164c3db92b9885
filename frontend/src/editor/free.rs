//! Free settings: the planners choose their values. Other settings have the value of the scenario.

use api::planner::scenario::FreeSetting;
use leptos::prelude::*;
use serde_json::{Value, json};

use crate::form::{Form, use_form};
use crate::{format, pointer};

const FREE: &str = "/free";
/// Pointer of the fixed numbers of layers.
pub(super) const LAYERS_PER_STAGE: &str = "/layers_per_stage";

/// Returns true if the planners choose the setting.
pub(super) fn is_free(scenario: &Value, setting: FreeSetting) -> bool {
    let settings = pointer::get(scenario, FREE).and_then(Value::as_array);
    settings.is_some_and(|settings| settings.contains(&json!(setting)))
}

/// Returns the free settings after a change, in display order, so that equal choices give equal scenarios.
fn changed(scenario: &Value, setting: FreeSetting, free: bool) -> Vec<FreeSetting> {
    let stays = |other: &FreeSetting| if *other == setting { free } else { is_free(scenario, *other) };
    FreeSetting::ALL.into_iter().filter(stays).collect()
}

fn change(form: &Form, setting: FreeSetting, free: bool) {
    let settings = form.document.with_untracked(|scenario| changed(scenario, setting, free));
    if free && setting == FreeSetting::LayersPerStage {
        form.remove(LAYERS_PER_STAGE);
    }
    if settings.is_empty() {
        form.remove(FREE);
    } else {
        form.set(FREE, json!(settings));
    }
}

/// Checkbox that leaves a setting to the planners.
#[component]
pub(super) fn FreeCheck(setting: FreeSetting) -> impl IntoView {
    let form = use_form();
    let name = format!("{}: free, planners choose it", format::capitalised(setting.title()));
    let title = name.clone();
    view! {
        <label class="free" title=title>
            <input
                type="checkbox"
                aria-label=name
                data-free=json!(setting).as_str().map(str::to_owned)
                prop:checked=move || form.document.with(|scenario| is_free(scenario, setting))
                on:change=move |event| change(&form, setting, event_target_checked(&event))
            />
            "free"
        </label>
    }
}

/// Fields that have an effect only if the setting is fixed. Otherwise they are disabled.
#[component]
pub(super) fn IfFixed(setting: FreeSetting, children: Children) -> impl IntoView {
    let form = use_form();
    view! {
        <fieldset class="plain" disabled=move || form.document.with(|scenario| is_free(scenario, setting))>
            {children()}
        </fieldset>
    }
}

/// Setting without a value: a fixed rule, or the choice of the planners.
#[component]
fn RuleSetting(setting: FreeSetting, fixed: &'static str, chosen: &'static str, testid: &'static str) -> impl IntoView {
    let form = use_form();
    let text = move || if form.document.with(|scenario| is_free(scenario, setting)) { chosen } else { fixed };
    view! {
        <div class="field choosable">
            <span>{format::capitalised(setting.title())}</span>
            <FreeCheck setting=setting />
            <small data-testid=testid>{text}</small>
        </div>
    }
}

/// Assignment of samples to replicas: in data-loader order, or balanced.
#[component]
pub(super) fn SampleAssignment() -> impl IntoView {
    view! {
        <RuleSetting
            setting=FreeSetting::Assignment
            fixed="data-loader order"
            chosen="replicas balanced by compute time"
            testid="sample-assignment"
        />
    }
}

/// Instances per sub-microbatch of PipeWeaver: by its rule, or several sizes.
#[component]
pub(super) fn SubMicrobatchSize() -> impl IntoView {
    view! {
        <RuleSetting
            setting=FreeSetting::SubMicrobatch
            fixed="by PipeWeaver's rule"
            chosen="several sizes are tried"
            testid="sub-microbatch"
        />
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_added_and_removed_in_display_order() {
        let scenario = json!({"free": ["zero", "recompute", "unknown"]});
        assert!(is_free(&scenario, FreeSetting::Zero) && !is_free(&scenario, FreeSetting::Packing));
        let added = changed(&scenario, FreeSetting::ActivationOffload, true);
        assert_eq!(added, [FreeSetting::Recompute, FreeSetting::ActivationOffload, FreeSetting::Zero]);
        assert_eq!(changed(&scenario, FreeSetting::Zero, false), [FreeSetting::Recompute]);
        assert_eq!(changed(&Value::Null, FreeSetting::Zero, false), []);
    }
}
