//! Copies text to the clipboard, with a fallback for pages without the Clipboard API.

use leptos::prelude::{document, window};
use wasm_bindgen::{JsCast, JsValue};

/// Copies a text. Returns false if the browser rejects all methods.
pub(crate) async fn copy(text: &str) -> bool {
    let navigator = window().navigator();
    // The Clipboard API is undefined on plain HTTP from other hosts, and a call would throw.
    let present = js_sys::Reflect::get(&navigator, &JsValue::from_str("clipboard"))
        .is_ok_and(|clipboard| !clipboard.is_undefined());
    if present && wasm_bindgen_futures::JsFuture::from(navigator.clipboard().write_text(text)).await.is_ok() {
        return true;
    }
    copy_through_selection(text).unwrap_or(false)
}

/// Fallback: selects the text in a hidden text area and runs the `copy` command.
fn copy_through_selection(text: &str) -> Option<bool> {
    let document = document();
    let area: web_sys::HtmlTextAreaElement = document.create_element("textarea").ok()?.dyn_into().ok()?;
    area.set_value(text);
    area.set_class_name("visually-hidden");
    let body = document.body()?;
    body.append_child(&area).ok()?;
    area.select();
    let copy: js_sys::Function =
        js_sys::Reflect::get(&document, &JsValue::from_str("execCommand")).ok()?.dyn_into().ok()?;
    let copied = copy.call1(&document, &JsValue::from_str("copy")).ok()?.is_truthy();
    area.remove();
    Some(copied)
}
