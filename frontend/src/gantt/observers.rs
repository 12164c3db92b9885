//! Observers for element size and page theme.

use std::cell::OnceCell;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, MutationObserver, MutationObserverInit, ResizeObserver};

use super::palette::Theme;

/// Calls a function when an element's size changes. Dropping the observer stops the calls.
pub(crate) struct SizeObserver {
    observer: ResizeObserver,
    _callback: Closure<dyn FnMut()>,
}

impl SizeObserver {
    /// Observes an element. Returns `None` if the browser does not support `ResizeObserver`.
    pub(crate) fn new(element: &Element, on_change: impl FnMut() + 'static) -> Option<Self> {
        let callback = Closure::<dyn FnMut()>::new(on_change);
        let observer = ResizeObserver::new(callback.as_ref().unchecked_ref()).ok()?;
        observer.observe(element);
        Some(Self { observer, _callback: callback })
    }
}

impl Drop for SizeObserver {
    fn drop(&mut self) {
        self.observer.disconnect();
    }
}

thread_local! {
    static THEME_VERSION: OnceCell<ArcRwSignal<u32>> = const { OnceCell::new() };
}

/// Signal with the number of theme changes. Effects that read it run again after a theme change.
pub(crate) fn theme_version() -> ArcRwSignal<u32> {
    THEME_VERSION.with(|cell| {
        cell.get_or_init(|| {
            let version = ArcRwSignal::new(0);
            let counter = version.clone();
            let callback = Closure::<dyn FnMut()>::new(move || counter.update(|count| *count += 1));
            let init = MutationObserverInit::new();
            init.set_attributes(true);
            init.set_attribute_filter(&js_sys::Array::of1(&"data-theme".into()));
            let is_attached = document().document_element().is_some_and(|root| {
                MutationObserver::new(callback.as_ref().unchecked_ref())
                    .and_then(|observer| observer.observe_with_options(&root, &init))
                    .is_ok()
            });
            if is_attached {
                // The closure lives as long as the page.
                callback.forget();
            }
            version
        })
        .clone()
    })
}

/// Current page theme.
pub(crate) fn theme() -> Theme {
    let theme = document().document_element().and_then(|root| root.get_attribute("data-theme"));
    if theme.as_deref() == Some("dark") { Theme::Dark } else { Theme::Light }
}

/// Returns a function that reads CSS variables of the page.
pub(crate) fn css_variables() -> impl Fn(&str, &str) -> String {
    let style = document().document_element().and_then(|root| window().get_computed_style(&root).ok().flatten());
    move |name, default| {
        style
            .as_ref()
            .and_then(|style| style.get_property_value(name).ok())
            .map(|value| value.trim().to_owned())
            .filter(|value| !value.is_empty())
            .unwrap_or_else(|| default.to_owned())
    }
}

/// Device pixels per CSS pixel.
pub(crate) fn pixel_ratio() -> f64 {
    window().device_pixel_ratio().clamp(0.5, 4.0)
}
