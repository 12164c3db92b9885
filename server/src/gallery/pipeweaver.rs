//! Setups from the tables and figures in PipeWeaver (Xue et al., 2025). The data is not public:
//! mixtures are chosen by Planscope.

use super::{Data, Entry};

/// Display name of the group.
const GROUP: &str = "PipeWeaver (Xue et al., 2025)";

const fn entry(
    slug: &'static str,
    location: &'static str,
    summary: &'static str,
    data: Data,
    file: &'static str,
) -> Entry {
    Entry { slug, group: Some((GROUP, location)), summary, data, file }
}

/// In paper order.
pub(super) const ENTRIES: [Entry; 24] = [
    entry(
        "pipeweaver-lm-7b",
        "Table 1",
        "A 7B language model under 1F1B on 8 devices, for comparison with multimodal models of its size.",
        Data::Constant,
        include_str!("../../../examples/pipeweaver/lm-7b.json"),
    ),
    entry(
        "pipeweaver-vlm-7b-static",
        "Table 1",
        "ViT 2B + LM 5B with eight images per sequence: the cost of two kinds of layers in four stages, without \
         variation of the data.",
        Data::Constant,
        include_str!("../../../examples/pipeweaver/vlm-7b-static.json"),
    ),
    entry(
        "pipeweaver-vlm-7b-dynamic",
        "Table 1",
        "The same model on a mix of datasets with 0 to 48 images per microbatch: the utilisation under 1F1B falls by 40 %.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-7b-dynamic.json"),
    ),
    entry(
        "pipeweaver-mixed-one-segment",
        "Section 5",
        "ViT 2B + LM 5B with both modules in one pipeline segment, in the best order found and under 1F1B.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/mixed-one-segment.json"),
    ),
    entry(
        "pipeweaver-separated",
        "Section 5",
        "The same batches with separate segments for each module. The paper states a gain of 13.1 %.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/separated.json"),
    ),
    entry(
        "pipeweaver-vlm-s",
        "Figures 9a and 10, tables 3 and 4",
        "VLM-S (ViT 5B + Llama-3 8B) on 16 devices, compared with Megatron-LM, nnScaler* and Optimus. \
         Studies show the sizes of sub-microbatches.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-s.json"),
    ),
    entry(
        "pipeweaver-vlm-m",
        "Figure 9a, tables 3 and 4",
        "VLM-M (ViT 5B + Qwen2 32B) on 32 devices, compared with Megatron-LM, nnScaler* and Optimus.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-m.json"),
    ),
    entry(
        "pipeweaver-vlm-l",
        "Figures 9a and 12, tables 3 and 4",
        "VLM-L (ViT 22B + Qwen2 72B) on 64 devices, compared with three baselines. Studies show the \
         search of the ranking.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-l.json"),
    ),
    entry(
        "pipeweaver-t2v-s",
        "Figure 9a, tables 3 and 4",
        "T2V-S (Llama-3 8B + DiT 5B), text to video on 16 devices, compared with Megatron-LM and nnScaler*.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-s.json"),
    ),
    entry(
        "pipeweaver-t2v-l",
        "Figure 9a, tables 3 and 4",
        "T2V-L (Qwen2 32B + DiT 30B), text to video on 64 devices, compared with Megatron-LM and nnScaler*.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-l.json"),
    ),
    entry(
        "pipeweaver-t2v-s-768",
        "Figure 9a, other resolution",
        "T2V-S with videos of 768 pixels, nine times the tokens per second.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-s-768.json"),
    ),
    entry(
        "pipeweaver-t2v-l-768",
        "Figure 9a, other resolution",
        "T2V-L with videos of 768 pixels, nine times the tokens per second.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-l-768.json"),
    ),
    entry(
        "pipeweaver-rise-and-fall",
        "Figure 9b",
        "The number of images rises and falls twice in 40 iterations. A static plan suits some iterations, a plan for \
         each batch suits all.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/rise-and-fall.json"),
    ),
    entry(
        "pipeweaver-ablation",
        "Table 5",
        "The techniques of PipeWeaver, added one by one, on the mix of datasets.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/ablation.json"),
    ),
    entry(
        "vlm-s-pipeweaver-steps",
        "Table 5, other data",
        "The same steps on sequences with 0 to 32 images: partition by module, dual-queue interleaving, ranking, layer \
         tuning (17.3, 38.9, 48.3 and 62.8 % in the paper).",
        Data::Synthetic,
        include_str!("../../../examples/vlm-s-pipeweaver-steps.json"),
    ),
    entry(
        "pipeweaver-ablation-vpp-3",
        "Table 5, fixed VPP",
        "The baseline of the steps on the mix of datasets: Megatron-LM with 3 virtual stages per rank.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/ablation-vpp-3.json"),
    ),
    entry(
        "pipeweaver-ablation-vpp-4",
        "Table 5, fixed VPP",
        "The baseline of the steps on the mix of datasets: Megatron-LM with 4 virtual stages per rank.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/ablation-vpp-4.json"),
    ),
    entry(
        "pipeweaver-uniform-vpp-3",
        "Table 5, fixed VPP",
        "The baseline of the steps on sequences with 0 to 32 images: Megatron-LM with 3 virtual stages per rank.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/uniform-vpp-3.json"),
    ),
    entry(
        "pipeweaver-uniform-vpp-4",
        "Table 5, fixed VPP",
        "The baseline of the steps on sequences with 0 to 32 images: Megatron-LM with 4 virtual stages per rank.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/uniform-vpp-4.json"),
    ),
    entry(
        "pipeweaver-vlm-m-memory",
        "Figure 11",
        "Memory of the first rank of VLM-M: Megatron-LM leaves part of it free, Optimus fills it with activations of \
         the encoder, layer tuning uses all of it.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-m-memory.json"),
    ),
    entry(
        "pipeweaver-vlm-xl-8k",
        "Table 6 and figure 14",
        "VLM-XL (ViT 22B + GPT-3 175B) on 8,192 H100, 128 replicas of 8 pipeline ranks.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-xl-8k.json"),
    ),
    entry(
        "pipeweaver-vlm-xl-16k",
        "Table 6 and figure 14",
        "The same with 16 pipeline ranks on 16,384 H100: the order matters more in longer pipelines.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/vlm-xl-16k.json"),
    ),
    entry(
        "pipeweaver-t2v-xl-3k",
        "Table 6 and figure 14",
        "T2V-XL (Qwen2 72B + DiT 30B) on 3,072 H100, 96 replicas of 4 pipeline ranks.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-xl-3k.json"),
    ),
    entry(
        "pipeweaver-t2v-xl-6k",
        "Table 6 and figure 14",
        "The same with 8 pipeline ranks on 6,144 H100.",
        Data::Synthetic,
        include_str!("../../../examples/pipeweaver/t2v-xl-6k.json"),
    ),
];
