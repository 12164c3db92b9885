//! Tables of peak memory per device.

use super::assumptions::{accumulation, nothing, torchtitan_notes};
use super::steps::TORCHTITAN;
use super::{Goal, Listing, Published, Quantity};

const GOAL: Goal = Goal { mean: 15.0, largest: None };

const RESERVED: &str = "Memory that the caching allocator holds: 1.15 times the predicted allocated memory, the median of 341 steps on H100 \
                        and H200 that the project measured (measurements.md).";

/// All tables of peak memory, in report order.
pub(super) const TABLES: &[Published] = &[
    Published {
        id: "ultrascale_h100_memory",
        file: "ultrascale_h100",
        title: "Peak memory of a 1B and an 8B model on 8 to 512 H100",
        source: "Ultra-Scale Playbook of Hugging Face's nanotron team, its table of benchmarks",
        goal: GOAL,
        peer: "none",
        assumptions: &["The table does not say whether memory is allocated or reserved."],
        quantity: Quantity::PeakMemory("measured_gib"),
        renamed: &[("precision", "published_precision"), ("tied_embeddings", "tied_word_vectors")],
        words: &[],
        constant: &[],
        assume: nothing,
        excluded: super::steps::ultrascale,
        facets: &[
            ("model", "model"),
            ("TP", "tp"),
            ("PP", "pp"),
            ("DP", "dp"),
            ("microbatch", "microbatch"),
            ("ZeRO", "zero"),
        ],
        listing: Listing::Groups,
    },
    Published {
        id: "torchtitan_memory",
        file: "torchtitan",
        title: "Reserved memory of Llama 3, 8B to 405B, in torchtitan",
        source: "torchtitan: paper (arXiv 2410.06511)",
        goal: GOAL,
        peer: "none",
        assumptions: &[RESERVED],
        quantity: Quantity::ReservedMemory("measured_reserved_gib"),
        renamed: &[
            ("recompute", "activation_checkpointing"),
            ("precision", "published_precision"),
            ("execution", "compiled"),
        ],
        words: TORCHTITAN,
        constant: &[("fsdp", "true"), ("framework", "torchtitan")],
        assume: torchtitan_notes,
        excluded: |_| None,
        facets: &[("model", "preset"), ("CP", "cp")],
        listing: Listing::Rows,
    },
    Published {
        id: "bloom_prequel_half_memory",
        file: "bloom_prequel_half",
        title: "Peak memory of GPT models of about 200B on A100",
        source: "BigScience, chronicles of the runs before BLOOM",
        goal: GOAL,
        peer: "none",
        assumptions: &["As for the step times of bloom_prequel_half."],
        quantity: Quantity::PeakMemory("measured_gib"),
        renamed: &[],
        words: &[],
        constant: &[("framework", "megatron_deepspeed")],
        assume: nothing,
        excluded: |_| None,
        facets: &[("TP", "tp"), ("PP", "pp"), ("microbatch", "microbatch")],
        listing: Listing::Groups,
    },
    Published {
        id: "internevo_memory",
        file: "internevo_memory",
        title: "Memory of InternLM 20B on A800",
        source: "InternEvo, performance page of its documentation",
        goal: GOAL,
        peer: "none",
        assumptions: &[
            RESERVED,
            "Whole numbers, most likely of nvidia-smi, which includes the context of the device and the buffers of \
             NCCL: an upper bound. So the set does not inform intervals.",
        ],
        quantity: Quantity::ReservedMemory("measured_gib"),
        renamed: &[("precision", "published_precision")],
        words: &[],
        constant: &[("global_batch", ""), ("framework", "internevo")],
        assume: accumulation,
        excluded: |_| None,
        facets: &[("TP", "tp"), ("PP", "pp")],
        listing: Listing::Rows,
    },
];
