//! Validates user-supplied times that replace predictions: the target must exist and the result
//! must be a valid time.

use super::{FieldError, Ranges};
use crate::scenario::Scenario;
use planscope_core::model::Module;
use planscope_core::training::CostOverride;
use planscope_cost::cost::graph::Shape;
use planscope_cost::cost::overrides::{Price, Priced, Variables, covers, operator_names};
use planscope_cost::cost::{LayerModel, ModuleLoad};

/// Maximum overrides per scenario. The cost model tests all overrides for all operators and loads.
const MAX_OVERRIDES: usize = 64;
/// Token counts used to test formulas: 1, a short sentence, and typical to very long contexts.
const TOKENS: [f64; 5] = [1.0, 128.0, 2048.0, 16_384.0, 131_072.0];

pub(super) fn check(scenario: &Scenario, errors: &mut Vec<FieldError>) {
    let list = &scenario.training.overrides;
    if list.is_empty() {
        return;
    }
    let mut ranges = Ranges(errors);
    if list.len() > MAX_OVERRIDES {
        ranges.refuse("/training/overrides", format!("{} overrides: at most {MAX_OVERRIDES}", list.len()));
        return;
    }
    let names = operator_names();
    let mut prices = Vec::new();
    for (index, given) in list.iter().enumerate() {
        let at = format!("/training/overrides/{index}");
        if !names.contains(given.operator.as_str()) {
            let known = names.iter().copied().collect::<Vec<_>>().join(", ");
            let detail = format!("there is no operator {:?}; there are {known}", given.operator);
            ranges.refuse(&format!("{at}/operator"), detail);
        }
        module(given, &at, scenario, &mut ranges);
        let degrees = given.at.map_or([1, 1], |at| [at.tensor, at.context]);
        for (field, degree) in ["tensor", "context"].into_iter().zip(degrees) {
            if degree == 0 {
                ranges.refuse(&format!("{at}/at/{field}"), "a degree is 1 or more".to_owned());
            }
        }
        match Price::parse(given) {
            Ok(price) => prices.push((at, given, price)),
            Err(error) => ranges.refuse(&format!("{at}{}", error.field()), error.to_string()),
        }
    }
    // Test formulas on the scenario's operators only if all fields are valid.
    if ranges.0.is_empty() {
        for (at, given, price) in prices.iter().filter(|(.., price)| matches!(price, Price::Formula(_))) {
            if let Some(detail) = without_time(given, price, scenario) {
                ranges.refuse(&format!("{at}/formula_us"), detail);
            }
        }
    }
}

fn module(given: &CostOverride, at: &str, scenario: &Scenario, ranges: &mut Ranges<'_>) {
    let modules = &scenario.model.modules;
    if let Some(name) = &given.module
        && modules.iter().all(|module| module.name != *name)
    {
        let known = modules.iter().map(|module| module.name.as_str()).collect::<Vec<_>>().join(", ");
        ranges.refuse(&format!("{at}/module"), format!("the model has no module {name:?}; it has {known}"));
    }
}

/// A sequence of `tokens` tokens in a module at tensor-parallel degree `tensor`.
#[derive(Clone, Copy)]
struct Case<'a> {
    scenario: &'a Scenario,
    module: &'a Module,
    tensor: u32,
    tokens: f64,
}

/// Describes a load for which the formula returns no valid time.
fn without_time(given: &CostOverride, price: &Price, scenario: &Scenario) -> Option<String> {
    // Use the override's degree; otherwise test TP 1 and the requested TP (default: a full node).
    let default_tensor = scenario.layout.tensor.unwrap_or(scenario.cluster.devices_per_node);
    let degrees = given.at.map_or([1, default_tensor], |at| [at.tensor; 2]);
    for module in scenario.model.modules.iter().filter(|module| given.is_for(module)) {
        for (tensor, tokens) in degrees.into_iter().flat_map(|tensor| TOKENS.map(|tokens| (tensor, tokens))) {
            let values = Case { scenario, module, tensor, tokens }.values(given, price);
            if let Some(value) = values.into_iter().find(|value| !(value.is_finite() && *value >= 0.0)) {
                let name = &module.name;
                return Some(format!(
                    "gives {value} µs for {name} at tokens = {tokens}, tp = {tensor}; times are zero or more"
                ));
            }
        }
    }
    None
}

impl Case<'_> {
    /// Returns the formula's values for the layer, or for all matching operators.
    fn values(&self, given: &CostOverride, price: &Price) -> Vec<f64> {
        let &Self { scenario, module, tensor, tokens } = self;
        let training = &scenario.training;
        // A formula sees the tokens per device. Multiply by the context-parallel degree to get the
        // group's tokens.
        let context = f64::from(training.context_parallel);
        let (tokens, squared) = (tokens * context, tokens * tokens * context);
        let load = ModuleLoad::unpadded(tokens, squared);
        let shape = Shape::new(module, training, f64::from(tensor), load);
        let value = |priced: Priced| price.value(&Variables::new(&shape, priced));
        let predictions = LayerModel::new(module, &scenario.cluster, training, tensor).predictions(load);
        if given.is_layer() {
            let operators = predictions.layer.into_iter().filter(|(operator, _)| covers(given, operator.phase));
            return vec![value(Priced::sum(operators))];
        }
        let operators = predictions.input.into_iter().chain(predictions.layer).chain(predictions.output);
        operators
            .filter(|(operator, _)| operator.name == given.operator && covers(given, operator.phase))
            .map(|(operator, time)| value(Priced::from_operator(&operator, time)))
            .collect()
    }
}
