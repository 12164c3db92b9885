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
use crate::client::{self, RequestError};
use crate::format;
use crate::notice::ErrorNotice;

/// Parses values separated by commas or spaces. Non-numeric values are strings.
fn typed(text: &str) -> Vec<Value> {
    let terms = text.split([',', ' ', ';']).map(str::trim).filter(|word| !word.is_empty());
    terms.map(|word| serde_json::from_str(word).unwrap_or_else(|_| Value::from(word))).collect()
}

/// Returns an error for a number with a thousands separator: "32,768" would be the values 32 and 768. The separator of values
/// is then ambiguous.
fn ambiguous_number(text: &str) -> Option<String> {
    let is_group = |word: &str| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_start = |word: &str| matches!(word.len(), 1..=3) && word.bytes().all(|byte| byte.is_ascii_digit());
    let word = text.split([' ', ';']).find(|word| {
        let mut parts = word.split(',');
        parts.next().is_some_and(is_start) && parts.clone().next().is_some() && parts.all(is_group)
    })?;
    let (joined, apart) = (word.replace(',', ""), word.replace(',', ", "));
    Some(format!("{word} is ambiguous: write {joined} for one value, or {apart} for several"))
}

/// Field, whether it is an axis, and its values.
type FieldOption = (UsualField, RwSignal<bool>, RwSignal<String>);

/// Returns the first ambiguous number of the chosen fields or of the custom field.
fn ambiguous_memo(options: Vec<FieldOption>, custom: RwSignal<String>) -> Memo<Option<String>> {
    Memo::new(move |_| {
        let of_field = |(field, is_selected, values): &FieldOption| {
            let error = values.with(|text| ambiguous_number(text)).filter(|_| is_selected.get())?;
            Some(format!("{}: {error}", format::capitalised(&field.title)))
        };
        options.iter().find_map(of_field).or_else(|| custom.with(|text| ambiguous_number(text)))
    })
}

fn format_values(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the pointer entered for a custom field, or `None` if the input is empty.
fn custom_pointer(typed: &str) -> Result<Option<&str>, &'static str> {
    match typed.trim() {
        "" => Ok(None),
        field_pointer if field_pointer.starts_with('/') => Ok(Some(field_pointer)),
        _ => Err("a JSON pointer begins with a slash, as /training/zero does"),
    }
}

