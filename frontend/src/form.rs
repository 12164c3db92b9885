//! Form state of a JSON document, shared by all editor fields.

use std::collections::BTreeSet;

use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen::JsCast;

use crate::field_errors::FieldErrors;

/// JSON document with its validation errors.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Document; null before loading.
    pub(crate) document: RwSignal<Value>,
    /// Validation errors from the server.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// Input that is not a number, detected in the browser.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Mounted fields, by JSON pointer. Errors of other fields are displayed elsewhere.
    pub(crate) fields: RwSignal<BTreeSet<String>>,
    /// Sets the value at a JSON pointer, or removes it for `None`.
    pub(crate) change: Callback<(String, Option<Value>)>,
}

impl Form {
    /// Sets the value at a JSON pointer.
    pub(crate) fn set(&self, pointer: &str, value: Value) {
        self.change.run((pointer.to_owned(), Some(value)));
    }

    /// Removes the value at a JSON pointer.
    pub(crate) fn remove(&self, pointer: &str) {
        self.change.run((pointer.to_owned(), None));
    }
}

/// Restores the text of an input element. Necessary because an unchanged signal does not update the
/// DOM.
pub(crate) fn restore_text(event: &web_sys::Event, text: &str) {
    if let Some(field) = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok()) {
        field.set_value(text);
    }
}

/// Returns the form from the context.
pub(crate) fn use_form() -> Form {
    expect_context()
}
