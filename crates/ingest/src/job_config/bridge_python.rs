//! Recipes of Megatron-Bridge in Python: assignments of plain values to settings, such as
//! `cfg.model.tensor_model_parallel_size = 2`. Other code is not run.

use std::collections::BTreeMap;

use super::JobConfigError;
use super::bridge_recipes::model_of_recipe;
use super::keys::Keys;
use super::python_value::{Value, evaluate};

/// Sections of a recipe.
const SECTIONS: [&str; 7] = ["model", "train", "dataset", "ddp", "optimizer", "comm_overlap", "mixed_precision"];
/// Keys by which a function states a layout.
const DEGREES: [&str; 2] = ["model.tensor_model_parallel_size", "model.pipeline_model_parallel_size"];
const LAYOUT: &str = "model.pipeline_model_parallel_layout";
/// Function of the recipes of DeepSeek-V3 that sets the layers of the stages.
const DEEPSEEK_LAYOUT: &str = "set_deepseek_v3_pipeline_model_parallel_layout(";

/// A function with its settings, as in the file.
#[derive(Debug, Default)]
struct Function {
    name: String,
    settings: Vec<Setting>,
    /// Values of variables and default values of parameters.
    variables: BTreeMap<String, String>,
    /// Name of the last recipe that the function calls.
    called: Option<String>,
    /// Name of the model on the Hugging Face hub.
    pretrained: Option<String>,
    has_deepseek_layout: bool,
}

#[derive(Debug)]
struct Setting {
    key: String,
    expression: String,
    is_in_branch: bool,
}

/// True for a recipe in Python.
pub(super) fn is_recipe(text: &str) -> bool {
    matches!(recognise(text), Ok(Some(_)))
}

/// Returns the settings of a recipe as overrides; `None` for other texts.
///
/// # Errors
/// The file has several recipes.
pub(super) fn recognise(text: &str) -> Result<Option<Keys>, JobConfigError> {
    if !text.contains("megatron.bridge") {
        return Ok(None);
    }
    let mut recipes: Vec<Function> = functions(text).into_iter().filter(Function::is_recipe).collect();
    let Some(recipe) = recipes.pop() else { return Ok(None) };
    if !recipes.is_empty() {
        let names: Vec<&str> = recipes.iter().chain([&recipe]).map(|recipe| recipe.name.as_str()).collect();
        let detail =
            format!("the file has {} recipes: {}; give the code of one of them", names.len(), names.join(", "));
        return Err(JobConfigError::Value { key: "def".to_owned(), detail });
    }
    recipe.keys().map(Some)
}

impl Function {
    fn is_recipe(&self) -> bool {
        DEGREES.iter().any(|degree| self.settings.iter().any(|setting| setting.key == *degree))
    }

    fn keys(&self) -> Result<Keys, JobConfigError> {
        let mut keys = Keys::default();
        let mut open: Vec<&str> = Vec::new();
        for Setting { key, expression, is_in_branch } in &self.settings {
            match self.value(expression, 0) {
                Some(value) if value != "None" => {
                    keys.enter_branch(*is_in_branch);
                    keys.push(key.clone(), value)?;
                }
                None if key == "mixed_precision"
                    && ["bf16", "fp8", "fp16"].iter().any(|word| expression.contains(word)) =>
                {
                    keys.push(key.clone(), format!("bf16_{expression}"))?;
                }
                Some(_) => {}
                None if is_without_effect(key) => {}
                None => open.push(key),
            }
        }
        keys.enter_branch(false);
        if let Some(name) = &self.pretrained {
            keys.push("pretrained".to_owned(), name.clone())?;
        }
        keys.push("recipe".to_owned(), self.recipe().to_owned())?;
        if self.has_deepseek_layout && !keys.has(LAYOUT) {
            add_deepseek_layout(&mut keys);
        }
        if !open.is_empty() {
            keys.not_modelled(format!(
                "These settings of the recipe are Python expressions, which are not read: {}.",
                open.join(", ")
            ));
        }
        Ok(keys)
    }

