//! Component for one plotly.js chart with its loading and error states.

use leptos::html;
use leptos::prelude::*;
use leptos::task::spawn_local;
use wasm_bindgen_futures::JsFuture;
use web_sys::HtmlElement;

use super::script::{self, Script, error_message};
use crate::client::pause;
use crate::download;
use crate::gantt::observers::{SizeObserver, css_variables};

/// DOM element of a plot. Frees the plot when the component unmounts.
struct Mounted {
    element: HtmlElement,
    _size: Option<SizeObserver>,
    clicks: Option<script::Clicks>,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        script::purge(&self.element);
    }
}

/// State of the redraw queue. At most one plotly.js call runs at a time, and the latest plot wins.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    is_drawing: bool,
    due: bool,
    /// Number of redraw requests.
    request_count: u32,
}

/// A redraw of an existing chart waits for this interval without new data, so that elements under
/// the pointer update first.
const REST_MS: i32 = 60;
/// Maximum redraw delay while new data keeps arriving.
const PATIENCE_MS: f64 = 400.0;

#[derive(Clone, Copy)]
struct Drawing {
    container: NodeRef<html::Div>,
    plot: Signal<Option<String>>,
    error_message: RwSignal<Option<String>>,
    drawn: RwSignal<bool>,
    work: StoredValue<Work>,
    mounted: StoredValue<Option<Mounted>, LocalStorage>,
    on_pick: Option<Callback<(usize, usize)>>,
}

impl Drawing {
    fn request(self) {
        let starts = self.work.try_update_value(|work| {
            work.due = true;
            work.request_count = work.request_count.wrapping_add(1);
            !std::mem::replace(&mut work.is_drawing, true)
        });
        if starts != Some(true) {
            return;
        }
        let is_drawn = self.drawn.get_untracked();
        request_animation_frame(move || {
            spawn_local(async move {
                if is_drawn {
                    self.rest().await;
                }
                self.draw_until_done().await;
            });
        });
    }

    async fn rest(self) {
        let request_count = || self.work.try_get_value().map(|work| work.request_count);
        let begun = js_sys::Date::now();
        loop {
            let before = request_count();
            pause(REST_MS).await;
            if request_count() == before || js_sys::Date::now() - begun > PATIENCE_MS {
                return;
            }
        }
    }

    /// Adds the click listener after the first draw.
    fn listen(self) {
        let Some(on_pick) = self.on_pick else { return };
        self.mounted.try_update_value(|mounted| {
            if let Some(mounted) = mounted.as_mut().filter(|mounted| mounted.clicks.is_none()) {
                // If the listener fails, the table next to the chart still lists all points.
                mounted.clicks = script::on_click(&mounted.element, move |trace, mark| on_pick.run((trace, mark))).ok();
            }
        });
    }

    async fn draw_until_done(self) {
        while self.work.try_update_value(|work| std::mem::take(&mut work.due)) == Some(true) {
            let mounted_container = self.container.try_get_untracked().flatten();
            let plot = self.plot.try_get_untracked().flatten();
            let (Some(element), Some(plot)) = (mounted_container, plot) else { continue };
            let result = match script::react(&element, &plot) {
                Ok(promise) => JsFuture::from(promise).await.map(drop),
                Err(error) => Err(error),
            };
            let message = result.err().map(|error| error_message(&error));
            if self.error_message.is_disposed() {
                return;
            }
            self.drawn.set(message.is_none());
            if message.is_none() {
                self.listen();
            }
            self.error_message.set(message);
        }
        self.work.try_update_value(|work| work.is_drawing = false);
    }
}

