//! Linear layers with adapters, by the names of the targets in a configuration.

use super::keys::Keys;

const QUERY: u8 = 1;
const KEY: u8 = 2;
const VALUE: u8 = 4;
const OUTPUT: u8 = 8;
const GATE: u8 = 16;
const UP: u8 = 32;
const DOWN: u8 = 64;
const ATTENTION: u8 = QUERY | KEY | VALUE | OUTPUT;
const MLP: u8 = GATE | UP | DOWN;

/// Names of layers, with the parts that they contain.
const NAMES: [(&str, u8); 23] = [
    ("q_proj", QUERY),
    ("wq", QUERY),
    ("k_proj", KEY),
    ("wk", KEY),
    ("v_proj", VALUE),
    ("wv", VALUE),
    ("o_proj", OUTPUT),
    ("wo", OUTPUT),
    ("out_proj", OUTPUT),
    ("output_proj", OUTPUT),
    ("linear_proj", OUTPUT),
    ("qkv_proj", QUERY | KEY | VALUE),
    ("linear_qkv", QUERY | KEY | VALUE),
    ("query_key_value", QUERY | KEY | VALUE),
    ("c_attn", QUERY | KEY | VALUE),
    ("gate_proj", GATE),
    ("w1", GATE),
    ("up_proj", UP),
    ("w3", UP),
    ("down_proj", DOWN),
    ("w2", DOWN),
    ("gate_up_proj", GATE | UP),
    ("linear_fc1", GATE | UP),
];

/// Reports targets that are some of the layers of attention or of the MLP. The adapters of a scenario have all of them.
/// `has_mlp` is true if layers of the MLP are read as adapted.
pub(super) fn report_partial(keys: &mut Keys, (key, targets): (&str, &str), has_mlp: bool) {
    let targets = targets.to_lowercase();
    let words = targets.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let known = words.filter_map(|word| NAMES.into_iter().find(|(name, _)| *name == word));
    let (mut stated, mut names) = (if targets.contains("linear_fc2") { DOWN } else { 0 }, Vec::new());
    for (name, parts) in known {
        stated |= parts;
        names.push(name);
    }
    let expected = if has_mlp { ATTENTION | MLP } else { ATTENTION };
    if stated == 0 || names.is_empty() || stated & expected == expected {
        return;
    }
    let all = if has_mlp { "attention and of the MLP" } else { "attention" };
    keys.not_modelled(format!(
        "{key} names {}. The adapters are read as those of all linear layers of {all}, so their memory and time are upper bounds.",
        names.join(", ")
    ));
}

#[cfg(test)]
mod tests {
    use crate::job_config::{ConfigFormat, read};

    fn remarks(targets: &str) -> Vec<String> {
        let text = format!(
            "model_name_or_path: meta-llama/Llama-3.1-8B\nfinetuning_type: lora\nlora_rank: 8\nlora_target: {targets}\ncutoff_len: 2048\n\
             per_device_train_batch_size: 1\n"
        );
        let job = read("x.yaml", text.as_bytes()).unwrap();
        assert_eq!(job.format, ConfigFormat::LlamaFactory);
        job.not_modelled.into_iter().filter(|sentence| sentence.contains("upper bounds")).collect()
    }

    #[test]
    fn some_layers_are_named() {
        let some = "lora_target names q_proj, v_proj. The adapters are read as those of all linear layers of attention, so their memory \
                    and time are upper bounds.";
        assert_eq!(remarks("q_proj,v_proj"), [some]);
        assert!(remarks("[q_proj, k_proj, v_proj, o_proj, down_proj]")[0].contains("attention and of the MLP"));
        for whole in ["all", "q_proj,k_proj,v_proj,o_proj", "q_proj,k_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"] {
            assert_eq!(remarks(whole), [""; 0], "{whole}");
        }
    }

    #[test]
    fn torchtune_names_the_layers_of_attention() {
        let text = "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_attn_modules: ['q_proj']\n  lora_rank: 8\n\
                    tokenizer:\n  max_seq_len: 2048\nbatch_size: 1\noptimizer:\n  _component_: torch.optim.AdamW\n";
        let job = read("x.yaml", text.as_bytes()).unwrap();
        assert!(job.read.iter().any(|setting| setting.key == "model.lora_attn_modules"));
        assert!(job.not_modelled.iter().any(|said| said.starts_with("model.lora_attn_modules names q_proj.")));
    }
}
