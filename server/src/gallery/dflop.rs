//! Setups from the experiments in DFLOP (2026). The data is public, but the sizes are not: image
//! tiles and lengths are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "DFLOP (2026)";

const MIXED: &str = "Photographs, diagrams, infographics, several images and videos in one batch. The optimizer chooses devices and degrees for encoder and backbone. The scheduler fills microbatches that take equal time in both.";
const STAGES: &str = "The same data with static plans of four stages, like the baseline in the paper: one layout for both modules, and microbatches in the order of the samples. The longest ranks wait most of the time. The backbone of DFLOP also has four stages here; without this limit, see the mixed batches.";
const SMALLER: &str = "An encoder of 400 million parameters. Its load differs more from that of the backbone than with the larger encoder, and it needs few devices.";
const AUDIO: &str = "Audio clips. The encoder pads each clip to 30 seconds, and the backbone reads it as 750 tokens. Both modules have a similar load.";
const DATA: &str = "One kind of data: several images per sample vary little, videos have 4 to 32 frames.";
const NODES: &str = "The same number of samples per node on 1 to 32 nodes. With more replicas, the slowest one is slower, and there are more ways to split the devices.";

/// Creates an entry from a file, with the table or figure in the paper.
macro_rules! set_up {
    ($name:literal, $place:literal, $summary:expr) => {
        Entry {
            slug: concat!("dflop-", $name),
            group: Some((GROUP, $place)),
            summary: $summary,
            data: Data::Synthetic,
            file: include_str!(concat!("../../../examples/dflop/", $name, ".json")),
        }
    };
}

/// In paper order.
pub(super) const ENTRIES: [Entry; 23] = [
    set_up!("mixed-llama-3-8b", "Figure 7", MIXED),
    set_up!("mixed-qwen2-5-7b", "Figure 7", MIXED),
    set_up!("mixed-qwen2-5-32b", "Figure 7", MIXED),
    set_up!("mixed-llama-3-70b", "Figure 7", MIXED),
    set_up!("mixed-qwen2-5-72b", "Figure 7", MIXED),
    set_up!("mixed-internvl-72b", "Figure 7", MIXED),
    set_up!("stages-4-llama-3-8b", "Figures 7 and 10", STAGES),
    set_up!("stages-4-qwen2-5-7b", "Figure 7", STAGES),
    set_up!("stages-4-qwen2-5-32b", "Figures 7 and 10", STAGES),
    set_up!("stages-4-llama-3-70b", "Figure 7", STAGES),
    set_up!("stages-4-qwen2-5-72b", "Figure 7", STAGES),
    set_up!("stages-4-internvl-72b", "Figures 7 and 10", STAGES),
    set_up!("so400m-llama-3-8b", "Figure 8", SMALLER),
    set_up!("audio", "Figure 9", AUDIO),
    set_up!("data-multi-image", "Figure 11", DATA),
    set_up!("data-video", "Figure 11", DATA),
    set_up!("nodes-1", "Figure 12", NODES),
    set_up!("nodes-2", "Figure 12", NODES),
    set_up!("nodes-4", "Figure 12", NODES),
    set_up!("nodes-8", "Figure 12", NODES),
    set_up!("nodes-16", "Figure 12", NODES),
    set_up!("nodes-32", "Figure 12", NODES),
    set_up!("stages-4-llama-3-8b-32", "Figure 13", STAGES),
];
