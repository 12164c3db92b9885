//! Recognizes click, selection, pan and pinch gestures in raw pointer events.

/// Movements below this distance count as a click, in px.
const CLICK: f64 = 4.0;

/// Selection rectangle in px, with left < right and top < bottom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Band {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// Press type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Press {
    /// Plain mouse or pen: a click, or a rectangle over rows and time.
    Select,
    /// Press on the axis: a time range to zoom into.
    Stretch,
    /// Shift, middle button, or touch: a click, or a pan.
    Pan,
}

/// Effect on pointer movement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Motion {
    /// No pressed pointer.
    Hover,
    /// Pressed, but not yet moved far enough.
    Undecided,
    /// Current selection rectangle.
    Band(Band),
    /// Pan distance in px.
    Pan(f64),
    /// Two-finger gesture: zoom about a position combined with a pan.
    Pinch {
        /// Zoom factor; values below 1 zoom in.
        factor: f64,
        /// Centre between the fingers, in px.
        about: f64,
        /// Movement of the centre, in px.
        moved: f64,
    },
}

/// Effect on pointer release.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Release {
    Click,
    Band(Band),
    /// Time range to zoom into. Uses only `left` and `right`.
    Stretch(Band),
    /// Pan or pinch finished, or no gesture.
    End,
}

#[derive(Debug, Clone, Copy)]
struct Pointer {
    id: i32,
    x: f64,
    y: f64,
}

/// Pressed pointers of a chart, at most two.
#[derive(Debug, Default)]
pub(crate) struct Gesture {
    pointers: Vec<Pointer>,
    start: (f64, f64),
    press: Option<Press>,
    moved: bool,
}

impl Gesture {
    /// Handles a pointer press.
    pub(crate) fn down(&mut self, id: i32, x: f64, y: f64, press: Press) {
        self.pointers.retain(|pointer| pointer.id != id);
        match self.pointers.len() {
            0 => (self.start, self.press, self.moved) = ((x, y), Some(press), false),
            1 => self.moved = true,
            _ => return,
        }
        self.pointers.push(Pointer { id, x, y });
    }

    /// Handles a pointer movement.
    pub(crate) fn moved(&mut self, id: i32, x: f64, y: f64) -> Motion {
        let Some(at) = self.pointers.iter().position(|pointer| pointer.id == id) else {
            return if self.pointers.is_empty() { Motion::Hover } else { Motion::Undecided };
        };
        let before = self.spread();
        let last_x = self.pointers[at].x;
        self.pointers[at] = Pointer { id, x, y };
        if let (Some((old_middle, old_spread)), Some((middle, spread))) = (before, self.spread()) {
            let factor = (old_spread.max(10.0) / spread.max(10.0)).clamp(0.2, 5.0);
            return Motion::Pinch { factor, about: middle, moved: middle - old_middle };
        }
        self.moved |= (x - self.start.0).hypot(y - self.start.1) >= CLICK;
        match self.press {
            _ if !self.moved => {
                // The pan includes the distance since the press, so that the chart does not jump.
                self.pointers[at].x = last_x;
                Motion::Undecided
            }
            Some(Press::Pan) => Motion::Pan(x - last_x),
            _ => Motion::Band(self.band(x, y)),
        }
    }

    /// Handles a pointer release.
    pub(crate) fn up(&mut self, id: i32, x: f64, y: f64) -> Release {
        let count = self.pointers.len();
        self.pointers.retain(|pointer| pointer.id != id);
        if count != 1 || !self.pointers.is_empty() {
            // If the user lifts a finger during a pinch, the remaining finger pans.
            self.press = Some(Press::Pan);
            return Release::End;
        }
        match (self.press.take(), self.moved) {
            (Some(_), false) => Release::Click,
            (Some(Press::Select), true) if (x - self.start.0).abs() >= CLICK => Release::Band(self.band(x, y)),
            (Some(Press::Stretch), true) if (x - self.start.0).abs() >= CLICK => Release::Stretch(self.band(x, y)),
            _ => Release::End,
        }
    }

