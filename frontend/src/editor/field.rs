//! Editor fields. A field edits one value of the form's document, given by a JSON pointer, and
//! displays the validation errors of this value.

use api::planner::scenario::FreeSetting;
use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen::JsCast;

use super::free::{FreeCheck, is_free};
use super::scrub::Scrub;
use super::slider::Slider;
use crate::form::{Form, restore_text, use_form};
use crate::pointer;

/// HTML id of a field's input.
fn input_id(pointer: &str) -> String {
    format!("field{}", pointer.replace('/', "-"))
}

/// Registers a field while it is mounted, so that the form shows the field's errors only here.
fn register(form: &Form, pointer: &str) {
    let (fields, unreadable) = (form.fields, form.unreadable);
    fields.update(|fields| {
        fields.insert(pointer.to_owned());
    });
    let pointer = pointer.to_owned();
    on_cleanup(move || {
        fields.try_update(|fields| fields.remove(&pointer));
        unreadable.try_update(|errors| errors.set(&pointer, None));
    });
}

fn error_at(form: &Form, pointer: &str) -> Option<String> {
    let unreadable = form.unreadable.with(|errors| errors.at(pointer).map(str::to_owned));
    unreadable.or_else(|| form.errors.with(|errors| errors.at(pointer).map(str::to_owned)))
}

/// True if the planners choose the value of the field.
fn is_chosen(form: Form, free: Option<FreeSetting>) -> Memo<bool> {
    Memo::new(move |_| free.is_some_and(|setting| form.document.with(|document| is_free(document, setting))))
}

/// Text of a field whose value the planners choose.
const FREE_TEXT: &str = "free";

/// Option of a select field whose value the planners choose. It is hidden, because the checkbox makes the setting
/// free. It is the last option, because browsers keep the last of several selected options.
fn free_option(free: Option<FreeSetting>, chosen: Memo<bool>) -> impl IntoView {
    free.map(|_| view! { <option value="" hidden disabled prop:selected=move || chosen.get()>{FREE_TEXT}</option> })
}

/// Validation error of a field.
#[component]
pub(crate) fn FieldError(pointer: String) -> impl IntoView {
    let form = use_form();
    register(&form, &pointer);
    let id = format!("{}-error", input_id(&pointer));
    let field_pointer = pointer.clone();
    let error = Memo::new(move |_| error_at(&form, &field_pointer));
    move || {
        error.get().map(|detail| view! { <p class="field-error" role="alert" id=id.clone() data-error-for=pointer.clone()>{detail}</p> })
    }
}

