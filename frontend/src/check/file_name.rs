//! File name extension of a pasted configuration.

use api::job_config::ConfigFormat;

/// Returns the extension for a text of a format. `None`: the text is a scenario.
pub(super) fn extension(format: Option<ConfigFormat>, text: &str) -> &'static str {
    let text = text.trim_start();
    if text.starts_with('{') || text.starts_with("[{") {
        return "json";
    }
    if text.starts_with("#!") {
        return "sh";
    }
    let has_line = |is_match: fn(&str) -> bool| text.lines().any(is_match);
    match format {
        None => "txt",
        Some(ConfigFormat::Torchtitan) if has_line(is_table) => "toml",
        // A SkyPilot task or a Kubernetes workload contains the command.
        Some(_) if has_line(is_workload) => "yaml",
        Some(
            ConfigFormat::Megatron
            | ConfigFormat::Torchtitan
            | ConfigFormat::Trl
            | ConfigFormat::Swift
            | ConfigFormat::OpenRlhf
            | ConfigFormat::MegatronBridge
            | ConfigFormat::Mlperf,
        ) => "sh",
        Some(_) if has_line(is_command) => "sh",
        Some(_) => "yaml",
    }
}

/// True for a table header of TOML.
fn is_table(line: &str) -> bool {
    let line = line.trim_end();
    line.starts_with('[') && line.ends_with(']')
}

fn is_workload(line: &str) -> bool {
    line.starts_with("apiVersion:") || line.starts_with("run:")
}

fn is_command(line: &str) -> bool {
    ["python ", "python3 ", "torchrun ", "accelerate launch ", "deepspeed "]
        .iter()
        .any(|start| line.trim_start().starts_with(*start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_follow_format_and_text() {
        for (format, text, expected) in [
            (Some(ConfigFormat::Torchtitan), "[model]\nname = \"llama3\"\n", "toml"),
            (Some(ConfigFormat::Torchtitan), "torchrun train.py --training.steps 10\n", "sh"),
            (Some(ConfigFormat::Megatron), "torchrun pretrain_gpt.py --num-layers 80\n", "sh"),
            (Some(ConfigFormat::Megatron), "resources: {}\nrun: |\n  torchrun pretrain_gpt.py\n", "yaml"),
            (Some(ConfigFormat::HuggingFaceModel), "{\"hidden_size\": 4096}", "json"),
            (Some(ConfigFormat::Axolotl), "base_model: a\n", "yaml"),
            (Some(ConfigFormat::Verl), "python3 -m verl.trainer.main_ppo\n", "sh"),
            (Some(ConfigFormat::Axolotl), "#!/bin/bash\naxolotl train\n", "sh"),
            (None, "", "txt"),
        ] {
            assert_eq!(extension(format, text), expected, "{text}");
        }
    }
}