    /// Returns the name of the recipe that the function calls (`cfg = llama3_70b_pretrain_config()`). Without such a call, the
    /// function is the recipe.
    fn recipe(&self) -> &str {
        self.called.as_deref().unwrap_or(&self.name)
    }

    /// Returns the value of an expression in the form of an override.
    fn value(&self, expression: &str, depth: usize) -> Option<String> {
        let text = expression.trim();
        match text {
            "True" => return Some("true".to_owned()),
            "False" => return Some("false".to_owned()),
            "None" => return Some("None".to_owned()),
            _ => {}
        }
        if let Some(name) = text.strip_prefix("torch.") {
            return name.chars().all(|letter| letter.is_ascii_alphanumeric()).then(|| name.to_owned());
        }
        if text.parse::<f64>().is_ok() {
            return Some(text.to_owned());
        }
        match evaluate(text, &|name| self.variable(name, depth)) {
            Some(Value::Text(text)) => Some(text),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(list @ Value::List(_)) => Some(written(&list)),
            None => {
                let is_name = text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                let variable = self.variables.get(text).filter(|_| is_name && depth < 4)?;
                self.value(variable, depth + 1)
            }
        }
    }

    fn variable(&self, name: &str, depth: usize) -> Option<Value> {
        let expression = self.variables.get(name).filter(|_| depth < 4)?;
        evaluate(expression, &|name| self.variable(name, depth + 1))
    }
}

/// Writes a list as in the file.
fn written(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Number(number) => number.to_string(),
        Value::List(list) => format!("[{}]", list.iter().map(written).collect::<Vec<_>>().join(", ")),
    }
}

/// Adds the stages of DeepSeek-V3: 64 / stages layers each, and the rest of the 61 layers in the last one, with the
/// layer of multi-token prediction and the output head.
fn add_deepseek_layout(keys: &mut Keys) {
    let count = |keys: &Keys, name: &str| keys.peek(name).map_or(Some(1), |value| value.trim().parse::<usize>().ok());
    let pipeline = count(keys, "model.pipeline_model_parallel_size");
    let chunks = count(keys, "model.virtual_pipeline_model_parallel_size");
    let stages = pipeline.zip(chunks).map_or(0, |(pipeline, chunks)| pipeline.saturating_mul(chunks));
    if stages <= 1 {
        return;
    }
    if !matches!(stages, 4 | 8 | 16) {
        keys.not_modelled(format!("The layout of {stages} stages that the recipe of DeepSeek-V3 sets is not known."));
        return;
    }
    let each = 64 / stages;
    let layers = |count: usize| "t".repeat(count);
    let middle = format!("{}|", layers(each)).repeat(stages - 2);
    let layout = format!("E{}|{middle}{}mL", layers(each), layers(61 - each * (stages - 1)));
    keys.derive(LAYOUT, &layout, "");
    keys.assume(format!(
        "The recipe sets the layout of DeepSeek-V3: {each} layers of each of {stages} stages, the rest in the last one."
    ));
}

/// True for settings of data, logs and checkpoints.
fn is_without_effect(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or(key);
    key.starts_with("dataset.") && !name.contains("seq") || key == "comm_overlap" || name.ends_with("_dtype")
}

/// Returns the functions of a text. Code outside of functions is the first one.
fn functions(text: &str) -> Vec<Function> {
    let mut functions = vec![Function { name: "recipe".to_owned(), ..Function::default() }];
    let mut body = None;
    for line in logical_lines(text) {
        let indent = line.len() - line.trim_start().len();
        let code = line.trim();
        if let Some(rest) = code.strip_prefix("def ").filter(|_| indent == 0) {
            let (name, parameters) = rest.split_once('(').unwrap_or((rest, ""));
            let parameters = parameters.rfind(')').map_or(parameters, |end| &parameters[..end]);
            let variables = parameters.split(',').filter_map(|parameter| {
                let (name, value) = parameter.split_once('=')?;
                let name = name.split(':').next().unwrap_or(name).trim();
                Some((name.to_owned(), value.trim().to_owned()))
            });
            let variables = variables.collect();
            functions.push(Function { name: name.trim().to_owned(), variables, ..Function::default() });
            body = None;
            continue;
        }
        if indent == 0 && functions.len() > 1 && !code.is_empty() {
            // Code after a function, such as a constant.
            body = None;
        }
        let Some(function) = functions.last_mut() else { continue };
        let body = *body.get_or_insert(indent);
        statement(function, code, indent > body);
    }
    functions
}