/// Number field. With a placeholder it can be empty, and the value is then absent from the
/// document. With `free`, a checkbox leaves the setting to the planners.
#[component]
pub(crate) fn NumberField(
    #[prop(into)] pointer: String,
    #[prop(into)] label: String,
    unit: &'static str,
    min: f64,
    max: f64,
    #[prop(default = 1.0)] step: f64,
    #[prop(optional)] placeholder: &'static str,
    #[prop(default = None, into)] slider: Option<Slider>,
    #[prop(default = None, into)] free: Option<FreeSetting>,
) -> impl IntoView {
    let form = use_form();
    let chosen = is_chosen(form, free);
    let id = input_id(&pointer);
    let stored_pointer = StoredValue::new(pointer.clone());
    let value = Memo::new(move |_| {
        form.document
            .with(|document| stored_pointer.with_value(|field_pointer| pointer::get(document, field_pointer).cloned()))
    });
    // The text has a separate signal, so that "1.50" does not change to "1.5" during typing.
    let text = RwSignal::new(String::new());
    Effect::new(move |_| {
        let value = value.get();
        if pointer::parse_number(&text.get_untracked())
            != value.as_ref().and_then(|value| pointer::parse_number(&pointer::write_number(value)))
        {
            text.set(value.as_ref().map(pointer::write_number).unwrap_or_default());
            form.unreadable.update(|errors| stored_pointer.with_value(|field_pointer| errors.set(field_pointer, None)));
        }
    });
    let write = move |typed: String, garbled: bool| {
        // For partial input such as "1e", the browser reports an empty value. Writing this value
        // back would clear the input.
        if !garbled {
            text.set(typed.clone());
        }
        let complaint = stored_pointer.with_value(|field_pointer| {
            if let Some(number) = pointer::parse_number(&typed) {
                form.set(field_pointer, number);
                return None;
            }
            if typed.is_empty() && !garbled && !placeholder.is_empty() {
                form.remove(field_pointer);
                return None;
            }
            Some(if typed.is_empty() && !garbled { "a number is needed here" } else { "this is not a number" })
        });
        form.unreadable.update(|errors| {
            stored_pointer.with_value(|field_pointer| errors.set(field_pointer, complaint.map(str::to_owned)));
        });
    };
    // Invalid input is reset on blur. Otherwise its error would stay visible after an undo.
    let leave = move |event: &web_sys::Event| {
        let is_unreadable =
            |field_pointer: &String| form.unreadable.with_untracked(|errors| errors.at(field_pointer).is_some());
        // Some browsers also send blur events for fields that are already unmounted.
        if stored_pointer.try_with_value(is_unreadable) == Some(true) {
            let known = value.get_untracked().as_ref().map(pointer::write_number).unwrap_or_default();
            restore_text(event, &known);
            text.set(known);
            form.unreadable.update(|errors| stored_pointer.with_value(|field_pointer| errors.set(field_pointer, None)));
        }
    };
    let error_id = format!("{id}-error");
    let wrong = move || stored_pointer.with_value(|field_pointer| error_at(&form, field_pointer).is_some());
    let scrub = Scrub::new(stored_pointer, form, move || {
        let now = value.get_untracked().and_then(|value| value.as_f64());
        let slider = slider.unwrap_or_else(|| Slider::around(now, min, max, step));
        (slider, now.map_or(slider.range().0, |now| slider.position(now)))
    });
    let name = label.clone();
    let slider =
        slider.map(|slider| view! { <FieldSlider pointer=pointer.clone() label=label slider=slider value=value /> });
    view! {
        <div class="field" class:wrong=wrong class:choosable=free.is_some() class:chosen=move || chosen.get()>
            <label
                for=id.clone()
                class="scrubbed"
                on:pointerdown=move |event| scrub.start(&event)
                on:pointermove=move |event| scrub.drag(&event)
                on:pointerup=move |_| scrub.end()
                on:pointercancel=move |_| scrub.end()
                on:lostpointercapture=move |_| scrub.end()
            >
                {name}
                {(!unit.is_empty()).then(|| view! { " "<small>{unit}</small> })}
            </label>
            {free.map(|setting| view! { <FreeCheck setting=setting /> })}
            <input
                id=id
                type="number"
                inputmode="decimal"
                autocomplete="off"
                min=min
                max=max
                step=step
                placeholder=move || if chosen.get() { FREE_TEXT } else { placeholder }
                disabled=move || chosen.get()
                data-pointer=pointer.clone()
                aria-invalid=move || wrong().to_string()
                aria-describedby=move || wrong().then(|| error_id.clone())
                prop:value=move || if chosen.get() { String::new() } else { text.get() }
                on:input=move |event| write(event_target_value(&event), is_garbled(&event))
                on:blur=move |event| leave(&event)
            />
            {slider}
            <FieldError pointer=pointer />
        </div>
    }
}

/// Slider for a number field.
#[component]
fn FieldSlider(pointer: String, label: String, slider: Slider, value: Memo<Option<Value>>) -> impl IntoView {
    let form = use_form();
    let stored_pointer = StoredValue::new(pointer.clone());
    let (low, high) = slider.range();
    let position = move || value.get().and_then(|value| value.as_f64()).map_or(low, |value| slider.position(value));
    let moved = move |event: web_sys::Event| {
        let typed = event_target_value(&event).parse().map(|position| slider.typed(position));
        if let Some(value) = typed.ok().and_then(|typed| pointer::parse_number(&typed)) {
            stored_pointer.with_value(|field_pointer| form.set(field_pointer, value));
        }
    };
    view! {
        <input
            type="range"
            class="slider"
            min=low
            max=high
            step="1"
            aria-label=format!("{label}, slider")
            aria-valuetext=move || value.get().map(|value| pointer::write_number(&value))
            data-slider-for=pointer
            prop:value=position
            on:input=moved
        />
    }
}

/// True if the input contains text that the browser cannot convert to a number.
fn is_garbled(event: &web_sys::Event) -> bool {
    let read = |object: &wasm_bindgen::JsValue, name: &str| js_sys::Reflect::get(object, &name.into()).ok();
    let input = event.target().map(JsCast::unchecked_into::<wasm_bindgen::JsValue>);
    input
        .and_then(|input| read(&input, "validity"))
        .and_then(|validity| read(&validity, "badInput"))
        .is_some_and(|bad| bad.is_truthy())
}

