//! Form that creates a sweep from scenario fields.

use api::path;
use api::planner::sweep::UsualField;
use api::scenario::StoredScenario;
use leptos::prelude::*;
use leptos::task::spawn_local;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;
use serde_json::{Value, json};

use super::{begin, page};
use crate::client::{self, Failure};
use crate::notice::FailureNotice;

/// Parses values separated by commas or spaces. Non-numeric values are strings.
fn typed(text: &str) -> Vec<Value> {
    let words = text.split([',', ' ', ';']).map(str::trim).filter(|word| !word.is_empty());
    words.map(|word| serde_json::from_str(word).unwrap_or_else(|_| Value::from(word))).collect()
}

fn shown(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the pointer entered for a custom field, or `None` if the input is empty.
fn own_place(typed: &str) -> Result<Option<&str>, &'static str> {
    match typed.trim() {
        "" => Ok(None),
        place if place.starts_with('/') => Ok(Some(place)),
        _ => Err("a JSON pointer begins with a slash, as /training/zero does"),
    }
}

/// Collapsed form.
#[component]
pub(super) fn Making(fields: Vec<UsualField>, scenario: Memo<Option<String>>) -> impl IntoView {
    let chosen: Vec<(UsualField, RwSignal<bool>, RwSignal<String>)> = fields
        .into_iter()
        .map(|field| {
            let values = shown(&field.values);
            (field, RwSignal::new(false), RwSignal::new(values))
        })
        .collect();
    let own = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let failure = RwSignal::new(None::<Failure>);
    let busy = RwSignal::new(false);
    let rows =
        chosen.clone().into_iter().map(|(field, is_chosen, values)| row(field, is_chosen, values)).collect_view();
    let axes = {
        let chosen = chosen.clone();
        move || {
            let usual = chosen.iter().filter(|(_, is_chosen, _)| is_chosen.get()).map(|(field, _, values)| {
                json!({"pointer": field.pointer, "title": field.title, "unit": field.unit, "values": typed(&values.get())})
            });
            let mut axes: Vec<Value> = usual.collect();
            own.0.with(|place| {
                if let Ok(Some(place)) = own_place(place) {
                    axes.push(json!({"pointer": place, "values": typed(&own.1.get())}));
                }
            });
            axes
        }
    };
    let axes = Signal::derive(axes);
    let points = move || {
        let counts =
            axes.with(|axes| axes.iter().map(|axis| axis["values"].as_array().map_or(0, Vec::len)).collect::<Vec<_>>());
        if counts.is_empty() { 0 } else { counts.into_iter().fold(1_usize, usize::saturating_mul) }
    };
    let wrong = Memo::new(move |_| own.0.with(|place| own_place(place).err()));
    let navigate = use_navigate();
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let Some(id) = scenario.get_untracked().filter(|_| wrong.get_untracked().is_none()) else { return };
        let axes = axes.get_untracked();
        let navigate = navigate.clone();
        busy.set(true);
        failure.set(None);
        spawn_local(async move {
            let made = async {
                let stored: StoredScenario = client::get(&path::scenario(&id)).await?;
                let sweep = json!({"schema": "sweep/1", "title": stored.scenario.title, "scenario": stored.scenario, "axes": axes});
                begin(sweep.to_string()).await
            };
            let made = made.await;
            // If the user left the page, do not navigate. The sweep is in the list.
            if busy.try_set(false).is_some() {
                return;
            }
            match made {
                Ok(sweep) => navigate(&page(&sweep.id), NavigateOptions::default()),
                Err(problem) => failure.set(Some(problem)),
            }
        });
    };
    view! {
        <details class="make-sweep">
            <summary>"Sweep…"</summary>
            <form on:submit=submit data-testid="make-sweep">
                <p class="hint">"All planners of the scenario plan every combination of these values."</p>
                {rows}
                <div class="sweep-field">
                    <label>"Another field, by JSON pointer"
                        <input
                            type="text"
                            placeholder="/training/zero"
                            spellcheck="false"
                            aria-invalid=move || wrong.get().is_some().to_string()
                            aria-describedby=move || wrong.get().map(|_| "sweep-own-error")
                            prop:value=move || own.0.get()
                            on:input=move |event| own.0.set(event_target_value(&event))
                        />
                    </label>
                    <label>"Its values"
                        <input type="text" placeholder="0, 1, 3" prop:value=move || own.1.get() on:input=move |event| own.1.set(event_target_value(&event)) />
                    </label>
                </div>
                {move || wrong.get().map(|words| view! { <p class="field-error" role="alert" id="sweep-own-error">{words}</p> })}
                <p class="actions">
                    <button class="primary" type="submit" disabled=move || busy.get() || points() == 0 || wrong.get().is_some()>"Plan "{points}" points"</button>
                </p>
                {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
            </form>
        </details>
    }
}

fn row(field: UsualField, is_chosen: RwSignal<bool>, values: RwSignal<String>) -> impl IntoView {
    let unit = field.unit.map(|unit| format!(", {unit}")).unwrap_or_default();
    let present = if field.present.is_null() { "searched".to_owned() } else { field.present.to_string() };
    let label = format!("Values of {}{unit}", field.title);
    view! {
        <div class="sweep-field">
            <label class="check">
                <input type="checkbox" prop:checked=move || is_chosen.get() on:change=move |event| is_chosen.set(event_target_checked(&event)) />
                <span>{field.title}{unit}" "<span class="muted">"(now "{present}")"</span></span>
            </label>
            <input
                type="text"
                aria-label=label
                prop:value=move || values.get()
                disabled=move || !is_chosen.get()
                on:input=move |event| values.set(event_target_value(&event))
            />
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_begins_with_a_slash() {
        assert_eq!(own_place("  "), Ok(None));
        assert_eq!(own_place(" /training/zero "), Ok(Some("/training/zero")));
        assert!(own_place("training/zero").is_err());
    }

    #[test]
    fn typed_values_are_numbers_or_words() {
        assert_eq!(typed("1, 2 4;0.5"), [json!(1), json!(2), json!(4), json!(0.5)]);
        assert_eq!(typed("packed, true"), [json!("packed"), json!(true)]);
        assert!(typed(" , ").is_empty());
        assert_eq!(shown(&[json!(1), json!("a")]), "1, \"a\"");
        assert_eq!(typed(&shown(&[json!(1), json!("a")])), [json!(1), json!("a")]);
    }
}
