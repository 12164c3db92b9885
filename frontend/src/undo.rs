//! Undo and redo.

/// Previous and undone states.
#[derive(Debug, Default)]
pub(crate) struct History<T> {
    past: Vec<T>,
    future: Vec<T>,
    last: Option<(String, f64)>,
}

/// Maximum interval in ms between edits of the same field in one undo step. A slider drag is a
/// single step.
const MERGE_INTERVAL_MS: f64 = 800.0;
/// Maximum number of undo steps.
const STEPS: usize = 200;

impl<T> History<T> {
    /// Records state `before` an edit of `field`.
    pub(crate) fn edited(&mut self, before: T, field: &str, now_ms: f64) {
        let continues = self.last.as_ref().is_some_and(|(name, at)| name == field && now_ms - at < MERGE_INTERVAL_MS);
        self.last = Some((field.to_owned(), now_ms));
        self.future.clear();
        if continues {
            return;
        }
        if self.past.len() == STEPS {
            self.past.remove(0);
        }
        self.past.push(before);
    }

    /// Returns the previous state. [`Self::redo`] restores `present`.
    pub(crate) fn undo(&mut self, present: T) -> Option<T> {
        let before = self.past.pop()?;
        self.future.push(present);
        self.last = None;
        Some(before)
    }

    /// Returns the state before the last undo.
    pub(crate) fn redo(&mut self, present: T) -> Option<T> {
        let after = self.future.pop()?;
        self.past.push(present);
        self.last = None;
        Some(after)
    }

    pub(crate) fn can_undo(&self) -> bool {
        !self.past.is_empty()
    }

    pub(crate) fn can_redo(&self) -> bool {
        !self.future.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_undone_and_redone_in_order() {
        let mut history = History::default();
        history.edited(0, "/a", 0.0);
        history.edited(1, "/b", 10.0);
        assert_eq!(history.undo(2), Some(1));
        assert_eq!(history.undo(1), Some(0));
        assert_eq!(history.undo(0), None);
        assert_eq!(history.redo(0), Some(1));
        assert_eq!(history.redo(1), Some(2));
        assert!(!history.can_redo());
    }

    #[test]
    fn slider_drag_is_a_single_step_and_edit_clears_redo() {
        let mut history = History::default();
        history.edited(0, "/a", 0.0);
        history.edited(1, "/a", 100.0);
        history.edited(2, "/a", 200.0);
        assert_eq!(history.undo(3), Some(0));
        assert!(history.can_redo() && !history.can_undo());
        history.edited(0, "/a", 300.0);
        assert!(!history.can_redo() && history.can_undo());
        history.edited(5, "/a", 300.0 + MERGE_INTERVAL_MS);
        assert_eq!(history.undo(6), Some(5));
    }

    #[test]
    fn old_steps_are_forgotten() {
        let mut history = History::default();
        for step in 0..=STEPS {
            history.edited(step, &step.to_string(), 0.0);
        }
        let undone = std::iter::successors(history.undo(999), |&state| history.undo(state)).last();
        assert_eq!(undone, Some(1));
    }
}
