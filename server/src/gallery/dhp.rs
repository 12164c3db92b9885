//! Set-ups of DHP's experiments (Niu et al., 2026). Its lengths are not public: durations of video are ours.

use super::{Data, Entry};

/// As the group is shown.
const GROUP: &str = "DHP (Niu et al., 2026)";

const fn entry(slug: &'static str, place: &'static str, summary: &'static str, file: &'static str) -> Entry {
    Entry { slug, group: Some((GROUP, place)), summary, data: Data::Synthetic, file }
}

/// In the order of the paper.
pub(super) const ENTRIES: [Entry; 4] = [
    entry(
        "dhp-internvl3-8b-open-vid",
        "Figure 6",
        "Video with the longest tail of the three datasets: a few clips need several ranks, most share one. One degree \
         for all leaves ranks waiting; degrees of any size for every microbatch do not.",
        include_str!("../../../examples/dhp/internvl3-8b-open-vid.json"),
    ),
    entry(
        "dhp-internvl3-8b-msr-vtt",
        "Figure 6",
        "The most even of the three: clips of 10 to 30 seconds. Static context parallelism packs them as well as \
         dynamic groups do, and there is next to nothing to win.",
        include_str!("../../../examples/dhp/internvl3-8b-msr-vtt.json"),
    ),
    entry(
        "dhp-qwen3-vl-2b-open-vid",
        "Figure 6",
        "A small model on the long tail: its weights leave more memory, so that what counts is balance and not \
         what fits.",
        include_str!("../../../examples/dhp/qwen3-vl-2b-open-vid.json"),
    ),
    entry(
        "dhp-scaling-8",
        "Figure 5",
        "One node: with few ranks every microbatch is full and all planners but one find the same plan. The gain comes \
         with the number of ranks.",
        include_str!("../../../examples/dhp/scaling-8.json"),
    ),
];
