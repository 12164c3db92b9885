//! Settings of recipes of Megatron-Bridge, which are Python code, and models by the names of recipes and classes.

use super::keys::Keys;

/// Recipes for pre-training, with the settings that all versions have.
const KNOWN: [(&str, &[(&str, &str)]); 5] = [
    ("llama3_8b", &[("context-parallel-size", "2"), ("decoder-seq-length", "8192")]),
    ("llama3_70b", &[TP_4, PP_4, VPP_5, ("context-parallel-size", "2"), SP, OVERLAP, ("decoder-seq-length", "8192")]),
    ("llama31_8b", &[("context-parallel-size", "2"), LONG]),
    ("llama31_70b", &[TP_4, PP_4, VPP_5, ("context-parallel-size", "2"), SP, OVERLAP, LONG]),
    (
        "llama31_405b",
        &[
            ("tensor-model-parallel-size", "8"),
            ("pipeline-model-parallel-size", "8"),
            (CHUNKS, "2"),
            ("context-parallel-size", "4"),
            SP,
            OVERLAP,
            ("account-for-embedding-in-pipeline-split", "true"),
            ("account-for-loss-in-pipeline-split", "true"),
            LONG,
        ],
    ),
];
const CHUNKS: &str = "num-virtual-stages-per-pipeline-rank";
const TP_4: (&str, &str) = ("tensor-model-parallel-size", "4");
const PP_4: (&str, &str) = ("pipeline-model-parallel-size", "4");
const VPP_5: (&str, &str) = (CHUNKS, "5");
const SP: (&str, &str) = ("sequence-parallel", "true");
const OVERLAP: (&str, &str) = ("tp-comm-overlap", "true");
const LONG: (&str, &str) = ("decoder-seq-length", "131072");

/// Adds the settings of a recipe that the file does not state itself.
pub(super) fn add(keys: &mut Keys) {
    let recipe = keys.peek("recipe").and_then(|recipe| recipe.rsplit(['.', ':']).next()).unwrap_or_default().to_owned();
    let name = recipe.strip_suffix("_pretrain_config").unwrap_or_default();
    let Some((_, settings)) = KNOWN.into_iter().find(|(known, _)| *known == name) else { return };
    let is_stated =
        |keys: &Keys, name: &str| keys.has(name) || (name == "decoder-seq-length" && keys.has("seq-length"));
    let has_pipeline = keys.peek("pipeline-model-parallel-size") != Some("1");
    // Without a pipeline there are no chunks and no split.
    let applies = |name: &str| has_pipeline || (name != CHUNKS && !name.starts_with("account-for"));
    let open: Vec<&(&str, &str)> =
        settings.iter().filter(|(name, _)| applies(name) && !is_stated(keys, name)).collect();
    if open.is_empty() {
        return;
    }
    let listed: Vec<String> = open.iter().map(|(name, value)| format!("{} {value}", name.replace('-', "_"))).collect();
    for (name, value) in open {
        keys.derive(name, value, "");
    }
    keys.assume(format!("The recipe {recipe} of Megatron-Bridge has {}.", listed.join(", ")));
}

/// Returns the name of the model in the name of a recipe: `qwen3-30b-a3b` of `qwen3_30b_a3b_pretrain_config`.
pub(super) fn model_of_recipe(recipe: &str) -> Option<String> {
    let name = recipe.rsplit(['.', ':']).next()?.to_lowercase();
    let kinds = ["_low_precision", "_pretrain", "_finetune", "_sft", "_peft", "_lora", "_config"];
    let end = kinds.iter().filter_map(|kind| name.find(kind)).min()?;
    Some(with_versions(&name[..end].replace('_', "-")))
}

/// Returns the name of the model in the name of a provider class: `llama3-70b` of `Llama3ModelProvider70B`.
pub(super) fn model_of_class(class: &str) -> Option<String> {
    let class = class.rsplit('.').next()?;
    let (family, size) = class.split_once("ModelProvider").or_else(|| class.split_once("MoEModelProvider"))?;
    let family = family.strip_suffix("MoE").unwrap_or(family);
    // A class without a size has its sizes in the file.
    let is_size = size.starts_with(|letter: char| letter.is_ascii_digit());
    is_size.then(|| with_versions(&format!("{family}-{}", size.replace('_', "-")).to_lowercase()))
}

/// Adds the points that names of recipes leave out: `llama31-8b` is `llama3.1-8b`, `qwen2-1p5b` is `qwen2-1.5b`.
fn with_versions(name: &str) -> String {
    let (family, size) = name.split_once('-').unwrap_or((name, ""));
    let stem = family.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let family = match family[stem.len()..].split_at_checked(1) {
        Some((major, minor)) if minor.len() == 1 => format!("{stem}{major}.{minor}"),
        _ => family.to_owned(),
    };
    format!("{family}-{}", size.replace("1p", "1."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_recipes_and_classes_state_models() {
        for (recipe, model) in [
            ("qwen3_30b_a3b_pretrain_config", Some("qwen3-30b-a3b")),
            ("megatron.bridge.recipes.llama.llama31_8b_finetune_config", Some("llama3.1-8b")),
            ("qwen25_1p5b_sft_config", Some("qwen2.5-1.5b")),
            ("glm45_air_106b_pretrain_config", Some("glm4.5-air-106b")),
            ("llama3_8b_low_precision_pretrain_config", Some("llama3-8b")),
            ("custom", None),
        ] {
            assert_eq!(model_of_recipe(recipe).as_deref(), model, "{recipe}");
        }
        for (class, model) in [
            ("megatron.bridge.models.llama.llama_provider.Llama3ModelProvider70B", Some("llama3-70b")),
            ("Llama31ModelProvider8B", Some("llama3.1-8b")),
            ("Qwen3MoEModelProvider30B_A3B", Some("qwen3-30b-a3b")),
            ("megatron.bridge.models.gpt_provider.GPTModelProvider", None),
            ("GPTModel", None),
        ] {
            assert_eq!(model_of_class(class).as_deref(), model, "{class}");
        }
    }
}
