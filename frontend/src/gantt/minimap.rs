//! Overview strip below a chart with a draggable window.

use std::sync::Arc;

use api::planner::timeline::levels::{INKS, Level};
use leptos::html;
use leptos::prelude::*;
use wasm_bindgen::{Clamped, JsCast};
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement, ImageData, PointerEvent};

use super::TimeWindow;
use super::chart::Chart;
use super::colours::Paint;
use super::observers::{SizeObserver, pixel_ratio, theme_version};
use super::raster::{Area, Raster, Rgb};
use super::rows;
use super::style::Style;
use super::surface::{RIGHT, Surface, plot_px};

/// Strip height in px.
const HEIGHT: f64 = 14.0;

/// Pixel colours for a strip with `height` rows and a column per level bucket, in row-major order.
/// A pixel has the ink with the highest time in its lanes, and its opacity is the busy fraction.
fn picture(level: &Level, ranks: usize, height: usize, paints: &[Paint; INKS], ground: Rgb) -> Vec<Rgb> {
    let columns = level.stretches as usize;
    let mut pixels = vec![ground; columns * height];
    if ranks == 0 || level.lanes() < 2 * ranks {
        return pixels;
    }
    for row in 0..height {
        let first = row * ranks / height;
        let last = ((row + 1) * ranks / height).clamp(first + 1, ranks);
        for column in 0..columns {
            let mut time = [0_u32; INKS];
            for rank in first..last {
                let cell = level.lane(2 * rank).start + column;
                time[usize::from(level.ink[cell]).min(INKS - 1)] += u32::from(level.busy[cell]);
            }
            let dominant_ink = (0..INKS).max_by_key(|&ink| (time[ink], INKS - ink)).unwrap_or(0);
            let occupancy = time.iter().sum::<u32>() / (last - first) as u32;
            pixels[row * columns + column] = paints[dominant_ink].fill.over(ground, occupancy.min(255) as u8);
        }
    }
    pixels
}

/// State of the strip between two paints.
#[derive(Default)]
struct Strip {
    raster: Raster,
    /// Cache key: width, extent and version.
    cache_key: Option<(usize, u64, u64)>,
}

/// Overview strip component.
#[component]
pub(crate) fn Minimap(chart: Chart) -> impl IntoView {
    let canvas: NodeRef<html::Canvas> = NodeRef::new();
    let strip = StoredValue::new_local(Strip::default());
    let width = RwSignal::new(0.0_f64);
    // Increases when timeline, inks or theme change, and invalidates the raster.
    let version = StoredValue::new(0_u64);
    let dragged = StoredValue::new(None::<f64>);
    let observer = StoredValue::new_local(None::<SizeObserver>);
    Effect::new(move |_| {
        let Some(element) = canvas.get() else { return };
        let read = move || {
            if let Some(Some(canvas)) = canvas.try_get_untracked()
                && width
                    .try_get_untracked()
                    .is_some_and(|before| before.total_cmp(&f64::from(canvas.client_width())).is_ne())
            {
                width.set(f64::from(canvas.client_width()));
            }
        };
        read();
        observer.set_value(SizeObserver::new(&element, read));
    });
    let theme = theme_version();
    Effect::new(move |_| {
        chart.timeline.track();
        chart.overview.track();
        chart.inks.track();
        theme.track();
        version.update_value(|version| *version += 1);
    });
    let theme = theme_version();
    Effect::new(move |_| {
        chart.timeline.track();
        chart.overview.track();
        chart.inks.track();
        theme.track();
        width.track();
        let (window, extent) = (chart.visible_window(), chart.extent());
        request_animation_frame(move || {
            let Some(Some(canvas)) = canvas.try_get_untracked() else { return };
            let Some(Some(style)) = chart.painter.try_with_value(|painter| painter.style().cloned()) else { return };
            let picture_number = version.try_get_value().unwrap_or(0);
            // After unmounting there is nothing to paint.
            let _painted =
                strip.try_update_value(|strip| paint(strip, chart, &canvas, &style, (window, extent, picture_number)));
        });
    });
    let to = move |event: &PointerEvent| {
        let plot = plot_px(width.get_untracked(), rows::HEADER);
        let share = ((f64::from(event.offset_x()) - rows::HEADER) / plot).clamp(0.0, 1.0);
        share * untrack(|| chart.extent()) as f64
    };
    let centre_at = move |ns: f64| {
        chart.change(|window, extent| window.panned(ns - window.centre_ns(), extent));
    };
    view! {
        <canvas
            class="gantt-minimap"
            node_ref=canvas
            aria-hidden="true"
            title="The whole of it; drag to move what is shown"
            on:pointerdown=move |event| {
                let at = to(&event);
                let window = chart.visible();
                // A press inside the window drags it from this point. A press outside centres the
                // window there.
                let inside = at >= window.start_ns && at <= window.end_ns;
                if !inside {
                    centre_at(at);
                }
                dragged.set_value(Some(if inside { at - window.centre_ns() } else { 0.0 }));
                if let Some(canvas) = canvas.get_untracked() {
                    // If pointer capture fails, a drag ends at the edge of the strip.
                    drop(canvas.set_pointer_capture(event.pointer_id()));
                }
            }
            on:pointermove=move |event| if let Some(hold) = dragged.get_value() { centre_at(to(&event) - hold) }
            on:pointerup=move |_| dragged.set_value(None)
            on:pointercancel=move |_| dragged.set_value(None)
        ></canvas>
    }
}

