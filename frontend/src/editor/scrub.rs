//! The name of a number field as a slider: drawn to the right the number grows, to the left it falls.

use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::slider::Slider;
use crate::form::Form;
use crate::pointer;

/// Pixels from one position of the slider to the next.
const PX_PER_POSITION: f64 = 4.0;

/// A hand on the name.
#[derive(Clone, Copy)]
struct Held {
    slider: Slider,
    /// Where the pointer was.
    x: f64,
    /// Where the slider was.
    from: f64,
    /// Where it is.
    at: f64,
}

/// Draws a number by its field's name.
#[derive(Clone, Copy)]
pub(super) struct Scrub {
    place: StoredValue<String>,
    form: Form,
    /// The slider to move, and its position.
    begun: StoredValue<Box<dyn Fn() -> (Slider, f64) + Send + Sync>>,
    held: StoredValue<Option<Held>>,
}

impl Scrub {
    pub(super) fn new(
        place: StoredValue<String>,
        form: Form,
        begun: impl Fn() -> (Slider, f64) + Send + Sync + 'static,
    ) -> Self {
        Self { place, form, begun: StoredValue::new(Box::new(begun)), held: StoredValue::new(None) }
    }

    pub(super) fn begin(self, event: &web_sys::PointerEvent) {
        let Some(name) = event.current_target().map(JsCast::unchecked_into::<web_sys::Element>) else { return };
        if event.button() != 0 || name.set_pointer_capture(event.pointer_id()).is_err() {
            return;
        }
        let (slider, at) = self.begun.with_value(|begun| begun());
        self.held.set_value(Some(Held { slider, x: f64::from(event.client_x()), from: at, at }));
    }

    pub(super) fn go_on(self, event: &web_sys::PointerEvent) {
        let Some(held) = self.held.get_value() else { return };
        let (least, most) = held.slider.range();
        let by = ((f64::from(event.client_x()) - held.x) / PX_PER_POSITION).trunc();
        let at = (held.from + by).clamp(least, most);
        // A hand that has not moved, or moved back, writes nothing: values between two positions stay what they are.
        if (at - held.at).abs() < 0.5 {
            return;
        }
        self.held.set_value(Some(Held { at, ..held }));
        if let Some(value) = pointer::parse_number(&held.slider.typed(at)) {
            self.place.with_value(|place| self.form.set(place, value));
        }
    }

    pub(super) fn end(self) {
        self.held.set_value(None);
    }
}