/// Collapsed form.
#[component]
pub(super) fn SweepForm(fields: Vec<UsualField>, scenario: Memo<Option<String>>) -> impl IntoView {
    let field_options: Vec<FieldOption> = fields
        .into_iter()
        .map(|field| {
            let values = format_values(&field.values);
            (field, RwSignal::new(false), RwSignal::new(values))
        })
        .collect();
    let custom_field = (RwSignal::new(String::new()), RwSignal::new(String::new()));
    let last_error = RwSignal::new(None::<RequestError>);
    let is_pending = RwSignal::new(false);
    let rows = field_options
        .clone()
        .into_iter()
        .map(|(field, is_selected, values)| row(field, is_selected, values))
        .collect_view();
    let axes = {
        let options = field_options.clone();
        move || {
            let usual = options.iter().filter(|(_, is_enabled, _)| is_enabled.get()).map(|(field, _, values)| {
                json!({"pointer": field.pointer, "title": field.title, "unit": field.unit, "values": typed(&values.get())})
            });
            let mut axes: Vec<Value> = usual.collect();
            custom_field.0.with(|pointer_text| {
                if let Ok(Some(field_pointer)) = custom_pointer(pointer_text) {
                    axes.push(json!({"pointer": field_pointer, "values": typed(&custom_field.1.get())}));
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
    let wrong = Memo::new(move |_| custom_field.0.with(|typed_pointer| custom_pointer(typed_pointer).err()));
    let ambiguous = ambiguous_memo(field_options.clone(), custom_field.1);
    let navigate = use_navigate();
    let submit = move |event: web_sys::SubmitEvent| {
        event.prevent_default();
        let Some(id) =
            scenario.get_untracked().filter(|_| wrong.get_untracked().is_none() && ambiguous.get_untracked().is_none())
        else {
            return;
        };
        let axes = axes.get_untracked();
        let navigate = navigate.clone();
        is_pending.set(true);
        last_error.set(None);
        spawn_local(async move {
            let creation = async {
                let stored: StoredScenario = client::get(&path::scenario(&id)).await?;
                let sweep = json!({"schema": "sweep/1", "title": stored.scenario.title, "scenario": stored.scenario, "axes": axes});
                begin(sweep.to_string()).await
            };
            let created = creation.await;
            // If the user left the page, do not navigate. The sweep is in the list.
            if is_pending.try_set(false).is_some() {
                return;
            }
            match created {
                Ok(sweep) => navigate(&page(&sweep.id), NavigateOptions::default()),
                Err(problem) => last_error.set(Some(problem)),
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
                            prop:value=move || custom_field.0.get()
                            on:input=move |event| custom_field.0.set(event_target_value(&event))
                        />
                    </label>
                    <label>"Its values"
                        <input type="text" placeholder="0, 1, 3" prop:value=move || custom_field.1.get() on:input=move |event| custom_field.1.set(event_target_value(&event)) />
                    </label>
                </div>
                {move || wrong.get().map(|message| view! { <p class="field-error" role="alert" id="sweep-own-error">{message}</p> })}
                {move || ambiguous.get().map(|message| view! { <p class="field-error" role="alert">{message}</p> })}
                <p class="actions">
                    <button class="primary" type="submit" disabled=move || is_pending.get() || points() == 0 || wrong.get().is_some() || ambiguous.get().is_some()>
                        {move || if is_pending.get() { "Starting…".to_owned() } else { format!("Plan {}", format::counted(points() as u64, "point", "points")) }}
                    </button>
                </p>
                {move || last_error.get().map(|error| view! { <ErrorNotice error=error /> })}
            </form>
        </details>
    }
}

fn row(field: UsualField, is_selected: RwSignal<bool>, values: RwSignal<String>) -> impl IntoView {
    let unit = field.unit.map(|unit| format!(", {unit}")).unwrap_or_default();
    let present = if field.present.is_null() { "searched".to_owned() } else { field.present.to_string() };
    let label = format!("Values of {}{unit}", field.title);
    view! {
        <div class="sweep-field">
            <label class="check">
                <input type="checkbox" prop:checked=move || is_selected.get() on:change=move |event| is_selected.set(event_target_checked(&event)) />
                <span>{field.title}{unit}" "<span class="muted">"(now "{present}")"</span></span>
            </label>
            <input
                type="text"
                aria-label=label
                prop:value=move || values.get()
                disabled=move || !is_selected.get()
                on:input=move |event| values.set(event_target_value(&event))
            />
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_pointer_must_begin_with_slash() {
        assert_eq!(custom_pointer("  "), Ok(None));
        assert_eq!(custom_pointer(" /training/zero "), Ok(Some("/training/zero")));
        assert!(custom_pointer("training/zero").is_err());
    }

    #[test]
    fn numbers_with_separators_are_ambiguous() {
        for text in ["32,768", "4096 32,768", "1,048,576"] {
            assert!(ambiguous_number(text).is_some(), "{text}");
        }
        assert!(ambiguous_number("32,768").unwrap().ends_with("write 32768 for one value, or 32, 768 for several"));
        for text in ["32, 768", "1,2,4", "4096,32768", "128,256,512,1024", "", "packed,true"] {
            assert_eq!(ambiguous_number(text), None, "{text}");
        }
    }

    #[test]
    fn typed_values_are_parsed_as_numbers_or_text() {
        assert_eq!(typed("1, 2 4;0.5"), [json!(1), json!(2), json!(4), json!(0.5)]);
        assert_eq!(typed("packed, true"), [json!("packed"), json!(true)]);
        assert!(typed(" , ").is_empty());
        assert_eq!(format_values(&[json!(1), json!("a")]), "1, \"a\"");
        assert_eq!(typed(&format_values(&[json!(1), json!("a")])), [json!(1), json!("a")]);
    }
}
