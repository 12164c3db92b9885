//! Layers for multi-token prediction that a program does not train.

use planner::model::Model;

use super::ConfigFormat;
use super::keys::Keys;
use super::settings::Settings;

/// Keys of verl: the layers are loaded, and they are trained.
const VERL: [&str; 2] = ["actor_rollout_ref.model.mtp.enable", "actor_rollout_ref.model.mtp.enable_train"];

/// Removes the layers for multi-token prediction of a published model if the program leaves them out.
pub(super) fn complete(format: ConfigFormat, model: &mut Model, keys: &mut Keys, settings: &Settings) {
    if model.modules.iter().all(|module| module.predicted_ahead == 0) {
        return;
    }
    let is_hugging_face = settings.framework.is_none_or(planner::training::Framework::is_hugging_face);
    if format.is_transformers() && is_hugging_face {
        keys.assume(
            "The layers for multi-token prediction are left out: the transformers library does not train them.",
        );
    } else if format == ConfigFormat::Verl {
        let [is_loaded, is_trained] = VERL.map(|name| keys.flag(&[name], "multi-token prediction").unwrap_or(false));
        match (is_loaded, is_trained) {
            (true, true) => return,
            (true, false) => keys.not_modelled(
                "The layers for multi-token prediction are loaded and not trained. Their weights are left out, so memory is a \
                 lower bound.",
            ),
            (false, _) => keys.assume(
                "The layers for multi-token prediction are left out: verl's default of model.mtp.enable is false.",
            ),
        }
    } else {
        return;
    }
    for module in &mut model.modules {
        module.predicted_ahead = 0;
    }
}
