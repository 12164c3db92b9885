//! Kernels that transformers selects by the model: attention and products of experts.

use planner::model::Model;
use planner::training::{AttentionKernel, Experts};

use crate::job_config::keys::Keys;
use crate::job_config::settings::Settings;

/// Keys of the attention kernel in `config.json`.
const ATTENTION: [&str; 2] = ["attn_implementation", "_attn_implementation"];
/// Keys of the products of experts in the files of a job and in `config.json`.
const EXPERTS: [&str; 3] =
    ["experts_implementation", "_experts_implementation", "model_init_kwargs.experts_implementation"];

/// Reads the kernels of a model that the job does not state. `file` is `config.json`, if it is given.
pub(in crate::job_config) fn complete(
    model: &Model,
    mut file: Option<&mut Keys>,
    keys: &mut Keys,
    settings: &mut Settings,
) {
    report_saved_embeddings(model, keys, settings);
    // Jobs with the layers of another framework.
    if settings.framework.is_some_and(|framework| !framework.is_hugging_face()) {
        return;
    }
    if settings.attention.is_none() {
        let stated = file.as_mut().and_then(|file| file.text(&ATTENTION, "attention kernel"));
        settings.attention = stated.as_deref().map(super::kernel);
        if settings.attention.is_none() && is_gpt_oss(model, file.as_deref()) {
            settings.attention = Some(AttentionKernel::Unfused);
            keys.assume(
                "gpt-oss has no SDPA in transformers. Without attn_implementation its attention is eager: separate kernels.",
            );
        }
    }
    let stated = keys.text(&EXPERTS, "products of experts");
    let stated = stated.or_else(|| file.as_mut().and_then(|file| file.text(&EXPERTS, "products of experts")));
    if !model.modules.iter().any(|module| module.moe.is_some()) {
        return;
    }
    settings.experts = match stated.as_deref().map(str::trim) {
        Some("eager") => Some(Experts::OneByOne),
        Some(_) => Some(Experts::Together),
        None => {
            keys.assume(
                "Experts are read as grouped products, the default of transformers 5 (experts_implementation grouped_mm). \
                 Version 4 loops over the experts, which is slower: set experts_implementation eager for it.",
            );
            Some(Experts::Together)
        }
    };
}

/// Reports the size of embeddings that are trained in full next to adapters.
fn report_saved_embeddings(model: &Model, keys: &mut Keys, settings: &Settings) {
    let text = super::tuning::SAVED.iter().filter_map(|name| keys.peek(name)).collect::<Vec<_>>().join(",");
    let count = ["embed", "lm_head"].iter().filter(|name| text.contains(**name)).count() as f64;
    let Some(module) = model.backbone().filter(|_| settings.adapters.is_some() && count > 0.0) else { return };
    let parameters = count * f64::from(module.vocab) * f64::from(module.hidden);
    // Gradients of 2 or 4 bytes, a master weight of 4 or none, and two moments of 4.
    let gib = |bytes: f64| bytes * parameters / f64::from(1_u32 << 30);
    keys.not_modelled(format!(
        "The embeddings that are trained in full have {:.2} billion parameters: about {:.1} to {:.1} GiB of gradients and optimizer \
         state, before sharding, are left out.",
        parameters / 1e9,
        gib(12.0),
        gib(16.0)
    ));
}

/// True for a gpt-oss model, by its type or its name.
fn is_gpt_oss(model: &Model, file: Option<&Keys>) -> bool {
    let is_named = |name: &str| name.to_lowercase().replace('_', "-").contains("gpt-oss");
    file.and_then(|file| file.peek("model_type")).is_some_and(is_named) || is_named(&model.name)
}
