//! The page as those parts see it that may come late: while a slider moves they keep the last answer that stood still.

use std::time::Duration;

use leptos::prelude::*;

use super::Explore;

/// An answer that was only tried out stands still when no other has come for so long.
const REST: Duration = Duration::from_millis(400);

impl Explore {
    /// The same page, whose answer follows when the present one stands still; a stored one does at once. The owner of the caller
    /// keeps it.
    pub(crate) fn at_rest(self) -> Self {
        let result = RwSignal::new(self.result.get_untracked());
        let tried = RwSignal::new(self.tried.get_untracked());
        let number = StoredValue::new(0_u64);
        Effect::new(move |_| {
            let now = (self.result.get(), self.tried.get());
            number.update_value(|number| *number += 1);
            let mine = number.get_value();
            if !now.1 {
                result.set(now.0);
                tried.set(now.1);
                return;
            }
            let follow = move || {
                // Newer answers have their own turn; without an owner there is nobody to show them to.
                if number.try_get_value() == Some(mine) {
                    result.set(now.0);
                    tried.set(now.1);
                }
            };
            set_timeout(follow, REST);
        });
        Self { result, tried, ..self }
    }
}
