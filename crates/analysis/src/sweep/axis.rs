//! A field with several values.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{MAX_LABEL, MAX_POINTS};
use planscope_plan::scenario::FieldError;

/// A field with its values, in point order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Axis {
    /// JSON pointer (RFC 6901) to the field in the scenario, for example "/cluster/nodes".
    pub pointer: String,
    /// Display name of the field; absent: the last part of the pointer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Value unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Values as arbitrary JSON.
    pub values: Vec<Value>,
}

impl Axis {
    /// Display name.
    pub fn name(&self) -> &str {
        self.title.as_deref().unwrap_or_else(|| self.pointer.rsplit('/').next().unwrap_or_default())
    }

    /// Formats a value with name and unit, for example "nodes 4".
    pub fn value_label(&self, position: usize) -> String {
        let unit = self.unit.as_ref().map(|unit| format!(" {unit}")).unwrap_or_default();
        format!("{} {}{unit}", self.name(), self.label(position))
    }

    /// Returns the axis label for a value: numbers and strings unchanged, objects by name, other
    /// values by position.
    pub fn label(&self, position: usize) -> String {
        match self.values.get(position) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Object(fields)) => {
                let name = ["name", "preset", "id", "kind"].iter().find_map(|key| fields.get(*key)?.as_str());
                name.map_or_else(|| format!("#{}", position + 1), str::to_owned)
            }
            Some(Value::Array(_)) => format!("#{}", position + 1),
            Some(other) => other.to_string(),
        }
    }
}

/// Value spacing in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scale {
    /// Constant difference.
    #[default]
    Linear,
    /// Constant ratio.
    Log2,
}

/// Input format for an axis: a value list or a range.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenAxis {
    pub(super) pointer: String,
    pub(super) title: Option<String>,
    pub(super) unit: Option<String>,
    pub(super) values: Option<Vec<Value>>,
    pub(super) from: Option<serde_json::Number>,
    pub(super) to: Option<serde_json::Number>,
    pub(super) steps: Option<u32>,
    pub(super) scale: Option<Scale>,
}

impl WrittenAxis {
    pub(super) fn at(pointer: &str) -> Self {
        Self { pointer: pointer.to_owned(), ..Self::default() }
    }

    /// Expands the axis. Appends to `errors` and returns `None` if it is invalid.
    pub(super) fn spelled_out(self, at: &str, errors: &mut Vec<FieldError>) -> Option<Axis> {
        let before = errors.len();
        let mut refuse = |field: &str, detail: String| errors.push(FieldError::new(&format!("{at}{field}"), detail));
        if !self.pointer.starts_with('/') || self.pointer.len() > 500 {
            refuse("/pointer", "a JSON pointer into the scenario is needed, for example /cluster/nodes".to_owned());
        }
        if matches!(self.pointer.as_str(), "/title" | "/schema") {
            refuse("/pointer", format!("{} has no effect on the plan", self.pointer));
        }
        for (field, label) in [("/title", &self.title), ("/unit", &self.unit)] {
            if label.as_ref().is_some_and(|label| label.chars().count() > MAX_LABEL) {
                refuse(field, format!("at most {MAX_LABEL} characters"));
            }
        }
        let values = match (self.values, self.from, self.to, self.steps) {
            (Some(values), None, None, None) if self.scale.is_none() => listed(values),
            (None, Some(from), Some(to), Some(steps)) => range(&from, &to, steps, self.scale.unwrap_or_default()),
            _ => Err("either values, or from, to and steps are needed".to_owned()),
        };
        let values = values.map_err(|detail| refuse("", detail)).ok();
        let axis = values.map(|values| Axis { pointer: self.pointer, title: self.title, unit: self.unit, values });
        if errors.len() == before { axis } else { None }
    }
}

fn listed(values: Vec<Value>) -> Result<Vec<Value>, String> {
    if values.is_empty() || values.len() > MAX_POINTS as usize {
        return Err(format!("{} values: 1 to {MAX_POINTS}", values.len()));
    }
    let mut seen = std::collections::BTreeSet::new();
    match values.iter().find(|value| !seen.insert(value.to_string())) {
        Some(twice) => Err(format!("the value {twice} is listed twice")),
        None => Ok(values),
    }
}

/// Values from `from` to `to`, inclusive. If both are integers, the values are rounded and
/// deduplicated.
fn range(from: &serde_json::Number, to: &serde_json::Number, steps: u32, scale: Scale) -> Result<Vec<Value>, String> {
    if !(2..=MAX_POINTS).contains(&steps) {
        return Err(format!("{steps} steps: 2 to {MAX_POINTS}"));
    }
    let (first, last) = match (from.as_f64(), to.as_f64()) {
        (Some(first), Some(last)) if first < last => (first, last),
        _ => return Err(format!("from {from} to {to}: the second must be more than the first")),
    };
    if scale == Scale::Log2 && first <= 0.0 {
        return Err(format!("from {from}: a log2 scale begins above 0"));
    }
    let is_integer = from.is_u64() && to.is_u64();
    let mut values: Vec<Value> = Vec::with_capacity(steps as usize);
    for step in 0..steps {
        let share = f64::from(step) / f64::from(steps - 1);
        let value = match scale {
            _ if step == 0 => first,
            _ if step + 1 == steps => last,
            Scale::Linear => first + (last - first) * share,
            Scale::Log2 => first * libm::exp2(libm::log2(last / first) * share),
        };
        let value = if is_integer { Value::from(value.round() as u64) } else { Value::from(value) };
        if values.last() != Some(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// Rejects axes that overwrite fields on earlier axes.
pub(super) fn overlaps(axes: &[Axis], errors: &mut Vec<FieldError>) {
    for (number, axis) in axes.iter().enumerate() {
        let covers = |earlier: &&Axis| {
            let rest = earlier.pointer.strip_prefix(&axis.pointer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(earlier) = axes[..number].iter().find(covers) {
            let detail = format!("{} would write over {}; put it first", axis.pointer, earlier.pointer);
            errors.push(FieldError::new(&format!("/axes/{number}/pointer"), detail));
        }
    }
}
