//! Drag control on the label of a number field. Dragging to the right increases the value; dragging
//! to the left decreases it.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::slider::Slider;
use crate::form::Form;
use crate::pointer;

/// Distance in px per slider position.
const PX_PER_POSITION: f64 = 4.0;
/// Maximum movement of a tap or the start of a scroll gesture, in px. Shorter movements do not
/// change the value.
const TAP_PX: f64 = 8.0;

/// Active drag.
#[derive(Clone, Copy)]
struct ActiveDrag {
    slider: Slider,
    /// Initial pointer position in px.
    x: f64,
    /// Dead zone in px before the slider moves.
    slack: f64,
    /// Initial slider position.
    from: f64,
    /// Current slider position.
    at: f64,
}

/// Drag handler for a field label.
#[derive(Clone, Copy)]
pub(super) struct Scrub {
    stored_pointer: StoredValue<String>,
    form: Form,
    /// Returns the slider and its current position.
    begun: StoredValue<Box<dyn Fn() -> (Slider, f64) + Send + Sync>>,
    active_drag: StoredValue<Option<ActiveDrag>>,
}

impl Scrub {
    pub(super) fn new(
        stored_pointer: StoredValue<String>,
        form: Form,
        begun: impl Fn() -> (Slider, f64) + Send + Sync + 'static,
    ) -> Self {
        Self { stored_pointer, form, begun: StoredValue::new(Box::new(begun)), active_drag: StoredValue::new(None) }
    }

    pub(super) fn start(self, event: &web_sys::PointerEvent) {
        let Some(name) = event.current_target().map(JsCast::unchecked_into::<web_sys::Element>) else { return };
        if event.button() != 0 || name.set_pointer_capture(event.pointer_id()).is_err() {
            return;
        }
        let (slider, at) = self.begun.with_value(|begun| begun());
        let slack = if event.pointer_type() == "mouse" { 0.0 } else { TAP_PX };
        self.active_drag.set_value(Some(ActiveDrag { slider, x: f64::from(event.client_x()), slack, from: at, at }));
    }

    pub(super) fn drag(self, event: &web_sys::PointerEvent) {
        let Some(drag) = self.active_drag.get_value() else { return };
        let (lower, upper) = drag.slider.range();
        let by = (beyond(f64::from(event.client_x()) - drag.x, drag.slack) / PX_PER_POSITION).trunc();
        let at = (drag.from + by).clamp(lower, upper);
        // A drag without movement does not write, so that values between two slider positions are
        // unchanged.
        if (at - drag.at).abs() < 0.5 {
            return;
        }
        self.active_drag.set_value(Some(ActiveDrag { at, ..drag }));
        if let Some(value) = pointer::parse_number(&drag.slider.typed(at)) {
            self.stored_pointer.with_value(|field_pointer| self.form.set(field_pointer, value));
        }
    }

    pub(super) fn end(self) {
        self.active_drag.set_value(None);
    }
}

/// Distance beyond the dead zone.
fn beyond(distance: f64, slack: f64) -> f64 {
    distance - distance.clamp(-slack, slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tap_moves_nothing_and_a_way_begins_where_the_slack_ends() {
        let distances = [-20, -8, -3, 0, 7, 8, 12];
        let left = |slack: f64| distances.map(|distance| beyond(f64::from(distance), slack) as i32);
        assert_eq!(left(TAP_PX), [-12, 0, 0, 0, 0, 0, 4]);
        assert_eq!(left(0.0), distances);
    }
}
