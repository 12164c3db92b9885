//! Setups from the experiments in DHP (Niu et al., 2026). The lengths are not public: video
//! durations are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "DHP (Niu et al., 2026)";

const OPEN_VID: &str = "Video with the longest tail of the three datasets: a few clips need several ranks, most share one. \
                        One degree for all leaves ranks waiting; degrees of any size for every microbatch do not.";
const INTERN_VID: &str = "Video with a long tail, less so than OpenVid: how much is won over one degree for all depends on how \
                          many clips are longer than what a rank holds.";
const MSR_VTT: &str = "The most even of the three datasets: clips of 10 to 30 seconds. Static context parallelism packs them \
                       about as well as dynamic groups do, and there is next to nothing to win.";
const FROZEN: &str = "The vision encoder's layers are not trained: they run forward only, and what is left to balance is the language \
                      model's work.";
const SCALING: &str = "The long tail on a number of devices: with few ranks every microbatch is full and most planners find \
                       the same plan. The gain comes with the number of ranks.";
const BATCH: &str =
    "The long tail in smaller global batches: the fewer the samples, the less there is to balance them with.";

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
