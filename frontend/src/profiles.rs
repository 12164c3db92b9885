//! Profiles in the dashboard: effect on a scenario, source, and the scenarios planned with a
//! profile.

mod effect;
mod factors;
mod report_text;

pub(crate) use effect::{ChangeTable, EffectSummary, changes};
pub(crate) use factors::Factors;
pub(crate) use report_text::{change_words, is_parameter_line, line_text, split_detail};

use api::profile::{ProfileSource, ProfileSummary};
use leptos::prelude::*;

use crate::format;

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

/// Formats a mean residual. Points joined by lines have none, which is no quality of a fit.
pub(crate) fn residual_text(residual: f64) -> String {
    if residual < 5e-5 { "–, interpolated".to_owned() } else { format::percent(residual) }
}

#[component]
pub(crate) fn ProfileLink(summary: ProfileSummary) -> impl IntoView {
    view! { <a href=page(&summary.id) data-testid="profile-link">{summary.name}</a> }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interpolation_has_no_residual() {
        assert_eq!(residual_text(0.0), "–, interpolated");
        assert_eq!(residual_text(0.034), "3.40\u{202f}%");
    }
}
