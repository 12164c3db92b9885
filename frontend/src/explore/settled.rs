//! Delayed page state for components that may update late. During a slider drag they show the last
//! stable outcome.

use std::time::Duration;

use leptos::prelude::*;

use super::Explore;

/// A preview counts as stable if no other outcome arrives within this interval.
const REST: Duration = Duration::from_millis(400);

impl Explore {
    /// Returns a copy of the state whose outcome updates only when the current outcome is stable.
    /// Stored outcomes update immediately. The copy belongs to the caller's reactive owner.
    pub(crate) fn at_rest(self) -> Self {
        let result = RwSignal::new(self.result.get_untracked());
        let is_preview = RwSignal::new(self.is_preview.get_untracked());
        let number = StoredValue::new(0_u64);
        Effect::new(move |_| {
            let now = (self.result.get(), self.is_preview.get());
            number.update_value(|number| *number += 1);
            let mine = number.get_value();
            if !now.1 {
                result.set(now.0);
                is_preview.set(now.1);
                return;
            }
            let follow = move || {
                // A newer outcome has its own timer. The signals do not exist after the owner is
                // disposed.
                if number.try_get_value() == Some(mine) {
                    result.set(now.0);
                    is_preview.set(now.1);
                }
            };
            set_timeout(follow, REST);
        });
        Self { result, is_preview, ..self }
    }
}
