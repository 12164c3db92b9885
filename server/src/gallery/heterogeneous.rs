//! Operating points for heterogeneous parallelism (arXiv 2605.27678). The abstract does not contain
//! the paper's setups: models, contexts and clusters are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "Heterogeneous parallelism";

const LONG: &str = "A backbone with a context of 16k to 256k tokens after an encoder with small images. Above the limit of tensor parallelism, one layout for all modules also splits the images over the context-parallel group of the backbone. An encoder with a layout of its own does not.";
const FULL_ACTIVATIONS: &str = "All activations are stored. So memory forces the backbone into groups over two nodes or into tensor parallelism over eight devices. With one layout for all modules, the encoder has the same groups. With a layout of its own it does not, on the same or on other devices.";
const SHARE: &str = "8k tokens on 64 devices, with an encoder that has less or more work. On devices of its own the encoder does not need the layout of the backbone, but devices wait. The result is compared with one layout for all modules.";
const DRAWN: &str = "Long documents with many images and very different lengths: a small encoder, and a backbone with context parallelism.";
const THREE: &str =
    "Three modules: each encoder has a layout of its own, on the devices of the backbone or on separate devices.";
const EXPERTS: &str = "A backbone with experts, which has expert-parallel degrees in addition to tensor and context parallelism. The encoder has no experts.";

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
