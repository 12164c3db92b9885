//! Setups from the experiments in DFLOP (2026). The data is public, but the sizes are not: image
//! tiles and lengths are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "DFLOP (2026)";

const MIXED: &str = "Photographs, diagrams, infographics, several images and video in one batch. The optimizer gives encoder and \
                     backbone devices and degrees of their own; the scheduler fills microbatches that take equally long on both.";
const STAGES: &str = "The same data against static plans of four stages, as the paper draws its baseline: one layout for both \
                      modules, microbatches as they come. Most of the time of the longest ranks is waiting. Held to four stages is the \
                      backbone of DFLOP too; free of that it stands among the mixed batches.";
const SMALLER: &str = "The encoder of 400 million parameters: the loads of encoder and backbone are further apart than with the \
                       larger one, and few devices are the encoder's.";
const AUDIO: &str = "Clips of sound, which the encoder pads to 30 seconds and the backbone reads as 750 tokens: the two modules \
                     have about as much to do.";
const DATA: &str = "One kind of data by itself: several images are narrow, videos spread from 4 to 32 frames.";
const NODES: &str = "The same samples a node on 1 to 32 nodes. With more replicas the slowest of them decides more often, and there \
                     are more ways to split the devices.";

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
