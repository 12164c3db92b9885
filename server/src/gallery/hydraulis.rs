//! Setups from the experiments in Hydraulis (Li et al., 2025). The paper shows the lengths only as
//! a plot: the distributions are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "Hydraulis (Li et al., 2025)";

const COMMON_CRAWL: &str = "Web pages: most have a few hundred tokens, some have tens of thousands. A static strategy must hold the longest sequence and packs the rest into few long microbatches. Hydraulis chooses pipelines and packing for every batch.";
const GITHUB: &str = "Source code. Its files are longer than web pages and their lengths vary as much, so a batch has several long files and fewer sequences to balance them.";
const SHORT: &str = "Web pages, cut at 16K tokens. Smaller schemes hold the longest sequence, so the gain over a static strategy is smaller.";
const TOKENS: &str = "Web pages with twice as many tokens per batch. With more sequences to balance, static packing leaves fewer pipelines without work.";
const SCALING: &str = "LLaMA 7B with another number of devices, context length or tokens per batch. Strategies that adapt to each batch depend less on the longest possible sequence.";
const STEPS: &str = "The techniques of Hydraulis, added one by one from a homogeneous strategy to dynamic strategies, and the difference between the slowest and the fastest pipeline.";
const SWITCH: &str = "HotSPa runs several strategies in every iteration and moves parameters between them. Hydraulis moves them once, overlapped with computation.";
const LARGE: &str = "Larger than in the paper: strategies for 1,024 devices and batches of 5,000 sequences.";

/// Creates an entry from a file, with the table or figure in the paper.
macro_rules! set_up {
    ($name:literal, $place:literal, $summary:expr) => {
        Entry {
            slug: concat!("hydraulis-", $name),
            group: Some((GROUP, $place)),
            summary: $summary,
            data: Data::Synthetic,
            file: include_str!(concat!("../../../examples/hydraulis/", $name, ".json")),
        }
    };
}

/// In paper order.
pub(super) const ENTRIES: [Entry; 27] = [
    set_up!("7b-8-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("7b-8-github", "Figure 13", GITHUB),
    set_up!("7b-16-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("7b-16-github", "Figure 13", GITHUB),
    set_up!("13b-16-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("13b-16-github", "Figure 13", GITHUB),
    set_up!("13b-32-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("13b-32-github", "Figure 13", GITHUB),
    set_up!("32b-32-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("32b-32-github", "Figure 13", GITHUB),
    set_up!("32b-64-common-crawl", "Figure 13", COMMON_CRAWL),
    set_up!("32b-64-github", "Figure 13", GITHUB),
    set_up!("7b-16-common-crawl-16k", "Figure 13", SHORT),
    set_up!("13b-32-common-crawl-16k", "Figure 13", SHORT),
    set_up!("32b-64-common-crawl-16k", "Figure 13", SHORT),
    set_up!("7b-16-common-crawl-200k", "Figure 13", TOKENS),
    set_up!("13b-32-common-crawl-200k", "Figure 13", TOKENS),
    set_up!("scaling-8", "Figure 14", SCALING),
    set_up!("scaling-32", "Figure 14", SCALING),
    set_up!("scaling-64", "Figure 14", SCALING),
    set_up!("context-64k", "Figure 14", SCALING),
    set_up!("context-128k", "Figure 14", SCALING),
    set_up!("tokens-400k", "Figure 14", SCALING),
    set_up!("ablation", "Figures 15 and 16, table 1", STEPS),
    set_up!("steps-13b", "Figure 16", STEPS),
    set_up!("hot-switch-7b", "Table 4", SWITCH),
    set_up!("devices-1024", "Table 2", LARGE),
];
