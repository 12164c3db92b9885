//! Paints the time axis below the rows.

use web_sys::CanvasRenderingContext2d;

use super::TimeWindow;
use super::scene::Size;
use super::surface::plot_px;
use super::ticks;

/// Font and CSS colours of the axis.
pub(crate) struct AxisStyle<'a> {
    pub(crate) font: &'a str,
    /// Colour of the origin.
    pub(crate) ink: &'a str,
    /// Colour of ticks and labels.
    pub(crate) mute: &'a str,
}

/// Paints ticks, labels and origin from the height `top` on. The plot starts at `header_px`.
pub(crate) fn paint(
    context: &CanvasRenderingContext2d,
    style: &AxisStyle<'_>,
    window: TimeWindow,
    (size, header_px, top): (Size, f64, f64),
) {
    let axis = ticks::axis(window, plot_px(size.width, header_px));
    context.set_font(style.font);
    context.set_text_baseline("top");
    context.set_text_align("left");
    context.set_fill_style_str(style.mute);
    for tick in &axis.ticks {
        let x = header_px + size.snap(tick.x);
        context.fill_rect(x, top, 1.0 / size.ratio.min(1.0), 3.0);
        let width = context.measure_text(&tick.label).map_or(0.0, |metrics| metrics.width());
        let left = (x - width / 2.0).min(size.width - width).max(header_px - 10.0);
        // `fill_text` cannot fail with these arguments.
        let _ = context.fill_text(&tick.label, size.snap(left), top + 6.0);
    }
    if let Some(origin) = &axis.origin {
        context.set_fill_style_str(style.ink);
        context.set_text_align("right");
        let _ = context.fill_text(origin, header_px - 12.0, top + 6.0);
    }
}
