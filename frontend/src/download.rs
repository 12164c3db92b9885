//! File downloads created in the browser.

use leptos::prelude::document;
use wasm_bindgen::{JsCast, JsValue};

/// Downloads a text as a file.
pub(crate) fn text(name: &str, text: &str) -> Result<(), JsValue> {
    let parts = js_sys::Array::of1(&JsValue::from_str(text));
    let url = web_sys::Url::create_object_url_with_blob(&web_sys::Blob::new_with_str_sequence(&parts)?)?;
    address(name, &url)?;
    // The browser retains the content after the click, so the URL can be revoked.
    web_sys::Url::revoke_object_url(&url)
}

/// Downloads a URL as a file.
pub(crate) fn address(name: &str, url: &str) -> Result<(), JsValue> {
    let link = document().create_element("a")?.unchecked_into::<web_sys::HtmlElement>();
    link.set_attribute("href", url)?;
    link.set_attribute("download", name)?;
    link.click();
    Ok(())
}

/// Returns a file name valid on all systems, or `otherwise` if no valid character remains.
pub(crate) fn file_name(name: &str, otherwise: &str) -> String {
    let fits = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let name: String = name.chars().map(|letter| if fits(letter) { letter } else { '-' }).collect();
    let name = name.trim_matches(['-', '.']);
    if name.is_empty() { otherwise.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_sanitized() {
        assert_eq!(file_name("Interleaved 1F1B (VPP)", "schedule"), "Interleaved-1F1B--VPP");
        assert_eq!(file_name("../ä b", "schedule"), "ä-b");
        assert_eq!(file_name("()", "schedule"), "schedule");
    }
}
