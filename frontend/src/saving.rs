//! Files that the page makes itself.

use leptos::prelude::document;
use wasm_bindgen::{JsCast, JsValue};

/// Hands a text out as a file.
pub(crate) fn text(name: &str, text: &str) -> Result<(), JsValue> {
    let parts = js_sys::Array::of1(&JsValue::from_str(text));
    let url = web_sys::Url::create_object_url_with_blob(&web_sys::Blob::new_with_str_sequence(&parts)?)?;
    address(name, &url)?;
    // The download has its own hold on the content from the click on.
    web_sys::Url::revoke_object_url(&url)
}

/// Hands out as a file what stands at an address.
pub(crate) fn address(name: &str, url: &str) -> Result<(), JsValue> {
    let link = document().create_element("a")?.unchecked_into::<web_sys::HtmlElement>();
    link.set_attribute("href", url)?;
    link.set_attribute("download", name)?;
    link.click();
    Ok(())
}

/// A name that every system takes; `otherwise` where nothing of it is left.
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
    fn names_of_files_are_plain() {
        assert_eq!(file_name("Interleaved 1F1B (VPP)", "schedule"), "Interleaved-1F1B--VPP");
        assert_eq!(file_name("../ä b", "schedule"), "ä-b");
        assert_eq!(file_name("()", "schedule"), "schedule");
    }
}