/// Returns the name of the recipe that an expression calls. Recipes of Megatron-Bridge end with `_config`.
fn called_recipe(expression: &str) -> Option<&str> {
    let (callee, _) = expression.split_once('(')?;
    let name = callee.trim().rsplit('.').next()?;
    let is_name = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    // A helper starts with an underscore.
    (is_name && name.ends_with("_config") && !name.starts_with('_') && model_of_recipe(name).is_some()).then_some(name)
}

/// Adds a statement to a function.
fn statement(function: &mut Function, code: &str, is_in_branch: bool) {
    function.has_deepseek_layout |= code.contains(DEEPSEEK_LAYOUT) && !code.starts_with("def ");
    if let Some((_, rest)) = code.split_once("from_hf_pretrained(") {
        let name = rest.trim_start().strip_prefix(['"', '\'']).and_then(|rest| rest.split(['"', '\'']).next());
        function.pretrained = name.map(str::to_owned).or_else(|| function.pretrained.take());
    }
    let Some((target, expression)) = code.split_once('=') else { return };
    let (target, expression) = (target.trim(), expression.trim());
    let is_name = |text: &str| {
        !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.')
    };
    if !is_name(target) || expression.starts_with('=') {
        return;
    }
    match target.split_once('.') {
        None => {
            function.called = called_recipe(expression).map(str::to_owned).or_else(|| function.called.take());
            function.variables.insert(target.to_owned(), expression.to_owned());
        }
        Some((_, key)) if SECTIONS.contains(&key.split('.').next().unwrap_or_default()) && key != "model" => {
            let setting = Setting { key: key.to_owned(), expression: expression.to_owned(), is_in_branch };
            function.settings.push(setting);
        }
        Some(_) => {}
    }
}