/// Select field with a fixed set of strings.
#[component]
pub(crate) fn SelectField(
    #[prop(into)] pointer: String,
    label: &'static str,
    options: &'static [(&'static str, &'static str)],
    #[prop(default = None, into)] free: Option<FreeSetting>,
) -> impl IntoView {
    let form = use_form();
    let chosen = is_chosen(form, free);
    let id = input_id(&pointer);
    let stored_pointer = StoredValue::new(pointer.clone());
    let value = Memo::new(move |_| {
        form.document.with(|document| stored_pointer.with_value(|field_pointer| pointer::text(document, field_pointer)))
    });
    // An option without a word removes the value.
    let choose = move |event| {
        stored_pointer.with_value(|field_pointer| match event_target_value(&event) {
            word if word.is_empty() => form.remove(field_pointer),
            word => form.set(field_pointer, word.into()),
        });
    };
    let choices = options.iter().map(|(word, title)| {
        let selected = move || !chosen.get() && value.get().as_deref() == Some(*word);
        view! { <option value=*word prop:selected=selected>{*title}</option> }
    });
    view! {
        <div class="field" class:choosable=free.is_some() class:chosen=move || chosen.get()>
            <label for=id.clone()>{label}</label>
            {free.map(|setting| view! { <FreeCheck setting=setting /> })}
            <select
                id=id
                disabled=move || chosen.get()
                data-pointer=pointer.clone()
                on:change=choose
            >
                {choices.collect_view()}
                {free_option(free, chosen)}
            </select>
            <FieldError pointer=pointer />
        </div>
    }
}

/// Select field with a fixed set of numbers and an "Automatic" option. "Automatic" removes the
/// value from the document, and the planner selects it.
#[component]
pub(crate) fn OptionalField(
    #[prop(into)] pointer: String,
    label: &'static str,
    options: &'static [(u64, &'static str)],
    #[prop(default = None, into)] free: Option<FreeSetting>,
) -> impl IntoView {
    let form = use_form();
    let chosen = is_chosen(form, free);
    let id = input_id(&pointer);
    let stored_pointer = StoredValue::new(pointer.clone());
    let value = Memo::new(move |_| {
        form.document.with(|document| {
            stored_pointer.with_value(|field_pointer| pointer::get(document, field_pointer).and_then(Value::as_u64))
        })
    });
    let choose = move |event| {
        stored_pointer.with_value(|field_pointer| match event_target_value(&event).parse::<u64>() {
            Ok(number) => form.set(field_pointer, number.into()),
            Err(_) => form.remove(field_pointer),
        });
    };
    let choices = options.iter().map(|(number, title)| {
        let selected = move || !chosen.get() && value.get() == Some(*number);
        view! { <option value=number.to_string() prop:selected=selected>{*title}</option> }
    });
    view! {
        <div class="field" class:choosable=free.is_some() class:chosen=move || chosen.get()>
            <label for=id.clone()>{label}</label>
            {free.map(|setting| view! { <FreeCheck setting=setting /> })}
            <select id=id disabled=move || chosen.get() data-pointer=pointer.clone() on:change=choose>
                <option value="" prop:selected=move || !chosen.get() && value.get().is_none()>"Automatic"</option>
                {choices.collect_view()}
                {free_option(free, chosen)}
            </select>
            <FieldError pointer=pointer />
        </div>
    }
}

/// Checkbox.
#[component]
pub(crate) fn CheckField(
    #[prop(into)] pointer: String,
    label: &'static str,
    /// Value if the document does not contain the field.
    #[prop(default = false)]
    when_absent: bool,
) -> impl IntoView {
    let form = use_form();
    let stored_pointer = StoredValue::new(pointer.clone());
    let checked = move || {
        form.document.with(|document| {
            stored_pointer.with_value(|field_pointer| {
                pointer::get(document, field_pointer).and_then(Value::as_bool).unwrap_or(when_absent)
            })
        })
    };
    view! {
        <label class="check">
            <input
                type="checkbox"
                data-pointer=pointer.clone()
                prop:checked=checked
                on:change=move |event| stored_pointer.with_value(|field_pointer| form.set(field_pointer, event_target_checked(&event).into()))
            />
            {label}
        </label>
        <FieldError pointer=pointer />
    }
}
