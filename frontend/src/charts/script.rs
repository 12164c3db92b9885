//! Loads plotly.js on first use and wraps its functions.

use std::cell::RefCell;

use js_sys::{Array, Function, JSON, Promise, Reflect};
use leptos::prelude::*;
use wasm_bindgen::closure::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{HtmlElement, HtmlScriptElement};

/// Load state of plotly.js.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Script {
    Loading,
    Ready,
    /// Load error.
    Failed(String),
}

/// URL if the page does not set one.
const DEFAULT_URL: &str = "/assets/plotly.js";

thread_local! {
    static SCRIPT: RefCell<Option<ArcRwSignal<Script>>> = const { RefCell::new(None) };
}

/// Returns the load state. Starts loading at the first call and again after an error.
pub(crate) fn load() -> ArcRwSignal<Script> {
    let (state, starts) = SCRIPT.with(|script| {
        let mut script = script.borrow_mut();
        let starts = script.as_ref().is_none_or(|state| matches!(state.get_untracked(), Script::Failed(_)));
        (script.get_or_insert_with(|| ArcRwSignal::new(Script::Loading)).clone(), starts)
    });
    if starts {
        state.set(if plotly().is_some() { Script::Ready } else { Script::Loading });
        if state.get_untracked() == Script::Loading {
            let waiting = state.clone();
            when_idle(move || {
                if let Err(error) = inject(&waiting) {
                    waiting.set(Script::Failed(error_message(&error)));
                }
            });
        }
    }
    state
}

/// Maximum wait for an idle period, in ms.
const PATIENCE_MS: i32 = 1_000;

/// Runs a function in the first idle period. Parsing plotly.js blocks the main thread for about 100
/// ms.
fn when_idle(then: impl FnOnce() + 'static) {
    let then = Closure::once_into_js(then);
    let idle =
        Reflect::get(&window(), &"requestIdleCallback".into()).ok().and_then(|it| it.dyn_into::<Function>().ok());
    let idle_request = idle.and_then(|idle| {
        let options = js_sys::Object::new();
        Reflect::set(&options, &"timeout".into(), &PATIENCE_MS.into()).ok()?;
        idle.call2(&window(), &then, &options).ok()
    });
    if idle_request.is_none() {
        // Browsers without `requestIdleCallback` run the function immediately.
        drop(then.unchecked_ref::<Function>().call0(&JsValue::NULL));
    }
}

fn inject(state: &ArcRwSignal<Script>) -> Result<(), JsValue> {
    let document = document();
    let url = document
        .query_selector("meta[name=plotly]")?
        .and_then(|meta| meta.get_attribute("content"))
        .filter(|url| !url.is_empty())
        .unwrap_or_else(|| DEFAULT_URL.to_owned());
    let script = document.create_element("script")?.unchecked_into::<HtmlScriptElement>();
    let (loaded, failed) = (state.clone(), state.clone());
    let failed_url = url.clone();
    let on_load = Closure::once_into_js(move || {
        let missing = || Script::Failed("plotly.js loaded, but is not what it should be".to_owned());
        loaded.set(if plotly().is_some() { Script::Ready } else { missing() });
    });
    let on_error = Closure::once_into_js(move || {
        failed.set(Script::Failed(format!("{failed_url} could not be loaded")));
    });
    script.set_onload(Some(on_load.unchecked_ref()));
    script.set_onerror(Some(on_error.unchecked_ref()));
    script.set_src(&url);
    document.head().ok_or("the page has no head")?.append_child(&script)?;
    Ok(())
}

fn plotly() -> Option<JsValue> {
    Reflect::get(&window(), &"Plotly".into()).ok().filter(JsValue::is_object)
}

/// Calls a plotly.js function and returns its promise.
fn call(object: &JsValue, name: &str, arguments: &Array) -> Result<Promise, JsValue> {
    let function = Reflect::get(object, &name.into())?.dyn_into::<Function>()?;
    Ok(Promise::resolve(&function.apply(object, arguments)?))
}

fn loaded() -> Result<JsValue, JsValue> {
    plotly().ok_or_else(|| "plotly.js is not loaded".into())
}

/// Draws a JSON plot into an element, or updates the existing plot.
pub(crate) fn react(element: &HtmlElement, plot: &str) -> Result<Promise, JsValue> {
    let plot = JSON::parse(plot)?;
    let part = |name: &str| Reflect::get(&plot, &name.into());
    let arguments = Array::of4(element, &part("data")?, &part("layout")?, &part("config")?);
    call(&loaded()?, "react", &arguments)
}

/// Returns a promise for the data URL of an image of a JSON plot. The size is in px, and the
/// background is opaque.
pub(crate) fn picture(plot: &str, format: &str, (width, height): (i32, i32), ground: &str) -> Result<Promise, JsValue> {
    let plot = JSON::parse(plot)?;
    let layout = Reflect::get(&plot, &"layout".into())?;
    for property in ["paper_bgcolor", "plot_bgcolor"] {
        Reflect::set(&layout, &property.into(), &ground.into())?;
    }
    let options = js_sys::Object::new();
    let sizes = [("width", width), ("height", height), ("scale", if format == "png" { 2 } else { 1 })];
    for (name, value) in sizes {
        Reflect::set(&options, &name.into(), &value.into())?;
    }
    Reflect::set(&options, &"format".into(), &format.into())?;
    call(&loaded()?, "toImage", &Array::of2(&plot, &options))
}

/// Click listener on the points of a plot; dropping it removes the listener.
pub(crate) struct Clicks {
    _listener: Closure<dyn Fn(JsValue)>,
}

/// Registers a callback for clicks on a drawn plot. It receives the trace index and the point
/// index.
pub(crate) fn on_click(element: &HtmlElement, clicked: impl Fn(usize, usize) + 'static) -> Result<Clicks, JsValue> {
    let number = |point: &JsValue, name: &str| Reflect::get(point, &name.into()).ok()?.as_f64().map(|at| at as usize);
    let listener = Closure::<dyn Fn(JsValue)>::new(move |event: JsValue| {
        let points = Reflect::get(&event, &"points".into()).map(|points| Array::from(&points).get(0));
        let point_index =
            points.ok().and_then(|point| Some((number(&point, "curveNumber")?, number(&point, "pointNumber")?)));
        if let Some((trace, mark)) = point_index {
            clicked(trace, mark);
        }
    });
    let on = Reflect::get(element, &"on".into())?.dyn_into::<Function>()?;
    on.call2(element, &"plotly_click".into(), listener.as_ref())?;
    Ok(Clicks { _listener: listener })
}

/// Resizes a plot to its element.
pub(crate) fn resize(element: &HtmlElement) -> Result<Promise, JsValue> {
    let plots = Reflect::get(&loaded()?, &"Plots".into())?;
    call(&plots, "resize", &Array::of1(element))
}

/// Frees the resources of a plot. Does nothing if plotly.js is not loaded.
pub(crate) fn purge(element: &HtmlElement) {
    if let Ok(plotly) = loaded() {
        drop(call(&plotly, "purge", &Array::of1(element)));
    }
}

/// Message of a thrown JavaScript value.
pub(crate) fn error_message(error: &JsValue) -> String {
    error
        .dyn_ref::<js_sys::Error>()
        .map(|error| String::from(error.message()))
        .or_else(|| error.as_string())
        .unwrap_or_else(|| "an unknown fault".to_owned())
}