/// Joins the lines of a text inside brackets, and removes comments and documentation.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let (mut depth, mut quote) = (0_usize, None);
    let mut is_documentation = false;
    for physical in text.lines() {
        let marks = physical.matches("\"\"\"").count() + physical.matches("'''").count();
        if is_documentation || marks > 0 {
            is_documentation ^= marks % 2 == 1;
            continue;
        }
        for letter in physical.chars() {
            match (quote, letter) {
                (None, '#') => break,
                (None, '"' | '\'') => quote = Some(letter),
                (Some(open), _) if open == letter => quote = None,
                (None, '(' | '[' | '{') => depth += 1,
                (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            line.push(letter);
        }
        quote = None;
        if depth == 0 {
            lines.push(std::mem::take(&mut line));
        } else {
            line.push(' ');
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = r#"
from megatron.bridge import AutoBridge

def helper(cfg):
    cfg.model.seq_length = 4096

def deepseek_v3_small_config(ep: int = 64) -> ConfigContainer:
    """A recipe."""
    cfg = _pretrain_common()  # A comment.
    cfg.model = AutoBridge.from_hf_pretrained(
        "deepseek-ai/DeepSeek-V3", trust_remote_code=True
    ).to_megatron_provider(load_weights=False)
    cfg.model.tensor_model_parallel_size = 2
    cfg.model.pipeline_model_parallel_size = 4
    cfg.model.pipeline_dtype = torch.bfloat16
    cfg.model.virtual_pipeline_model_parallel_size = None
    cfg.model.expert_model_parallel_size = ep
    cfg.model.sequence_parallel = True
    last = ["mtp"] + ["loss"]
    cfg.model.pipeline_model_parallel_layout = [
        ["embedding"] + ["decoder"] * 16,
        ["decoder"] * 16,
        ["decoder"] * 16,
        ["decoder"] * 13 + last,
    ]
    cfg.model.recompute_modules = ["mla_up_proj", "layernorm"]
    cfg.train.global_batch_size = 4096
    cfg.train.manual = some_function(3)
    cfg.mixed_precision = _perf_precision("fp8_mx")
    return cfg
"#;

    #[test]
    fn plain_assignments_are_settings() {
        let keys = recognise(RECIPE).unwrap().unwrap();
        for (key, value) in [
            ("model.tensor_model_parallel_size", "2"),
            ("model.expert_model_parallel_size", "64"),
            ("model.sequence_parallel", "true"),
            ("model.recompute_modules", "[\"mla_up_proj\", \"layernorm\"]"),
            ("train.global_batch_size", "4096"),
            ("pretrained", "deepseek-ai/DeepSeek-V3"),
            ("recipe", "deepseek_v3_small_config"),
        ] {
            assert_eq!(keys.peek(key), Some(value), "{key}");
        }
        assert!(!keys.has("model.virtual_pipeline_model_parallel_size") && !keys.has("model.seq_length"));
        assert!(keys.peek("mixed_precision").is_some_and(|text| text.contains("fp8")));
        assert_eq!(keys.peek(LAYOUT).map(|text| text.matches("decoder").count()), Some(61));
    }

    #[test]
    fn the_called_recipe_counts() {
        for (name, call, recipe) in [
            ("main", "llama3_70b_pretrain_config()", "llama3_70b_pretrain_config"),
            ("llama3_70b_run", "recipes.llama3_8b_pretrain_config(dir=\"x\")", "llama3_8b_pretrain_config"),
            ("llama3_70b_pretrain_config", "_llama3_common()", "llama3_70b_pretrain_config"),
            ("main", "_shared_config()", "main"),
        ] {
            let text = format!(
                "from megatron.bridge import x\ndef {name}():\n    cfg = {call}\n    \
                 cfg.model.tensor_model_parallel_size = 4\n    size = other(cfg)\n"
            );
            assert_eq!(recognise(&text).unwrap().unwrap().peek("recipe"), Some(recipe), "{name}");
        }
    }

    #[test]
    fn several_recipes_are_refused() {
        let two = format!("{RECIPE}\ndef second(cfg):\n    cfg.model.tensor_model_parallel_size = 1\n");
        let error = recognise(&two).unwrap_err().to_string();
        assert!(error.contains("2 recipes: deepseek_v3_small_config, second"), "{error}");
        assert!(recognise("from megatron.bridge import AutoBridge\n").unwrap().is_none());
        assert!(recognise("import torch\n").unwrap().is_none());
    }

    #[test]
    fn the_layout_of_deepseek_follows_from_the_stages() {
        let with = |pipeline: u32, chunks: &str| {
            let text = format!(
                "from megatron.bridge import x\ndef r():\n    cfg.model.pipeline_model_parallel_size = {pipeline}\n    \
                 cfg.model.virtual_pipeline_model_parallel_size = {chunks}\n    {DEEPSEEK_LAYOUT}cfg.model)\n"
            );
            recognise(&text).unwrap().unwrap().peek(LAYOUT).map(str::to_owned)
        };
        let layers = |layout: Option<String>| {
            layout.unwrap().split('|').map(|stage| stage.matches('t').count()).collect::<Vec<_>>()
        };
        assert_eq!(layers(with(4, "None")), [16, 16, 16, 13]);
        assert_eq!(layers(with(8, "1")), [8, 8, 8, 8, 8, 8, 8, 5]);
        assert_eq!(layers(with(4, "4"))[14..], [4, 1]);
        assert_eq!(with(1, "None"), None);
        assert_eq!(with(32, "None"), None);
    }
}
