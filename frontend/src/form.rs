//! A document that is edited field by field: what the fields of an editor have in common, whatever they edit.

use std::collections::BTreeSet;

use leptos::prelude::*;
use serde_json::Value;
use wasm_bindgen::JsCast;

use crate::field_errors::FieldErrors;

/// A document and what is wrong with it.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The document; null before one is there.
    pub(crate) document: RwSignal<Value>,
    /// What the server finds wrong with it.
    pub(crate) errors: RwSignal<FieldErrors>,
    /// What is no number at all, found here.
    pub(crate) unreadable: RwSignal<FieldErrors>,
    /// Fields on the page, by pointer; errors of others are shown elsewhere.
    pub(crate) fields: RwSignal<BTreeSet<String>>,
    /// Puts a value at a place, or takes it away.
    pub(crate) change: Callback<(String, Option<Value>)>,
}

impl Form {
    /// Puts a value at a place of the document.
    pub(crate) fn set(&self, pointer: &str, value: Value) {
        self.change.run((pointer.to_owned(), Some(value)));
    }

    /// Takes a field of the document away.
    pub(crate) fn remove(&self, pointer: &str) {
        self.change.run((pointer.to_owned(), None));
    }
}

/// Writes into a field what it said before: a signal that has not changed writes nothing.
pub(crate) fn put_back(event: &web_sys::Event, text: &str) {
    if let Some(field) = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlInputElement>().ok()) {
        field.set_value(text);
    }
}

/// The form that a field stands in.
pub(crate) fn use_form() -> Form {
    expect_context()
}
