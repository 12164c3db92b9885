//! The way from a predicted number to how far such numbers have been from measured ones.

use leptos::prelude::*;

/// A link beside predicted numbers.
#[component]
pub(crate) fn AccuracyLink(
    /// What is predicted, for example "Times".
    what: &'static str,
) -> impl IntoView {
    view! {
        <p class="hint accuracy-link">
            {what}" are predicted. "<a href="/accuracy">"How far predictions have been from measurements"</a>
        </p>
    }
}