fn paint(
    strip: &mut Strip,
    chart: Chart,
    canvas: &HtmlCanvasElement,
    style: &Style,
    (window, extent, number): (TimeWindow, u64, u64),
) -> Option<()> {
    let ratio = pixel_ratio();
    let css = f64::from(canvas.client_width());
    let pixels = |px: f64| (px * ratio).round().max(1.0) as usize;
    let (width, height) = (pixels(css - rows::HEADER - RIGHT), pixels(HEIGHT));
    if (canvas.width() as usize, canvas.height() as usize) != (pixels(css), height) {
        canvas.set_width(pixels(css) as u32);
        canvas.set_height(height as u32);
    }
    if strip.cache_key != Some((width, extent, number)) {
        make(&mut strip.raster, chart, style, (width, height), extent);
        strip.cache_key = Some((width, extent, number));
    }
    let context = canvas.get_context("2d").ok().flatten()?.dyn_into::<CanvasRenderingContext2d>().ok()?;
    context.clear_rect(0.0, 0.0, f64::from(canvas.width()), height as f64);
    let raster = &strip.raster;
    let (columns, lines) = (raster.width() as u32, raster.height() as u32);
    let image = ImageData::new_with_u8_clamped_array_and_sh(Clamped(raster.bytes()), columns, lines).ok()?;
    let left = (rows::HEADER * ratio).round();
    context.put_image_data(&image, left, 0.0).ok()?;
    // Dims the time outside the window and draws a frame around the window.
    let at = |ns: f64| left + (ns / (extent.max(1) as f64)).clamp(0.0, 1.0) * width as f64;
    let (from, to) = (at(window.start_ns), at(window.end_ns));
    context.set_fill_style_str(&style.chrome.panel);
    context.set_global_alpha(0.6);
    context.fill_rect(left, 0.0, from - left, height as f64);
    context.fill_rect(to, 0.0, left + width as f64 - to, height as f64);
    context.set_global_alpha(1.0);
    context.set_stroke_style_str(&style.chrome.mute);
    context.set_line_width(ratio);
    context.stroke_rect(from + ratio / 2.0, ratio / 2.0, (to - from - ratio).max(ratio), height as f64 - ratio);
    Some(())
}

fn make(raster: &mut Raster, chart: Chart, style: &Style, (width, height): (usize, usize), extent: u64) {
    raster.clear(width, height, style.panel);
    let inks = chart.inks.get_untracked();
    let timeline = chart.timeline.get_untracked();
    let overview = chart.overview.get_untracked();
    let (level, ranks, makespan) = match (&timeline, &inks, &overview) {
        (Some(timeline), Some(inks), _) => {
            let coarse = inks.0.levels.last().cloned();
            let level = coarse.unwrap_or_else(|| Level::new(timeline, inks.0.column(timeline), 1_024));
            (Arc::new(level), timeline.ranks as usize, timeline.makespan_ns)
        }
        (_, _, Some(overview)) => (Arc::new(overview.level.clone()), overview.ranks as usize, overview.makespan_ns),
        _ => return,
    };
    let colours = picture(&level, ranks, height, &style.paints, style.panel);
    let columns = level.stretches as usize;
    let covered = makespan as f64 / extent.max(1) as f64 * width as f64;
    let per_ns = columns as f64 / (level.width_ns as f64 * columns as f64).max(1.0);
    for y in 0..height {
        for x in 0..(covered.ceil() as usize).min(width) {
            let ns = x as f64 / width as f64 * extent as f64;
            let column = ((ns * per_ns) as usize).min(columns - 1);
            raster.fill(Area { left: x, top: y, right: x + 1, bottom: y + 1 }, colours[y * columns + column]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::colours::paints;
    use super::super::palette::Theme;
    use super::super::sample;
    use super::*;

    #[test]
    fn strip_opacity_matches_lane_occupancy() {
        let timeline = sample::one_f_one_b(2, 3);
        let level = Level::new(&timeline, &timeline.kind, 64);
        let white = Rgb(255, 255, 255);
        let paints = paints(Theme::Light, white);
        let pixels = picture(&level, 2, 4, &paints, white);
        assert_eq!(pixels.len(), 64 * 4);
        // Rank 0 starts with a forward, and rank 1 waits for it.
        assert_eq!(pixels[0], paints[0].fill);
        assert_eq!(pixels[3 * 64], white);
        assert_eq!(picture(&level, 9, 4, &paints, white), vec![white; 256], "an overview of fewer lanes");
    }
}