    /// Ends the gesture after a `pointercancel` event or Esc.
    pub(crate) fn cancel(&mut self) {
        *self = Self::default();
    }

    fn band(&self, x: f64, y: f64) -> Band {
        let (from_x, from_y) = self.start;
        Band { left: from_x.min(x), right: from_x.max(x), top: from_y.min(y), bottom: from_y.max(y) }
    }

    fn spread(&self) -> Option<(f64, f64)> {
        match self.pointers[..] {
            [first, other] => Some((f64::midpoint(first.x, other.x), (first.x - other.x).hypot(first.y - other.y))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_press_without_movement_is_a_click() {
        let mut gesture = Gesture::default();
        assert_eq!(gesture.moved(1, 5.0, 5.0), Motion::Hover);
        gesture.down(1, 100.0, 10.0, Press::Select);
        assert_eq!(gesture.moved(1, 102.0, 11.0), Motion::Undecided);
        assert_eq!(gesture.up(1, 102.0, 10.0), Release::Click);
        assert_eq!(gesture.moved(1, 103.0, 11.0), Motion::Hover);
    }

    #[test]
    fn a_drag_spans_a_band_in_either_direction() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 10.0, Press::Select);
        let band = |left, bottom| Band { left, right: 100.0, top: 10.0, bottom };
        assert_eq!(gesture.moved(1, 60.0, 30.0), Motion::Band(band(60.0, 30.0)));
        assert_eq!(gesture.up(1, 40.0, 50.0), Release::Band(band(40.0, 50.0)));
    }

    #[test]
    fn axis_drag_selects_a_time_range() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 90.0, Press::Stretch);
        gesture.moved(1, 160.0, 10.0);
        assert_eq!(
            gesture.up(1, 160.0, 10.0),
            Release::Stretch(Band { left: 100.0, right: 160.0, top: 10.0, bottom: 90.0 })
        );
    }

    #[test]
    fn a_drag_back_to_its_start_is_neither_band_nor_click() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 10.0, Press::Select);
        gesture.moved(1, 160.0, 10.0);
        gesture.moved(1, 101.0, 10.0);
        assert_eq!(gesture.up(1, 101.0, 10.0), Release::End);
    }

    #[test]
    fn pan_follows_full_movement() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 10.0, Press::Pan);
        assert_eq!(gesture.moved(1, 102.0, 10.0), Motion::Undecided);
        assert_eq!(gesture.moved(1, 110.0, 10.0), Motion::Pan(10.0));
        assert_eq!(gesture.moved(1, 105.0, 10.0), Motion::Pan(-5.0));
        assert_eq!(gesture.up(1, 105.0, 10.0), Release::End);
    }

    #[test]
    fn two_fingers_zoom_and_remaining_finger_pans() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 10.0, Press::Pan);
        gesture.down(2, 200.0, 10.0, Press::Pan);
        // The distance grows from 100 px to 200 px, which halves the time range.
        assert_eq!(gesture.moved(2, 300.0, 10.0), Motion::Pinch { factor: 0.5, about: 200.0, moved: 50.0 });
        assert_eq!(gesture.up(2, 300.0, 10.0), Release::End);
        assert_eq!(gesture.moved(1, 90.0, 10.0), Motion::Pan(-10.0));
        assert_eq!(gesture.up(1, 90.0, 10.0), Release::End);
    }

    #[test]
    fn a_third_finger_and_a_cancel_change_nothing() {
        let mut gesture = Gesture::default();
        gesture.down(1, 100.0, 10.0, Press::Pan);
        gesture.down(2, 200.0, 10.0, Press::Pan);
        gesture.down(3, 250.0, 10.0, Press::Pan);
        assert_eq!(gesture.moved(3, 260.0, 10.0), Motion::Undecided);
        gesture.cancel();
        assert_eq!(gesture.moved(1, 0.0, 0.0), Motion::Hover);
        assert_eq!(gesture.up(1, 0.0, 10.0), Release::End);
    }
}
