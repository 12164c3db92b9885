//! Every change that a format supports, with its settings. The edited files are read again.

use super::*;

const ACCELERATE: &str = include_str!("accelerate.yaml");
const ARGUMENTS: &str = include_str!("arguments.json");
const AXOLOTL: &str = include_str!("axolotl.yaml");
const BRIDGE: &str = include_str!("bridge.yaml");
const DEEPSPEED: &str = include_str!("deepspeed.json");
const LLAMA_FACTORY: &str = include_str!("llama_factory.yaml");
const LLM_FOUNDRY: &str = include_str!("llm_foundry.yaml");
const MAXTEXT: &str = include_str!("maxtext.yaml");
const MODEL: &str = include_str!("model.json");
const NANOTRON: &str = include_str!("nanotron.yaml");
const NEMO: &str = include_str!("nemo.yaml");
const OLMO: &str = include_str!("olmo.yaml");
const PRIMUS: &str = include_str!("primus.yaml");
const PRIMUS_MAXTEXT: &str = include_str!("primus_maxtext.yaml");
const VERL: &str = include_str!("verl.sh");
const VERL_MEGATRON: &str = include_str!("verl.yaml");

const PROPOSALS: &[(&str, &str)] = &[
    ("microbatch 1", r#"[["/layout/microbatch", 1]]"#),
    ("microbatch 4", r#"[["/layout/microbatch", 4]]"#),
    ("tp 1", r#"[["/layout/tensor", 1]]"#),
    ("tp 2", r#"[["/layout/tensor", 2]]"#),
    ("tp 4", r#"[["/layout/tensor", 4]]"#),
    ("pp 1", r#"[["/layout/pipeline", 1]]"#),
    ("pp 2", r#"[["/layout/pipeline", 2]]"#),
    ("vpp 1", r#"[["/layout/chunks", 1]]"#),
    ("vpp 6", r#"[["/layout/chunks", 6]]"#),
    ("cp ring", r#"[["/training/context_parallel", 2], ["/training/context_exchange", "ring"]]"#),
    ("cp a2a", r#"[["/training/context_parallel", 2], ["/training/context_exchange", "all_to_all"]]"#),
    ("sp", r#"[["/training/sequence_parallel", true]]"#),
    ("none", r#"[["/training/recompute", "none"], ["/training/recompute_layers", null]]"#),
    ("selective", r#"[["/training/recompute", "selective"], ["/training/recompute_layers", null]]"#),
    ("full", r#"[["/training/recompute", "full"], ["/training/recompute_layers", null]]"#),
    ("full 8", r#"[["/training/recompute", "full"], ["/training/recompute_layers", 8]]"#),
    ("zero 0", r#"[["/training/zero", 0]]"#),
    ("zero 1", r#"[["/training/zero", 1]]"#),
    ("zero 2", r#"[["/training/zero", 2]]"#),
    ("zero 3", r#"[["/training/zero", 3]]"#),
    ("bf16 gradients", r#"[["/training/gradients", "bf16"]]"#),
    ("flash", r#"[["/training/attention", "flash"]]"#),
];

#[test]
fn print() {
    for (name, texts) in [
        ("NANOTRON", vec![NANOTRON]),
        ("NEMO", vec![NEMO]),
        ("BRIDGE", vec![BRIDGE]),
        ("PRIMUS", vec![PRIMUS]),
        ("PRIMUS_MAXTEXT", vec![PRIMUS_MAXTEXT]),
        ("MAXTEXT", vec![MAXTEXT]),
        ("OLMO", vec![OLMO]),
        ("LLM_FOUNDRY", vec![LLM_FOUNDRY]),
        ("AXOLOTL", vec![AXOLOTL]),
        ("LLAMA_FACTORY, DEEPSPEED", vec![LLAMA_FACTORY, DEEPSPEED]),
        ("MODEL, ARGUMENTS", vec![MODEL, ARGUMENTS]),
        (
            "MODEL, ACCELERATE, ARGS",
            vec![MODEL, ACCELERATE, "per_device_train_batch_size: 2\ngradient_checkpointing: false\n"],
        ),
        ("VERL", vec![VERL]),
        ("VERL_MEGATRON", vec![VERL_MEGATRON]),
    ] {
        let (_, valid) = valid(&texts);
        let scenario = valid.scenario();
        println!("== {name}: {:?} {:?} batch {}", scenario.layout, scenario.training, scenario.workload.global_batch);
        for (title, fields) in PROPOSALS {
            let fields: Vec<(String, Value)> = serde_json::from_str(fields).unwrap();
            let fields: Vec<(&str, Value)> = fields.iter().map(|(p, v)| (p.as_str(), v.clone())).collect();
            let (settings, _) = edited_files(&texts, &change(layout(1, 1, 1, 1), &fields));
            println!("{title}: {settings:?}");
        }
    }
}
