//! Profiles as pages show them: what they put into a scenario, in words, and scenarios that are planned with them.

mod effect;
mod factors;

pub(crate) use effect::{EffectWords, changes};
pub(crate) use factors::Factors;

use api::profile::{ProfileSource, ProfileSummary};
use leptos::prelude::*;

/// The page that shows a profile.
pub(crate) fn page(id: &str) -> String {
    format!("/profiles/{id}")
}

/// Where a profile comes from, in words.
pub(crate) fn source_words(source: &ProfileSource) -> String {
    match source {
        ProfileSource::Files { formats } if formats.is_empty() => "files".to_owned(),
        ProfileSource::Files { formats } => formats.join(", "),
        ProfileSource::Run { .. } => "a run beside its plan".to_owned(),
    }
}

/// A link to a profile.
#[component]
pub(crate) fn ProfileLink(summary: ProfileSummary) -> impl IntoView {
    view! { <a href=page(&summary.id) data-testid="profile-link">{summary.name}</a> }
}
