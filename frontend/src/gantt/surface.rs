//! Navigation on a time axis, shared by charts of plans and traces: window, wheel, pointer gestures,
//! keys, scrolling and tooltip position.

use leptos::html;
use leptos::prelude::*;
use web_sys::{PointerEvent, WheelEvent};

use super::TimeWindow;
use super::gesture::{Band, Gesture, Motion, Press, Release};
use super::keys::Command;
use super::observers::SizeObserver;

/// Right margin of the plot for the last axis label, in px.
pub(crate) const RIGHT: f64 = 12.0;
/// Height of a scroll line in px, for browsers that report wheel events in lines.
const LINE_PX: f64 = 16.0;
/// Zoom rate per px of wheel movement.
const ZOOM_PER_PX: f64 = 0.005;
/// Maximum wheel movement of one event in px, because some mice report several notches at once.
const MAX_WHEEL_PX: f64 = 80.0;
/// Distance of a tooltip from the pointer, in px.
const TOOLTIP_OFFSET_PX: f64 = 14.0;

/// Elements and pointer state of a chart.
#[derive(Clone, Copy)]
pub(crate) struct Viewport {
    pub(crate) canvas: NodeRef<html::Canvas>,
    /// Scroll container of the rows.
    pub(crate) scroller: NodeRef<html::Div>,
    /// Search field.
    pub(crate) search: NodeRef<html::Input>,
    /// Canvas size in px.
    pub(crate) size: RwSignal<(f64, f64)>,
    /// Scroll offset of the rows in px.
    pub(crate) scrolled: RwSignal<f64>,
    /// Pointer position in canvas px, if the pointer is over this chart.
    pub(crate) pointer: RwSignal<Option<(f64, f64)>>,
    pub(crate) gesture: StoredValue<Gesture>,
}

impl Viewport {
    pub(crate) fn new() -> Self {
        Self {
            canvas: NodeRef::new(),
            scroller: NodeRef::new(),
            search: NodeRef::new(),
            size: RwSignal::new((0.0, 0.0)),
            scrolled: RwSignal::new(0.0),
            pointer: RwSignal::new(None),
            gesture: StoredValue::new(Gesture::default()),
        }
    }

    /// Follows the size of the canvas.
    pub(crate) fn track_size(self) {
        let observer = StoredValue::new_local(None::<SizeObserver>);
        Effect::new(move |_| {
            let Some(canvas) = self.canvas.get() else { return };
            let read = move || {
                if let Some(Some(canvas)) = self.canvas.try_get_untracked() {
                    let size = (f64::from(canvas.client_width()), f64::from(canvas.client_height()));
                    if self.size.try_get_untracked().is_some_and(|before| before != size) {
                        self.size.set(size);
                    }
                }
            };
            read();
            observer.set_value(SizeObserver::new(&canvas, read));
        });
    }

    /// Reads the scroll offset of the rows.
    pub(crate) fn read_scroll(self) {
        if let Some(scroller) = self.scroller.get_untracked() {
            self.scrolled.set(f64::from(scroller.scroll_top()));
        }
    }

    /// Scrolls to the offset that `to` returns for the current offset and the height of the rows
    /// above an axis of `axis_px`. All sizes are in px.
    pub(crate) fn scroll_to(self, axis_px: f64, to: impl FnOnce(f64, f64) -> f64) {
        if let Some(scroller) = self.scroller.get_untracked() {
            let from = f64::from(scroller.scroll_top());
            let wanted = to(from, f64::from(scroller.client_height()) - axis_px);
            if (wanted - from).abs() >= 1.0 {
                scroller.set_scroll_top(wanted as i32);
            }
        }
    }

    /// Returns true if the canvas has the focus.
    pub(crate) fn has_focus(self) -> bool {
        let active = document().active_element();
        active
            .is_some_and(|active| self.canvas.get_untracked().is_some_and(|canvas| active.is_same_node(Some(&canvas))))
    }
}

/// Chart with row headers at the left and a time axis at the bottom.
pub(crate) trait Surface: Copy + 'static {
    /// Width of the row headers in px.
    const HEADER_PX: f64;

    fn viewport(self) -> Viewport;
    /// Visible time range, without reactive tracking.
    fn visible(self) -> TimeWindow;
    /// Changes the visible time range. `to` gets the range and the extent of the axis in ns.
    fn change(self, to: impl FnOnce(TimeWindow, u64) -> TimeWindow);

    /// Plot width in px.
    fn plot_px(self) -> f64 {
        plot_px(self.viewport().size.try_get_untracked().unwrap_or_default().0, Self::HEADER_PX)
    }

    /// Time at a horizontal canvas position.
    fn ns_at(self, x: f64) -> f64 {
        self.visible().ns_at(x - Self::HEADER_PX, self.plot_px())
    }

    /// Shows the full time range.
    fn fit(self) {
        self.change(|_, extent| TimeWindow::fit(extent));
    }

    /// Multiplies the visible duration by `factor`. The time `about_ns` remains at its position.
    fn zoom(self, about_ns: f64, factor: f64) {
        self.change(|window, extent| window.zoomed(about_ns, factor, extent));
    }

    /// Shifts the window by a distance in px.
    fn pan_px(self, px: f64) {
        let plot = self.plot_px();
        self.change(|window, extent| window.panned(-px / plot * window.width_ns(), extent));
    }

    /// Time range under a selection rectangle.
    fn band_window(self, band: Band) -> TimeWindow {
        let right = Self::HEADER_PX + self.plot_px();
        let ns = |x: f64| self.ns_at(x.clamp(Self::HEADER_PX, right));
        TimeWindow { start_ns: ns(band.left), end_ns: ns(band.right) }
    }
}

