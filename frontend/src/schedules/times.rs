//! Action times: a single number, or a list by stage and microbatch.

use leptos::prelude::*;
use serde_json::Value;

use super::input::{self, TIMES};
use super::use_schedules;
use super::values::{self, Spread};
use crate::editor::field::{FieldError, NumberField, SelectField};
use crate::editor::slider::Slider;
use crate::field_errors::FieldErrors;
use crate::form::use_form;
use crate::pointer;

const PER: [(&str, &str); 2] = [("rank", "rank (chunks share it)"), ("stage", "stage (each chunk)")];

/// Fields for F, I and W, and the choice of their variation.
#[component]
pub(super) fn TimesFields() -> impl IntoView {
    let schedules = use_schedules();
    let spread = Memo::new(move |_| {
        schedules.request.with(|request| {
            let spread_at =
                |field_pointer: &str| pointer::get(request, field_pointer).map(Spread::from_value).unwrap_or_default();
            TIMES.into_iter().map(spread_at).max().unwrap_or_default()
        })
    });
    let choose = move |event| {
        let to = Spread::from_id(&event_target_value(&event));
        schedules.edit("/times", |json| {
            let (ranks, microbatches) = (input::count(json, "/ranks"), input::count(json, "/microbatches"));
            for field_pointer in TIMES {
                if let Some(value) = pointer::get(json, field_pointer) {
                    let value = values::spread(value, to, ranks, microbatches);
                    pointer::set(json, field_pointer, value);
                }
            }
        });
    };
    let option = move |spread_value: Spread, title: &'static str| {
        view! { <option value=spread_value.id() prop:selected=move || spread.get() == spread_value>{title}</option> }
    };
    let hint = move || match spread.get() {
        Spread::Equal => None,
        Spread::Stages => Some("One value for each rank or stage, separated by commas."),
        Spread::Microbatches => Some(
            "One line for each microbatch: one value, or one for each rank or stage. Cells of a spreadsheet can be pasted.",
        ),
    };
    view! {
        <SelectField pointer="/times/per" label="Times per" options=&PER />
        <div class="field">
            <label for="field-spread">"Variation"</label>
            <select id="field-spread" data-testid="spread" on:change=choose>
                {option(Spread::Equal, "none (all equal)")}
                {option(Spread::Stages, "by rank or stage")}
                {option(Spread::Microbatches, "by microbatch")}
            </select>
        </div>
        <TimeField pointer=TIMES[0] label="Forward" letter="F" />
        <TimeField pointer=TIMES[1] label="Input gradient" letter="I" />
        <TimeField pointer=TIMES[2] label="Weight gradient" letter="W" />
        {move || hint().map(|hint| view! { <p class="hint">{hint}</p> })}
        <p class="actions">
            <button
                class="quiet"
                data-testid="long-tail"
                title="Most microbatches are short and some are long, as in real data"
                on:click=move |_| schedules.edit("/times", input::set_long_tail)
            >
                "Example: long tail"
            </button>
        </p>
    }
}

/// Field for an action time with the selected variation.
#[component]
fn TimeField(pointer: &'static str, label: &'static str, letter: &'static str) -> impl IntoView {
    let form = use_form();
    let spread = Memo::new(move |_| {
        form.document.with(|json| pointer::get(json, pointer).map(Spread::from_value).unwrap_or_default())
    });
    move || {
        match spread.get() {
        Spread::Equal => view! {
            <NumberField pointer=pointer label=label unit=letter min=0.0 max=1e9 step=0.25 slider=Slider::Linear(0.0, 10.0) />
        }
        .into_any(),
        spread => view! { <SpreadField pointer=pointer label=format!("{label} {letter}") spread=spread /> }.into_any(),
    }
    }
}

/// Text field for a list, or for a list per line.
#[component]
fn SpreadField(pointer: &'static str, label: String, spread: Spread) -> impl IntoView {
    let form = use_form();
    let id = format!("field{}", pointer.replace('/', "-"));
    let value = Memo::new(move |_| form.document.with(|json| pointer::get(json, pointer).cloned()));
    let parse = move |text: &str| match spread {
        Spread::Microbatches => values::parse_lists(text),
        _ => values::parse_list(text),
    };
    // Store the text separately from the value, because reformatting would move the cursor.
    let text = RwSignal::new(String::new());
    Effect::new(move |_| {
        let value = value.get();
        if parse(&text.get_untracked()).ok() != value {
            text.set(value.as_ref().map(values::write).unwrap_or_default());
            form.unreadable.update(|errors| errors.set(pointer, None));
        }
    });
    let typed = move |event| {
        let typed = event_target_value(&event);
        text.set(typed.clone());
        let complaint = match parse(&typed) {
            Ok(value) => {
                form.set(pointer, value);
                None
            }
            Err(complaint) => Some(complaint),
        };
        form.unreadable.update(|errors| errors.set(pointer, complaint));
    };
    // The server reports the pointer of an invalid list element. Display the error at the field
    // that contains it.
    let inside = Memo::new(move |_| form.errors.with(|errors| inside(errors, pointer)));
    let wrong = move || {
        inside.with(|inside| !inside.is_empty())
            || form.errors.with(|errors| errors.at(pointer).is_some())
            || form.unreadable.with(|errors| errors.at(pointer).is_some())
    };
    let rows = move || value.with(|value| value.as_ref().and_then(Value::as_array).map_or(3, Vec::len).clamp(3, 10));
    let input = if spread == Spread::Microbatches {
        view! {
            <textarea
                id=id.clone()
                class="matrix"
                spellcheck="false"
                autocomplete="off"
                data-pointer=pointer
                aria-invalid=move || wrong().to_string()
                rows=move || rows().to_string()
                prop:value=move || text.get()
                on:input=typed
            ></textarea>
        }
        .into_any()
    } else {
        view! {
            <input
                id=id.clone()
                type="text"
                spellcheck="false"
                autocomplete="off"
                data-pointer=pointer
                aria-invalid=move || wrong().to_string()
                prop:value=move || text.get()
                on:input=typed
            />
        }
        .into_any()
    };
    view! {
        <div class="field spread" class:wrong=wrong>
            <label for=id>{label}</label>
            {input}
            <FieldError pointer=pointer.to_owned() />
            {move || inside.get().into_iter().map(|line| view! { <p class="field-error" role="alert">{line}</p> }).collect_view()}
        </div>
    }
}

/// Returns the first errors of list elements.
fn inside(errors: &FieldErrors, pointer: &str) -> Vec<String> {
    let none = std::collections::BTreeSet::from([pointer.to_owned()]);
    let line = |(error_pointer, detail): (String, String)| {
        let at: Vec<String> = error_pointer[pointer.len()..]
            .split('/')
            .filter_map(|part| part.parse::<u64>().ok())
            .map(|number| (number + 1).to_string())
            .collect();
        format!("Value {}: {detail}", at.join(", "))
    };
    errors.without_field(pointer, &none).into_iter().take(3).map(line).collect()
}

#[cfg(test)]
mod tests {
    use api::problem::FieldProblem;

    use super::*;

    #[test]
    fn list_error_names_the_index_with_the_invalid_value() {
        let problem = |pointer: &str| FieldProblem { pointer: pointer.to_owned(), detail: "too small".to_owned() };
        let errors =
            FieldErrors::from_problems(&[problem("/times/forward/2/0"), problem("/times/forward"), problem("/ranks")]);
        assert_eq!(inside(&errors, "/times/forward"), ["Value 3, 1: too small"]);
    }
}
