//! Setups from the experiments in DHP (Niu et al., 2026). The lengths are not public: video
//! durations are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "DHP (Niu et al., 2026)";

const OPEN_VID: &str = "The video dataset with the longest tail: a few clips need several ranks, most share one. With one degree for all clips, ranks wait. DHP chooses degrees of any size for every microbatch.";
const INTERN_VID: &str = "A video dataset with a shorter tail than OpenVid. The gain over one degree for all clips depends on the number of clips that do not fit on one rank.";
const MSR_VTT: &str = "The dataset with the most equal lengths: clips of 10 to 30 seconds. Static context parallelism packs them almost as well as dynamic groups, so the gain is small.";
const FROZEN: &str = "The layers of the vision encoder are not trained. They run forward only, so the language model has most of the work.";
const SCALING: &str = "The dataset with the longest tail on 8 to 32 devices. With few ranks, every microbatch is full and most planners find the same plan. The gain grows with the number of ranks.";
const BATCH: &str = "The dataset with the longest tail in smaller global batches. With fewer samples, there are fewer ways to balance the ranks.";

/// Creates an entry from a file, with the table or figure in the paper.
macro_rules! set_up {
    ($name:literal, $place:literal, $summary:expr) => {
        Entry {
            slug: concat!("dhp-", $name),
            group: Some((GROUP, $place)),
            summary: $summary,
            data: Data::Synthetic,
            file: include_str!(concat!("../../../examples/dhp/", $name, ".json")),
        }
    };
}

/// In paper order, starting with the long tail.
pub(super) const ENTRIES: [Entry; 30] = [
    set_up!("internvl3-8b-open-vid", "Figure 6", OPEN_VID),
    set_up!("internvl3-2b-open-vid", "Figure 6", OPEN_VID),
    set_up!("internvl2-5-4b-open-vid", "Figure 6", OPEN_VID),
    set_up!("qwen3-vl-2b-open-vid", "Figure 6", OPEN_VID),
    set_up!("qwen3-vl-4b-open-vid", "Figure 6", OPEN_VID),
    set_up!("qwen3-vl-8b-open-vid", "Figure 6", OPEN_VID),
    set_up!("internvl3-8b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("internvl3-2b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("internvl2-5-4b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("qwen3-vl-2b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("qwen3-vl-4b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("qwen3-vl-8b-intern-vid", "Figure 6", INTERN_VID),
    set_up!("internvl3-8b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("internvl3-2b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("internvl2-5-4b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("qwen3-vl-2b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("qwen3-vl-4b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("qwen3-vl-8b-msr-vtt", "Figure 6", MSR_VTT),
    set_up!("frozen-internvl3-8b-open-vid", "Figure 4", FROZEN),
    set_up!("frozen-internvl3-8b-msr-vtt", "Figure 4", FROZEN),
    set_up!("frozen-internvl3-2b-open-vid", "Figure 4", FROZEN),
    set_up!("frozen-internvl2-5-4b-open-vid", "Figure 4", FROZEN),
    set_up!("frozen-qwen3-vl-2b-open-vid", "Figure 4", FROZEN),
    set_up!("frozen-qwen3-vl-4b-open-vid", "Figure 4", FROZEN),
    set_up!("frozen-qwen3-vl-8b-open-vid", "Figure 4", FROZEN),
    set_up!("scaling-8", "Figure 5", SCALING),
    set_up!("scaling-16", "Figure 5", SCALING),
    set_up!("scaling-32", "Figure 5", SCALING),
    set_up!("batch-128", "Tables 1 and 2", BATCH),
    set_up!("batch-256", "Tables 1 and 2", BATCH),
];