/// Plot width in px for a canvas width and a header width.
pub(crate) fn plot_px(width: f64, header_px: f64) -> f64 {
    (width - header_px - RIGHT).max(1.0)
}

/// Effect of a wheel movement.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WheelMotion {
    /// Zooms by a factor.
    Zoom(f64),
    /// Pans by a distance in px.
    Pan(f64),
    /// Scrolls the page or the rows.
    Scroll,
}

/// Keys during a wheel movement, and what the wheel does without keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WheelMode {
    /// Vertical movement scrolls the page or the rows.
    ScrollRows,
    /// Vertical movement zooms, because the chart has the focus and no rows to scroll.
    Zoom,
    /// The chart does not have the focus, and the wheel scrolls the page.
    Page,
}

fn wheel_motion((across, down): (f64, f64), (ctrl, shift): (bool, bool), mode: WheelMode) -> WheelMotion {
    let is_horizontal = across.abs() > down.abs();
    if ctrl || (mode == WheelMode::Zoom && !shift && !is_horizontal) {
        WheelMotion::Zoom((down.clamp(-MAX_WHEEL_PX, MAX_WHEEL_PX) * ZOOM_PER_PX).exp())
    } else if shift || (is_horizontal && mode != WheelMode::Page) {
        // Some browsers convert Shift+wheel to horizontal scrolling.
        WheelMotion::Pan(-if across == 0.0 { down } else { across })
    } else {
        WheelMotion::Scroll
    }
}

/// Handles a wheel event. Returns true if the window may have changed.
pub(crate) fn wheel(surface: impl Surface, event: &WheelEvent, mode: WheelMode) -> bool {
    let unit = match event.delta_mode() {
        WheelEvent::DOM_DELTA_LINE => LINE_PX,
        WheelEvent::DOM_DELTA_PAGE => LINE_PX * 20.0,
        _ => 1.0,
    };
    let delta = (event.delta_x() * unit, event.delta_y() * unit);
    let keys = (event.ctrl_key() || event.meta_key(), event.shift_key());
    match wheel_motion(delta, keys, mode) {
        WheelMotion::Zoom(factor) => surface.zoom(surface.ns_at(f64::from(event.offset_x())), factor),
        WheelMotion::Pan(px) => surface.pan_px(px),
        WheelMotion::Scroll => return false,
    }
    event.prevent_default();
    true
}

/// Pointer position on the canvas in px.
pub(crate) fn position(event: &PointerEvent) -> (f64, f64) {
    (f64::from(event.offset_x()), f64::from(event.offset_y()))
}

/// Handles a pointer press. A press with the primary button at or below `axis_top_px` selects a
/// time range.
pub(crate) fn pressed(surface: impl Surface, event: &PointerEvent, axis_top_px: f64) {
    let (x, y) = position(event);
    let press = match (event.pointer_type().as_str(), event.button()) {
        ("touch", _) | (_, 1) => Press::Pan,
        (_, 0) if event.shift_key() => Press::Pan,
        (_, 0) if y >= axis_top_px => Press::Stretch,
        (_, 0) => Press::Select,
        _ => return,
    };
    if let Some(canvas) = surface.viewport().canvas.get_untracked() {
        // If pointer capture fails, a drag ends at the canvas edge.
        drop(canvas.set_pointer_capture(event.pointer_id()));
    }
    surface.viewport().gesture.update_value(|gesture| gesture.down(event.pointer_id(), x, y, press));
}

/// Handles a pointer movement: pans and zooms. Returns the motion.
pub(crate) fn moved(surface: impl Surface, event: &PointerEvent) -> Option<Motion> {
    let (x, y) = position(event);
    let motion = surface.viewport().gesture.try_update_value(|gesture| gesture.moved(event.pointer_id(), x, y))?;
    match motion {
        Motion::Pan(px) => surface.pan_px(px),
        Motion::Pinch { factor, about, moved } => {
            surface.zoom(surface.ns_at(about), factor);
            surface.pan_px(moved);
        }
        Motion::Undecided | Motion::Hover | Motion::Band(_) => {}
    }
    Some(motion)
}

