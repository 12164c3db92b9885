//! Picker for presets. Shows a separate label if the edited fields match no preset.

use leptos::prelude::*;

/// Option of a picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PresetOption {
    pub(super) id: String,
    pub(super) title: String,
    /// Option group; empty for none.
    pub(super) group: &'static str,
}

/// Picker for options from the server.
#[component]
pub(super) fn PresetPicker(
    test_id: &'static str,
    label: &'static str,
    /// Label if the fields match no option.
    other: &'static str,
    #[prop(into)] choices: Signal<Vec<PresetOption>>,
    #[prop(into)] selected: Signal<Option<String>>,
    #[prop(into)] on_choose: Callback<String>,
) -> impl IntoView {
    let options = move |group: &'static str| {
        let group_options = choices.get().into_iter().filter(move |option| option.group == group);
        let options = group_options.map(|PresetOption { id, title, .. }| {
            let value = id.clone();
            view! { <option value=value prop:selected=move || selected.get().as_deref() == Some(id.as_str())>{title}</option> }
        });
        options.collect_view()
    };
    let groups = move || {
        let mut groups: Vec<_> =
            choices.get().iter().map(|entry| entry.group).filter(|group| !group.is_empty()).collect();
        groups.dedup();
        groups.into_iter().map(|group| view! { <optgroup label=group>{options(group)}</optgroup> }).collect_view()
    };
    // Tooltip with the full name, because the picker truncates long names.
    let full_title = move || {
        let selected_id = selected.get()?;
        choices.with(|choices| {
            choices
                .iter()
                .find(|candidate| candidate.id == selected_id)
                .map(|matching_option| matching_option.title.clone())
        })
    };
    view! {
        <div class="field picker">
            <label for=test_id>{label}</label>
            <select
                id=test_id
                data-testid=test_id
                title=full_title
                on:change=move |event| {
                    let id = event_target_value(&event);
                    if !id.is_empty() {
                        on_choose.run(id);
                    }
                }
            >
                <option value="" hidden=move || selected.get().is_some() prop:selected=move || selected.get().is_none()>{other}</option>
                {move || options("")}
                {groups}
            </select>
        </div>
    }
}
