//! Copying text, with and without the browser's blessing.

use leptos::prelude::{document, window};
use wasm_bindgen::{JsCast, JsValue};

/// Copies a text; false where the browser refuses every way.
pub(crate) async fn copy(text: &str) -> bool {
    let navigator = window().navigator();
    // Absent on plain http from another machine; calling it there would throw.
    let present = js_sys::Reflect::get(&navigator, &JsValue::from_str("clipboard"))
        .is_ok_and(|clipboard| !clipboard.is_undefined());
    if present && wasm_bindgen_futures::JsFuture::from(navigator.clipboard().write_text(text)).await.is_ok() {
        return true;
    }
    copy_through_selection(text).unwrap_or(false)
}

/// The old way: select the text in a hidden field and copy the selection.
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
