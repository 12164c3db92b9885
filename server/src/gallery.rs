//! Embedded example scenarios.

mod dflop;
mod dhp;
pub(crate) mod front_page;
mod heterogeneous;
mod hydraulis;
mod pipeweaver;

use api::gallery::{GalleryEntry, PaperLocation};
use planner::scenario::FieldError;

/// An example scenario before parsing.
struct Entry {
    slug: &'static str,
    /// Paper, and the table or figure in the paper.
    group: Option<(&'static str, &'static str)>,
    summary: &'static str,
    data: Data,
    file: &'static str,
}

/// Source of sequence lengths.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Data {
    /// Fixed lengths.
    Constant,
    /// Lengths drawn from Planscope's distributions, because the original data is not public.
    Synthetic,
    /// Lengths drawn from a measured histogram.
    Measured,
}

/// Scenarios that are not from a paper.
const ENTRIES: [Entry; 5] = [
    Entry {
        slug: "vlm-s-image-heavy",
        group: None,
        summary: "Samples have 0 to 32 images, so the times of microbatches differ much. Static schedules wait for the \
                  longest microbatch. PipeWeaver splits every batch by module, orders it again and recomputes only if \
                  memory requires it.",
        data: Data::Synthetic,
        file: include_str!("../../examples/vlm-s-image-heavy.json"),
    },
    Entry {
        slug: "llama-2-7b-long-documents",
        group: None,
        summary: "Documents of very different lengths, one per sequence, so the times of microbatches differ. Shows the \
                  waiting time of static schedules, and the gain of virtual stages and of a dynamic order.",
        data: Data::Synthetic,
        file: include_str!("../../examples/llama-2-7b-long-documents.json"),
    },
    Entry {
        slug: "source-files-strategies",
        group: None,
        summary: "Source files with measured lengths: most are short, a few need many devices. Compares pipelines of \
                  different sizes, chosen for every batch, with one size for all.",
        data: Data::Measured,
        file: include_str!("../../examples/source-files-strategies.json"),
    },
    Entry {
        slug: "source-files-groups",
        group: None,
        summary: "The same files with groups of devices that share long sequences. Compares one degree for all sequences \
                  with any degree for every microbatch.",
        data: Data::Measured,
        file: include_str!("../../examples/source-files-groups.json"),
    },
    Entry {
        slug: "gpt-3-175b-uniform",
        group: None,
        summary: "The largest preset with samples of equal length. The bubble follows the closed form, and a dynamic order \
                  has no gain. GPipe stores the activations of all microbatches and runs out of memory.",
        data: Data::Constant,
        file: include_str!("../../examples/gpt-3-175b-uniform.json"),
    },
];

/// Returns the gallery in display order.
pub(crate) fn entries() -> Result<Vec<GalleryEntry>, Vec<FieldError>> {
    ENTRIES
        .into_iter()
        .chain(pipeweaver::ENTRIES)
        .chain(dhp::ENTRIES)
        .chain(hydraulis::ENTRIES)
        .chain(dflop::ENTRIES)
        .chain(heterogeneous::ENTRIES)
        .map(|entry| {
            let scenario = planner::scenario::parse(entry.file)?;
            Ok(GalleryEntry {
                slug: entry.slug.to_owned(),
                title: scenario.title.clone().unwrap_or_else(|| entry.slug.to_owned()),
                summary: entry.summary.to_owned(),
                scenario,
                paper: entry
                    .group
                    .map(|(title, location)| PaperLocation { title: title.to_owned(), place: location.to_owned() }),
                is_synthetic: entry.data == Data::Synthetic,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use planner::scenario::ValidScenario;
    use planner::scenario::validate::NoDatasets;

    #[test]
    fn every_ready_scenario_is_valid_and_titled() {
        for entry in super::entries().unwrap() {
            assert!(entry.scenario.title.is_some(), "{}", entry.slug);
            ValidScenario::new(entry.scenario, &NoDatasets).unwrap();
        }
    }

    #[test]
    fn slugs_are_links_and_papers_stand_together() {
        let entries = super::entries().unwrap();
        let mut slugs: Vec<&str> = entries.iter().map(|entry| entry.slug.as_str()).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), entries.len());
        assert!(slugs.iter().all(|slug| slug.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')));
        let mut groups: Vec<_> = entries.iter().map(|entry| entry.paper.as_ref().map(|paper| &paper.title)).collect();
        groups.dedup();
        let runs = groups.len();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups.len(), runs);
    }

    /// Drawn lengths use Planscope's distributions: no example scenario contains a dataset.
    #[test]
    fn varying_setups_are_marked_synthetic() {
        for entry in super::entries().unwrap() {
            let samples = serde_json::to_string(&entry.scenario.workload.samples).unwrap();
            let varies = ["uniform", "log_normal", "mixture", "phases"].iter().any(|kind| samples.contains(kind));
            assert_eq!(entry.is_synthetic, varies, "{}", entry.slug);
        }
    }
}
