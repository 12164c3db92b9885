//! Model of a torchtitan job: a published flavor, `config.json` or a name on the Hugging Face hub.

use planner::model::Model;
use serde_json::Value;

use crate::job_config::keys::Keys;
use crate::job_config::{ConfigFormat, JobConfigError, document, model_config, model_names, unmodelled};

/// Published dimensions by model and flavor, with Hugging Face configuration keys.
const FLAVORS: &str = include_str!("../flavors.json");

/// Returns the model of a job with its longest sequence. The model of `config.json` (`stated`) replaces a flavor that is
/// missing or not known.
pub(super) fn of_job(
    keys: &mut Keys,
    stated: &mut Option<(Model, Option<u32>)>,
) -> Result<(Model, Option<u32>), JobConfigError> {
    let named = if keys.has("model.name") { model(keys)? } else { Named::Missing };
    Ok(match named {
        Named::Known(model) => (model, None),
        Named::Missing => stated.take().ok_or(JobConfigError::NoModel { format: ConfigFormat::Torchtitan.name() })?,
        Named::Unknown { flavor } => match stated.take() {
            Some(stated) => stated,
            None => (by_hub_name(keys, &flavor)?, None),
        },
    })
}

fn flavors() -> Result<Value, JobConfigError> {
    serde_json::from_str(FLAVORS)
        .map_err(|error| JobConfigError::Malformed { format: "JSON", detail: error.to_string() })
}

/// Returns the dimensions of a published flavor, in upper or lower case.
fn flavor(name: &str, flavor: &str) -> Result<Option<Value>, JobConfigError> {
    let flavors = flavors()?;
    let known = flavors.get(name).and_then(Value::as_object).into_iter().flatten();
    let mut found = known.filter(|(known, _)| known.eq_ignore_ascii_case(flavor)).map(|(_, sizes)| sizes.clone());
    Ok(found.next_back())
}

/// Model of the name and the flavor of a job file.
enum Named {
    Known(Model),
    /// The file has no model.
    Missing,
    /// The sizes of the flavor are not known.
    Unknown {
        flavor: String,
    },
}

/// Returns a model that is known by its name on the Hugging Face hub: that of the flavor, or that of the tokenizer if it
/// contains the flavor.
fn by_hub_name(keys: &mut Keys, flavor: &str) -> Result<Model, JobConfigError> {
    let assets = ["model.hf_assets_path", "model.tokenizer_path"].into_iter().find_map(|key| {
        let name = keys.peek(key)?.trim_end_matches('/').rsplit('/').next()?.to_owned();
        let is_same = |part: &str| part.eq_ignore_ascii_case(flavor);
        name.split(['-', '_']).any(is_same).then_some((key, name))
    });
    let named = if flavor.contains('/') { Some(("model.flavor", flavor.to_owned())) } else { assets };
    let model = named.map(|(key, name)| Ok((key, model_names::find(&name, keys)?))).transpose()?;
    if let Some((key, Some(model))) = model {
        keys.assume(format!("The sizes of the model are those of {}, known by its name ({key}).", model.name));
        return Ok(model);
    }
    let flavors = flavors()?;
    let known = flavors.as_object().into_iter().flatten().flat_map(|(name, model)| {
        model.as_object().into_iter().flatten().map(move |(flavor, _)| format!("{name} {flavor}"))
    });
    let known: Vec<String> = known.collect();
    let detail = format!(
        "the sizes of this flavor are not known; add the config.json of the model. Known flavors: {}",
        known.join(", ")
    );
    Err(JobConfigError::Value { key: "model.flavor".to_owned(), detail })
}

fn model(keys: &mut Keys) -> Result<Named, JobConfigError> {
    let name = keys.text(&["model.name"], "model").unwrap_or_default();
    let flavor = keys.text(&["model.flavor"], "size of the model").unwrap_or_default();
    let Some(sizes) = self::flavor(&name, &flavor)? else { return Ok(Named::Unknown { flavor }) };
    let mut sizes = document::json(&sizes.to_string())?;
    let model_type = sizes.text(&["model_type"], "architecture");
    let title = format!("{name} {flavor}");
    let module = model_config::language_model(&mut sizes, model_type.as_deref(), (None, false), &title)?;
    unmodelled::report(&mut sizes);
    keys.absorb_report(sizes);
    Ok(Named::Known(Model { name: title, modules: vec![module] }))
}
