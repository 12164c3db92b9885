//! Combines redraw requests of a chart into one paint per frame.

use leptos::prelude::*;

/// Canvases to repaint in the next frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Due {
    pub(crate) bars: bool,
    pub(crate) marks: bool,
}

impl Due {
    pub(crate) const ALL: Self = Self { bars: true, marks: true };
    pub(crate) const MARKS: Self = Self { bars: false, marks: true };

    /// Adds a request. Returns true for the first one of a frame.
    fn add(&mut self, other: Self) -> bool {
        let is_first = !self.bars && !self.marks;
        self.bars |= other.bars;
        self.marks |= other.marks;
        is_first
    }
}

/// Schedules `paint` for the next frame, unless a paint is scheduled. `paint` takes the requests
/// from `waiting`.
pub(crate) fn request_paint(waiting: StoredValue<Due>, due: Due, paint: impl FnOnce() + 'static) {
    if waiting.try_update_value(|waiting| waiting.add(due)) == Some(true) {
        request_animation_frame(paint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_frame_are_combined() {
        let mut waiting = Due::default();
        assert!(waiting.add(Due::MARKS));
        assert!(!waiting.add(Due::ALL));
        assert!(waiting.bars && waiting.marks);
    }
}
