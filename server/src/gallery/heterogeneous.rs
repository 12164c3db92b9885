//! Operating points for heterogeneous parallelism (arXiv 2605.27678). The abstract does not contain
//! the paper's setups: models, contexts and clusters are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "Heterogeneous parallelism";

const LONG: &str = "A backbone whose context grows from 16k to 256k tokens behind an encoder whose images stay small. Past what \
                    tensor parallelism holds, one layout for all cuts the images over the backbone's context-parallel group too; \
                    an encoder with a layout of its own does not.";
const FULL_ACTIVATIONS: &str = "All activations are kept, so that memory forces the backbone into groups over two nodes or into tensor parallelism over eight devices. One layout for all takes the encoder along; layouts of its own do not, on the same devices or on others.";
const SHARE: &str = "8k tokens on 64 devices, and an encoder that has less or more to do. Devices of its own spare it the \
                     backbone's layout, and cost waiting; the result is compared with one layout for all.";
const DRAWN: &str = "Long documents with many images, of very different length: a small encoder, a backbone under context \
                     parallelism.";
const THREE: &str =
    "Three modules: each encoder gets a layout of its own on the backbone's devices, or both stand apart.";
const EXPERTS: &str = "A backbone of experts: expert-parallel degrees beside tensor and context parallelism, and an encoder that \
                       has none of them.";

/// Creates an entry from a file.
macro_rules! set_up {
    ($name:literal, $place:literal, $summary:expr, $data:expr) => {
        Entry {
            slug: concat!("heterogeneous-", $name),
            group: Some((GROUP, $place)),
            summary: $summary,
            data: $data,
            file: include_str!(concat!("../../../examples/heterogeneous/", $name, ".json")),
        }
    };
}

/// In descending context length.
pub(super) const ENTRIES: [Entry; 13] = [
    set_up!("vlm-s-16k", "Long context", LONG, Data::Constant),
    set_up!("vlm-s-32k", "Long context", LONG, Data::Constant),
    set_up!("vlm-s-64k", "Long context", LONG, Data::Constant),
    set_up!("vlm-s-128k", "Long context", LONG, Data::Constant),
    set_up!("vlm-s-256k", "Long context", LONG, Data::Constant),
    set_up!("vlm-s-16k-kept", "Tight memory", FULL_ACTIVATIONS, Data::Constant),
    set_up!("vlm-s-16k-kept-fewer-images", "Tight memory", FULL_ACTIVATIONS, Data::Constant),
    set_up!("internvl3-8b-128k", "Long context", DRAWN, Data::Synthetic),
    set_up!("vlm-m-8k-few-images", "Share of the encoder", SHARE, Data::Constant),
    set_up!("vlm-m-8k-some-images", "Share of the encoder", SHARE, Data::Constant),
    set_up!("vlm-m-8k-many-images", "Share of the encoder", SHARE, Data::Constant),
    set_up!("omni-7b-32k", "Three modules", THREE, Data::Constant),
    set_up!("mixtral-8x7b-vlm-16k", "Experts", EXPERTS, Data::Constant),
];
