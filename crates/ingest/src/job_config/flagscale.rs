//! `FlagScale` job files (YAML): sections whose keys are arguments of Megatron-LM.

use super::gpt_neox;
use super::keys::Keys;

/// Sections. A file can have them below `train`.
const SECTIONS: [&str; 4] = ["train.", "system.", "model.", "data."];

pub(super) fn is_job(keys: &Keys) -> bool {
    ["", "train."].iter().any(|prefix| {
        keys.has_section(&format!("{prefix}system."))
            && keys.has(&format!("{prefix}model.num_layers"))
            && keys.has(&format!("{prefix}model.hidden_size"))
    })
}

/// Renames the keys to arguments: the last part of their path.
pub(super) fn flatten(keys: &mut Keys) {
    keys.rename(|key| {
        let is_argument = SECTIONS.iter().any(|section| key.starts_with(section));
        let name = key.rsplit('.').next().filter(|_| is_argument)?;
        Some(name.replace('_', "-"))
    });
    keys.assume("The sections of FlagScale are read as arguments of Megatron-LM.");
    let number = |name: &str| keys.peek(name).and_then(|text| text.trim().parse::<u32>().ok());
    // As in Llama: two thirds of 4 h, in multiples.
    if let (Some(multiple), Some(hidden), None) =
        (number("multiple-of"), number("hidden-size"), number("ffn-hidden-size"))
    {
        let width = gpt_neox::rounded((u64::from(hidden) * 8 / 3) as u32, multiple);
        keys.derive("ffn-hidden-size", &width.to_string(), "multiple-of");
        keys.ignore(|key| key == "multiple-of");
    }
    let ignored = ["logging", "log-", "wandb-", "checkpoint", "split", "experiment", "no-position-embedding"];
    keys.ignore(|key| ignored.iter().any(|start| key.starts_with(start)));
}
