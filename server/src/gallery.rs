//! Ready scenarios, embedded.

use api::gallery::GalleryEntry;
use planner::scenario::FieldError;

/// Slug, what it shows and why it is interesting, file.
const ENTRIES: [(&str, &str, &str); 4] = [
    (
        "vlm-s-image-heavy",
        "Samples hold anything from no image to 32, so microbatches take very different times. Static schedules \
         wait for the longest one; PipeWeaver cuts every batch by module, orders it anew and recomputes only where \
         memory asks for it.",
        include_str!("../../examples/vlm-s-image-heavy.json"),
    ),
    (
        "vlm-s-pipeweaver-steps",
        "The same batches with PipeWeaver's techniques switched on one after the other, over chunks of equal \
         parameters: partition by module, dual-queue interleaving, ranking, layer tuning (table 5 of the paper: \
         17.3, 38.9, 48.3 and 62.8 % on data of its own).",
        include_str!("../../examples/vlm-s-pipeweaver-steps.json"),
    ),
    (
        "llama-2-7b-long-documents",
        "Documents of very different length, one to a sequence, so every microbatch takes its own time. Shows how \
         much of a static schedule is waiting, and how much virtual stages and a dynamic order win back.",
        include_str!("../../examples/llama-2-7b-long-documents.json"),
    ),
    (
        "gpt-3-175b-uniform",
        "The largest preset on samples of one length: the textbook case, in which the bubble follows the closed \
         form and a dynamic order has nothing to gain. GPipe, which holds the activations of every microbatch, \
         runs out of memory.",
        include_str!("../../examples/gpt-3-175b-uniform.json"),
    ),
];

/// The gallery, in the order in which pages show it.
pub(crate) fn entries() -> Result<Vec<GalleryEntry>, Vec<FieldError>> {
    ENTRIES
        .into_iter()
        .map(|(slug, summary, file)| {
            let scenario = planner::scenario::parse(file)?;
            Ok(GalleryEntry {
                slug: slug.to_owned(),
                title: scenario.title.clone().unwrap_or_else(|| slug.to_owned()),
                summary: summary.to_owned(),
                scenario,
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
}
