//! Responses that `start.js` requests while the WebAssembly program is still loading.

use js_sys::{Map, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};

/// Global variable in which `start.js` stores a map from paths to promises. A promise resolves to a
/// response, or to nothing if no request was necessary.
const GLOBAL_NAME: &str = "planscopeAhead";

/// Returns the prefetched response for a GET request, if it exists. Removes it from the map, so
/// that stale data is never displayed.
pub(super) fn take(url: &str) -> Option<Promise> {
    let prefetched = Reflect::get(&leptos::prelude::window(), &GLOBAL_NAME.into()).ok()?.dyn_into::<Map>().ok()?;
    let url = JsValue::from_str(url);
    let response = prefetched.get(&url).dyn_into::<Promise>().ok()?;
    prefetched.delete(&url);
    Some(response)
}
