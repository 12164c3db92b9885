//! Link from predicted numbers to the page with prediction errors.

use leptos::prelude::*;

/// Renders the link to the accuracy page.
#[component]
pub(crate) fn AccuracyLink(
    /// Name of the predicted quantity, for example "Times".
    subject: &'static str,
) -> impl IntoView {
    view! {
        <p class="hint accuracy-link">
            {subject}" are predicted. "<a href="/accuracy">"How far predictions have been from measurements"</a>
        </p>
    }
}
