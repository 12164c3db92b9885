//! Colour theme: light, dark, or system setting.

use leptos::prelude::*;

use crate::storage;

/// Selected theme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    System,
    Light,
    Dark,
}

impl Theme {
    fn parse(text: &str) -> Self {
        match text {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    const fn id(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// Resolves the theme to dark (true) or light (false).
    const fn is_dark(self, system_is_dark: bool) -> bool {
        match self {
            Self::System => system_is_dark,
            Self::Light => false,
            Self::Dark => true,
        }
    }

    /// Returns the next theme of the toggle. The first click after the system setting always
    /// changes the colours.
    const fn next(self, system_is_dark: bool) -> Self {
        match (self, system_is_dark) {
            (Self::System, false) | (Self::Light, true) => Self::Dark,
            (Self::System, true) | (Self::Dark, false) => Self::Light,
            (Self::Light, false) | (Self::Dark, true) => Self::System,
        }
    }
}

fn system_is_dark() -> bool {
    window().match_media("(prefers-color-scheme: dark)").ok().flatten().is_some_and(|query| query.matches())
}

/// Theme button. The resolved theme is in the `data-theme` attribute of the document.
#[component]
pub(crate) fn ThemeToggle() -> impl IntoView {
    let theme = RwSignal::new(storage::read(storage::THEME).map_or(Theme::System, |text| Theme::parse(&text)));
    let apply = move || {
        let name = if theme.get_untracked().is_dark(system_is_dark()) { "dark" } else { "light" };
        if let Some(root) = document().document_element() {
            // Setting an attribute with a valid name cannot fail.
            drop(root.set_attribute("data-theme", name));
        }
    };
    Effect::new(move |_| {
        theme.track();
        apply();
    });
    if let Ok(Some(query)) = window().match_media("(prefers-color-scheme: dark)") {
        let changed = wasm_bindgen::closure::Closure::<dyn Fn()>::new(apply);
        query.set_onchange(Some(wasm_bindgen::JsCast::unchecked_ref(changed.as_ref())));
        // The listener lives as long as the page.
        changed.forget();
        std::mem::forget(query);
    }
    let press = move |_| {
        theme.update(|theme| *theme = theme.next(system_is_dark()));
        storage::write(storage::THEME, theme.get_untracked().id());
    };
    let label = move || match theme.get() {
        Theme::System => "Theme: as the system",
        Theme::Light => "Theme: light",
        Theme::Dark => "Theme: dark",
    };
    let drawing = move || match theme.get() {
        Theme::System => "M8 1.5a6.5 6.5 0 1 0 0 13a6.5 6.5 0 0 0 0-13zM8 3v10a5 5 0 0 0 0-10z",
        Theme::Light => {
            "M8 5a3 3 0 1 0 0 6a3 3 0 0 0 0-6zM7.3.8h1.4v2.4H7.3zM7.3 12.8h1.4v2.4H7.3zM.8 7.3h2.4v1.4H.8zM12.8 7.3h2.4v1.4h-2.4zM2.4 3.4l1-1 1.7 1.7-1 1zM10.9 11.9l1-1 1.7 1.7-1 1zM2.4 12.6l1.7-1.7 1 1-1.7 1.7zM10.9 4.1l1.7-1.7 1 1-1.7 1.7z"
        }
        Theme::Dark => "M6 1.6a6.5 6.5 0 1 0 8.4 8.4A5.4 5.4 0 0 1 6 1.6z",
    };
    view! {
        <button class="icon" data-testid="theme" data-choice=move || theme.get().id() title=label aria-label=label on:click=press>
            <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=drawing fill="currentColor" fill-rule="evenodd" /></svg>
        </button>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toggle_goes_through_all_choices_and_its_first_press_shows() {
        for system_is_dark in [false, true] {
            let first = Theme::System.next(system_is_dark);
            assert_ne!(first.is_dark(system_is_dark), system_is_dark);
            let second = first.next(system_is_dark);
            assert_ne!(second, Theme::System);
            assert_eq!(second.next(system_is_dark), Theme::System);
        }
    }
}
