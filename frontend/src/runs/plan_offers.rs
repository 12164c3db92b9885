//! Scenarios available for comparison with a run, and links that refer to a scenario.

use api::gallery::{Gallery, GalleryEntry};
use api::planner::scenario::Scenario;
use api::scenario::ScenarioLine;

use crate::format;

/// Length of a full identifier in characters.
const IDENTIFIER: usize = 52;
/// Minimum length of an identifier prefix.
const MIN_PREFIX: usize = 10;
/// Maximum number of gallery entries without a search text.
const FEW: usize = 8;
/// Maximum number of gallery entries for a search.
const MANY: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PastedLink {
    /// Identifier or identifier prefix of a stored scenario.
    Stored(String),
    /// URL fragment that contains the scenario.
    Contained(String),
}

/// Parses a link from text: `/s/ID`, `/c/#z1.…`, either with origin, or a full identifier.
pub(super) fn pasted_link(text: &str) -> Option<PastedLink> {
    let text = text.trim();
    let form = api::contained::FIRST_FORM;
    if let Some((_, fragment)) = text.split_once('#')
        && fragment.starts_with(form)
    {
        return Some(PastedLink::Contained(fragment.to_owned()));
    }
    if text.starts_with(form) {
        return Some(PastedLink::Contained(text.to_owned()));
    }
    let named = text.rsplit_once("/s/").map(|(_, behind)| behind);
    let candidate = named.unwrap_or(text);
    let end = candidate.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(candidate.len());
    let id = candidate[..end].to_ascii_lowercase();
    let shortest = if named.is_some() { MIN_PREFIX } else { IDENTIFIER };
    let is_identifier =
        (shortest..=IDENTIFIER).contains(&id.len()) && id.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'2'..=b'7'));
    is_identifier.then_some(PastedLink::Stored(id))
}

/// Scenario in the list.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Offer {
    /// Stored scenario or draft.
    Stored(Box<ScenarioLine>),
    /// Gallery scenario.
    Ready(Box<GalleryEntry>),
}

impl Offer {
    pub(super) fn title(&self) -> &str {
        match self {
            Self::Stored(line) => &line.title,
            Self::Ready(entry) => &entry.title,
        }
    }

    /// Returns model and cluster.
    pub(super) fn detail(&self) -> String {
        match self {
            Self::Stored(line) => format!("{} on {}", line.model, format::cluster(&line.cluster)),
            Self::Ready(entry) => {
                let Scenario { model, cluster, .. } = &entry.scenario;
                format!("{} on {} x {} {}", model.name, cluster.nodes, cluster.devices_per_node, cluster.name)
            }
        }
    }

    /// Returns the fastest planner and its step time, if the scenario is planned.
    pub(super) fn figure(&self) -> Option<(String, f64)> {
        match self {
            Self::Stored(line) => line.best.as_ref().map(|best| (best.planner.clone(), best.iteration_s)),
            Self::Ready(_) => None,
        }
    }
}

/// List heading and scenarios.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OfferGroup {
    pub(super) title: &'static str,
    pub(super) offers: Vec<Offer>,
}

/// Returns the non-empty groups: drafts, saved scenarios, gallery entries that contain all search
/// words.
pub(super) fn groups(
    drafts: Vec<ScenarioLine>,
    saved: Vec<ScenarioLine>,
    gallery: Option<&Gallery>,
    search: &str,
) -> Vec<OfferGroup> {
    let terms: Vec<String> = search.to_lowercase().split_whitespace().map(str::to_owned).collect();
    let matches = |entry: &&GalleryEntry| {
        let text =
            format!("{} {} {} {}", entry.title, entry.slug, entry.scenario.model.name, entry.scenario.cluster.name)
                .to_lowercase();
        terms.iter().all(|word| text.contains(word))
    };
    let max_entries = if terms.is_empty() { FEW } else { MANY };
    let entries = gallery.iter().flat_map(|gallery| &gallery.entries).filter(matches).take(max_entries);
    let ready = entries.map(|entry| Offer::Ready(Box::new(entry.clone()))).collect();
    // A draft that is saved between the two requests appears in both lists.
    let drafts = drafts.into_iter().filter(|draft| saved.iter().all(|line| line.id != draft.id)).collect();
    let stored = |lines: Vec<ScenarioLine>| lines.into_iter().map(|line| Offer::Stored(Box::new(line))).collect();
    let groups = [
        OfferGroup { title: "Your drafts, last used first", offers: stored(drafts) },
        OfferGroup { title: "Saved scenarios", offers: stored(saved) },
        OfferGroup { title: "Gallery", offers: ready },
    ];
    groups.into_iter().filter(|group| !group.offers.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_form_names_its_scenario() {
        let id = "abcdefghij234567".to_owned();
        for text in [
            "/s/abcdefghij234567",
            " https://plan.example.org/s/abcdefghij234567#i=3&w=0..5 ",
            "http://127.0.0.1:8080/s/ABCDEFGHIJ234567?token=x",
        ] {
            assert_eq!(pasted_link(text), Some(PastedLink::Stored(id.clone())), "{text}");
        }
        let full_id = "a".repeat(52);
        assert_eq!(pasted_link(&full_id), Some(PastedLink::Stored(full_id.clone())));
        for text in ["/c/#z1.abc", "https://plan.example.org/c/#z1.abc", "z1.abc"] {
            assert_eq!(pasted_link(text), Some(PastedLink::Contained("z1.abc".to_owned())), "{text}");
        }
    }

    #[test]
    fn search_text_is_no_link() {
        for text in
            ["", "llama", "long documents", "llamaonmanydevices", "/s/short", "/s/abcdefgh0189", "/c/#z2.abc", "#"]
        {
            assert_eq!(pasted_link(text), None, "{text}");
        }
    }
}
