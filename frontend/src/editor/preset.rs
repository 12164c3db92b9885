//! Pickers of presets: choose one, or see that the fields have left them all.

use leptos::prelude::*;

/// One choice of a picker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// Value of the option.
    pub(super) id: String,
    /// Shown text.
    pub(super) title: String,
    /// Heading that it stands under; empty for none.
    pub(super) group: &'static str,
}

/// A picker over choices that come from the server.
#[component]
pub(super) fn PresetPicker(
    test_id: &'static str,
    label: &'static str,
    /// Shown while the fields match no choice.
    other: &'static str,
    #[prop(into)] choices: Signal<Vec<Choice>>,
    #[prop(into)] chosen: Signal<Option<String>>,
    #[prop(into)] on_choose: Callback<String>,
) -> impl IntoView {
    let options = move |group: &'static str| {
        let of_group = choices.get().into_iter().filter(move |choice| choice.group == group);
        let options = of_group.map(|Choice { id, title, .. }| {
            let value = id.clone();
            view! { <option value=value prop:selected=move || chosen.get().as_deref() == Some(id.as_str())>{title}</option> }
        });
        options.collect_view()
    };
    let groups = move || {
        let mut groups: Vec<_> =
            choices.get().iter().map(|choice| choice.group).filter(|group| !group.is_empty()).collect();
        groups.dedup();
        groups.into_iter().map(|group| view! { <optgroup label=group>{options(group)}</optgroup> }).collect_view()
    };
    // A name longer than the picker is read by pointing at it.
    let whole = move || {
        let chosen = chosen.get()?;
        choices.with(|choices| choices.iter().find(|choice| choice.id == chosen).map(|choice| choice.title.clone()))
    };
    view! {
        <div class="field picker">
            <label for=test_id>{label}</label>
            <select
                id=test_id
                data-testid=test_id
                title=whole
                on:change=move |event| {
                    let id = event_target_value(&event);
                    if !id.is_empty() {
                        on_choose.run(id);
                    }
                }
            >
                <option value="" hidden=move || chosen.get().is_some() prop:selected=move || chosen.get().is_none()>{other}</option>
                {move || options("")}
                {groups}
            </select>
        </div>
    }
}