/// Handles a pointer release.
pub(crate) fn released(surface: impl Surface, event: &PointerEvent) -> Option<Release> {
    let (x, y) = position(event);
    surface.viewport().gesture.try_update_value(|gesture| gesture.up(event.pointer_id(), x, y))
}

/// Executes a key command that moves the window or starts a search. `about_ns` is the fixed time of
/// a zoom. Returns other commands.
pub(crate) fn navigate(surface: impl Surface, command: Command, about_ns: impl FnOnce() -> f64) -> Option<Command> {
    match command {
        Command::Zoom(factor) => surface.zoom(about_ns(), factor),
        Command::Pan(share) => surface.change(|window, extent| window.panned(window.width_ns() * share, extent)),
        Command::Fit => surface.fit(),
        Command::Search => {
            if let Some(search) = surface.viewport().search.get_untracked() {
                // If the element rejects the focus, the focus does not move.
                drop(search.focus());
                search.select();
            }
        }
        other => return Some(other),
    }
    None
}

/// CSS position of a tooltip at a pointer position in a chart of the given size. `extent` is the
/// largest size of the tooltip. All sizes are in px.
pub(crate) fn tooltip_style((x, y): (f64, f64), (width, height): (f64, f64), extent: (f64, f64)) -> String {
    let offset = TOOLTIP_OFFSET_PX;
    let left = if x + offset + extent.0 <= width {
        format!("left:{:.0}px", x + offset)
    } else {
        format!("right:{:.0}px", (width - x + offset).min(width - 60.0).max(0.0))
    };
    // In the upper half the tooltip is below the pointer, so that it does not extend beyond the top
    // of the page.
    let top = if y + extent.1 <= height.max(2.0 * extent.1) {
        format!("top:{:.0}px", y + offset)
    } else {
        format!("bottom:{:.0}px", height - y + offset)
    };
    format!("{left};{top}")
}

/// Writes what is painted to data attributes of the canvas, for tests and debugging.
pub(crate) fn write_attributes<const N: usize>(canvas: &web_sys::HtmlCanvasElement, attributes: [(&str, String); N]) {
    for (name, value) in attributes {
        // `set_attribute` fails only for invalid attribute names.
        drop(canvas.set_attribute(name, &value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_KEYS: (bool, bool) = (false, false);

    #[test]
    fn a_wheel_without_focus_scrolls_the_page() {
        assert_eq!(wheel_motion((0.0, 30.0), NO_KEYS, WheelMode::Page), WheelMotion::Scroll);
        assert_eq!(wheel_motion((30.0, 0.0), NO_KEYS, WheelMode::Page), WheelMotion::Scroll);
        assert_eq!(wheel_motion((0.0, 30.0), NO_KEYS, WheelMode::ScrollRows), WheelMotion::Scroll);
    }

    #[test]
    fn the_wheel_zooms_with_control_or_focus() {
        // exp(0.005 x 40) per event, at most exp(0.005 x 80).
        let factor = |motion| if let WheelMotion::Zoom(factor) = motion { factor } else { f64::NAN };
        let zoom = wheel_motion((0.0, 40.0), NO_KEYS, WheelMode::Zoom);
        assert!((factor(zoom) - 0.2_f64.exp()).abs() < 1e-12);
        let fast = wheel_motion((0.0, -900.0), (true, false), WheelMode::Page);
        assert!((factor(fast) - (-0.4_f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn shift_and_horizontal_movement_pan() {
        assert_eq!(wheel_motion((0.0, 40.0), (false, true), WheelMode::Zoom), WheelMotion::Pan(-40.0));
        assert_eq!(wheel_motion((25.0, 40.0), (false, true), WheelMode::Page), WheelMotion::Pan(-25.0));
        assert_eq!(wheel_motion((25.0, 4.0), NO_KEYS, WheelMode::Zoom), WheelMotion::Pan(-25.0));
        assert_eq!(wheel_motion((25.0, 4.0), NO_KEYS, WheelMode::ScrollRows), WheelMotion::Pan(-25.0));
    }

    #[test]
    fn a_tooltip_stays_inside_the_chart() {
        let style = |x, y| tooltip_style((x, y), (1_000.0, 400.0), (250.0, 90.0));
        assert_eq!(style(100.0, 20.0), "left:114px;top:34px");
        assert_eq!(style(900.0, 20.0), "right:114px;top:34px");
        assert_eq!(style(100.0, 390.0), "left:114px;bottom:24px");
        assert_eq!(tooltip_style((5.0, 60.0), (200.0, 100.0), (250.0, 90.0)), "right:140px;top:74px");
    }

    #[test]
    fn the_plot_is_never_empty() {
        assert!((plot_px(1_000.0, 150.0) - (850.0 - RIGHT)).abs() < f64::EPSILON);
        assert!((plot_px(10.0, 150.0) - 1.0).abs() < f64::EPSILON);
    }
}
