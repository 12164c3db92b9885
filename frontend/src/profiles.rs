//! Profiles in the dashboard: effect on a scenario, source, and the scenarios planned with a
//! profile.

mod effect;
mod factors;

pub(crate) use effect::{EffectSummary, changes};
pub(crate) use factors::Factors;

use api::profile::{ProfileSource, ProfileSummary};
use leptos::prelude::*;

/// URL of a profile page.
pub(crate) fn page(id: &str) -> String {
    format!("/profiles/{id}")
}

/// Describes the source of a profile.
pub(crate) fn source_text(source: &ProfileSource) -> String {
    match source {
        ProfileSource::Files { formats } if formats.is_empty() => "files".to_owned(),
        ProfileSource::Files { formats } => formats.join(", "),
        ProfileSource::Run { .. } => "a run compared with its plan".to_owned(),
    }
}

#[component]
pub(crate) fn ProfileLink(summary: ProfileSummary) -> impl IntoView {
    view! { <a href=page(&summary.id) data-testid="profile-link">{summary.name}</a> }
}