/// Plotly.js chart.
#[component]
pub(super) fn Figure(
    /// Plot as JSON; `None` if no data is available.
    #[prop(into)]
    plot: Signal<Option<String>>,
    /// Text alternative for screen readers.
    #[prop(into)]
    label: Signal<String>,
    /// CSS class that sets the height.
    class: &'static str,
    /// Receives the chart width in px.
    #[prop(optional)]
    width: Option<RwSignal<f64>>,
    /// Height in px, if it depends on the data.
    #[prop(optional, into)]
    height: Option<Signal<f64>>,
    /// Called with the trace index and the point index after a click.
    #[prop(optional_no_strip)]
    on_pick: Option<Callback<(usize, usize)>>,
) -> impl IntoView {
    let script = script::load();
    let drawing = Drawing {
        container: NodeRef::new(),
        plot,
        error_message: RwSignal::new(None),
        drawn: RwSignal::new(false),
        work: StoredValue::new(Work::default()),
        mounted: StoredValue::new_local(None),
        on_pick,
    };
    Effect::new(move |_| {
        let Some(container_element) = drawing.container.get() else { return };
        let element: HtmlElement = container_element.into();
        let resized = element.clone();
        let read = move || {
            let now = f64::from(resized.client_width());
            if let Some(width) =
                width.filter(|width| width.try_get_untracked().is_some_and(|before| (before - now).abs() >= 1.0))
            {
                width.set(now);
            }
            if now > 0.0 && drawing.drawn.try_get_untracked() == Some(true) {
                let resized = resized.clone();
                // Plotly.js cannot resize a hidden chart. The chart is resized when it becomes
                // visible.
                spawn_local(async move {
                    if let Ok(promise) = script::resize(&resized) {
                        drop(JsFuture::from(promise).await);
                    }
                });
            }
        };
        read();
        let size = SizeObserver::new(&element, read);
        drawing.mounted.set_value(Some(Mounted { element, _size: size, clicks: None }));
    });
    let ready = script.clone();
    Effect::new(move |_| {
        if ready.get() == Script::Ready && plot.with(Option::is_some) {
            drawing.request();
        }
    });
    let message = move || {
        let reason = match script.get() {
            Script::Failed(reason) => Some(reason),
            Script::Loading | Script::Ready => drawing.error_message.get(),
        };
        reason.map(|reason| {
            view! { <p class="chart-message" role="alert">{format!("This chart could not be drawn: {reason}.")}</p> }
        })
    };
    view! {
        <div class=format!("chart {class}") style:height=move || height.map(|height| format!("{:.0}px", height.get()))>
            <div class="chart-plot" node_ref=drawing.container role="img" aria-label=label></div>
            <Show when=move || drawing.drawn.get()>
                <Saves drawing=drawing label=label />
            </Show>
            {message}
        </div>
    }
}

/// Buttons that save the chart as an image. They are visible on hover or focus.
#[component]
fn Saves(drawing: Drawing, label: Signal<String>) -> impl IntoView {
    let save = move |format: &'static str| {
        let (Some(Some(container_element)), Some(plot)) =
            (drawing.container.try_get_untracked(), drawing.plot.get_untracked())
        else {
            return;
        };
        let name = label.with_untracked(|label| download::file_name(short(label), "chart"));
        let ground = css_variables()("--panel", "#ffffff");
        let size = (container_element.client_width(), container_element.client_height());
        spawn_local(async move {
            let saved = match script::picture(&plot, format, size, &ground) {
                Ok(promise) => JsFuture::from(promise).await,
                Err(error) => Err(error),
            };
            let saved = saved
                .and_then(|url| download::address(&format!("{name}.{format}"), &url.as_string().unwrap_or_default()));
            if let Err(error) = saved {
                drawing.error_message.try_set(Some(format!("as a picture: {}", error_message(&error))));
            }
        });
    };
    let button = move |format: &'static str, text: &'static str| {
        let spoken = move || format!("Save as {text}: {}", label.with(|label| short(label).to_owned()));
        view! { <button type="button" class="quiet" data-format=format aria-label=spoken on:click=move |_| save(format)>{text}</button> }
    };
    view! { <span class="chart-saves">{button("png", "PNG")}{button("svg", "SVG")}</span> }
}

/// Start of a chart label, for file names.
fn short(label: &str) -> &str {
    let first = label.split(['.', ':', ';']).next().unwrap_or(label).trim();
    let end = first.char_indices().nth(60).map_or(first.len(), |(at, _)| at);
    &first[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_starts_with_chart_title() {
        assert_eq!(short("Memory by rank: peak 71.2 GiB. Limit 80"), "Memory by rank");
        assert_eq!(short(&"ä".repeat(99)).chars().count(), 60);
        assert_eq!(short(""), "");
    }
}
