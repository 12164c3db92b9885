//! Answers that `start.js` asked for beside the program, while that was still being loaded.

use js_sys::{Map, Promise, Reflect};
use wasm_bindgen::{JsCast, JsValue};

/// Where `start.js` keeps them: paths to promises of responses, or of nothing where there was no reason to ask.
const PLACE: &str = "planscopeAhead";

/// The answer to a GET of this path, if it is on its way already; handed out once, so that nothing old is ever shown.
pub(super) fn take(url: &str) -> Option<Promise> {
    let asked = Reflect::get(&leptos::prelude::window(), &PLACE.into()).ok()?.dyn_into::<Map>().ok()?;
    let url = JsValue::from_str(url);
    let answer = asked.get(&url).dyn_into::<Promise>().ok()?;
    asked.delete(&url);
    Some(answer)
}
