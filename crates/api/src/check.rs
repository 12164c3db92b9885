//! Check of a training job's configuration: fit, time, memory, and changes in the syntax of its file.

use crate::planner::certainty::{self, Interval, MemoryCertainty};
use crate::planner::fit::Fit;
use crate::planner::outcome::{Budget, Planned, RunForecast};
use crate::planner::scenario::Scenario;
use crate::planner::slowness::{Measured, Slowness};
use crate::planner::utilisation::Utilisation;
use serde::{Deserialize, Serialize};

use crate::job_config::{ConfigFormat, ReadSetting};
use crate::run::Comparison;

/// A further file of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NamedText {
    /// File name.
    pub name: String,
    /// Content. It is not stored.
    pub text: String,
}

/// Maximum number of further files.
pub const MAX_FURTHER: usize = 7;

/// A configuration to check.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    /// Content of the configuration file. It is not stored.
    pub text: String,
    /// File name.
    #[serde(default)]
    pub name: String,
    /// Further files of the same job, at most 7, for example DeepSpeed JSON next to a `config.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<NamedText>,
    /// Total number of devices. Default: as the file states, or the fewest for its layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// Cluster preset, for example `h100`. Default: as the file states, or `h100`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Tokens of the whole run, for its duration and cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// A configuration and the measured throughput of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SlownessRequest {
    /// The configuration.
    pub configuration: CheckRequest,
    /// Measured throughput.
    pub measured: Measured,
}

/// A configuration and the log of its run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LogCheckRequest {
    /// The configuration.
    pub configuration: CheckRequest,
    /// The log, in a format of `/api/v1/runs`.
    pub log: NamedText,
}

/// Maximum length of a log in bytes.
pub const MAX_LOG_BYTES: usize = 8 << 20;

/// Comparison of a run's log with the prediction of its configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LogCheck {
    /// Whether log and configuration are the same job, the measured and predicted quantities, and the time by phase if the log has
    /// timers. `run` is the name of the log.
    pub comparison: Comparison,
    /// Comparison of the median step time, and causes of a slower run. Omitted if the log is of another job or layout, or has
    /// no step times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowness: Option<Slowness>,
}

/// Whether a job starts and fits the device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A plan fits, and the probability of running out of memory is at most 10 %.
    Fits,
    /// A plan fits, and the probability of running out of memory is above 10 %.
    AtRisk,
    /// No plan fits.
    DoesNotFit,
    /// The framework does not start the job: a plan fits, or no layout is possible.
    DoesNotStart,
}

pub use crate::planner::certainty::RISK;

impl Verdict {
    /// Returns the verdict for the uncertainty of a plan, or for no plan, and for the `refusals` of the framework. `has_layout`
    /// is false if the reason for no plan is another one than memory.
    pub fn new(certainty: Option<&Certainty>, has_layout: bool, refusals: &[String]) -> Self {
        match certainty {
            None if !has_layout && !refusals.is_empty() => Self::DoesNotStart,
            None => Self::DoesNotFit,
            Some(_) if !refusals.is_empty() => Self::DoesNotStart,
            Some(Certainty { memory, .. }) if memory.probability_out_of_memory > RISK => Self::AtRisk,
            Some(_) => Self::Fits,
        }
    }

    /// Display name.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fits => "Fits",
            Self::AtRisk => "At risk",
            Self::DoesNotFit => "Does not fit",
            Self::DoesNotStart => "Does not start",
        }
    }
}

/// Steps of the shortened search for the best plan of [`Check::shown_best_scenario`].
const SHOWN_STEPS: u32 = 48;
/// Devices up to which the whole search takes a few seconds for one module.
const WHOLE_SEARCH_DEVICES: u32 = 256;

impl Check {
    /// Scenario of the best plan next to the check: one global batch. The search is shortened for jobs of many devices
    /// or several modules, so that it takes seconds.
    pub fn shown_best_scenario(&self) -> Scenario {
        let mut scenario = Scenario { iterations: 1, ..self.best_scenario.clone() };
        let is_small = scenario.cluster.devices() <= WHOLE_SEARCH_DEVICES && scenario.model.modules.len() == 1;
        if !is_small {
            scenario.search.best_steps = Some(SHOWN_STEPS);
        }
        scenario
    }
}

/// Result of a check on one global batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    /// Whether the job fits.
    pub verdict: Verdict,
    /// Format of the file; omitted for a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ConfigFormat>,
    /// Framework and simulated schedule, for example "torchtitan, Interleaved1F1B". Without a pipeline, no schedule is
    /// named.
    pub schedule: String,
    /// The job as a scenario. It is valid and not stored.
    pub scenario: Scenario,
    /// The same job with free layout and settings, the planner `best`, and at most 10 % risk of running out of memory.
    pub best_scenario: Scenario,
    /// Settings that were read, in the order of the file.
    pub read: Vec<ReadSetting>,
    /// Values that the file does not state, one sentence each.
    pub assumed: Vec<String>,
    /// Stated properties that a scenario cannot represent, one sentence each.
    pub not_modelled: Vec<String>,
    /// Why the framework does not start the job, one sentence each. The prediction ignores these reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<String>,
    /// Unrecognized keys. Their values are not returned.
    pub unknown: Vec<String>,
    /// Memory need by rank and term, without changes.
    pub fit: Fit,
    /// The plan of the job; omitted if it does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
    /// Uncertainty of the prediction; omitted if the job does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<Certainty>,
    /// MFU and TFLOP/s by counted operations; empty if the job does not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub utilisation: Vec<Utilisation>,
    /// Duration and cost of the run, if a budget was stated and the job fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunForecast>,
}

/// Uncertainty of a prediction, from published measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Certainty {
    /// 80 % interval of the step time in s.
    pub step_s: Interval,
    /// 80 % interval of the reserved memory, and the probability of running out of memory.
    pub memory: MemoryCertainty,
    /// Reason for the widest interval of the step time; omitted if published step times include similar runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Certainty {
    /// Returns the uncertainty of a plan.
    pub fn of_plan(scenario: &Scenario, plan: &Planned) -> Self {
        Self {
            step_s: certainty::step_time(scenario, plan),
            memory: certainty::peak_memory(scenario, plan),
            reason: certainty::reason(scenario),
        }
    }
}

/// Single changes of a checked job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckChanges {
    /// Need, and the changes that help most.
    pub fit: Fit,
    /// Edits of the files for each change; empty if the format has no setting for it.
    pub edits: Vec<Vec<Edit>>,
    /// Edits of the files for the combination of changes; empty if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub combination_edits: Vec<Edit>,
}

impl CheckChanges {
    /// Returns the titles and the edits of a change, by its index. Without an index, those of the combination, or of the
    /// first change with edits if there is none. `None` if there is no such change, or no setting for it in the files.
    pub fn exported(&self, change: Option<u32>) -> Option<(Vec<String>, &[Edit])> {
        let title = |index: usize| self.fit.changes.get(index).map(|change| change.title.clone());
        if let Some(combination) = self.fit.combination.as_ref().filter(|_| change.is_none())
            && !self.combination_edits.is_empty()
        {
            let titles = combination.changes.iter().filter_map(|&index| title(index as usize)).collect();
            return Some((titles, &self.combination_edits));
        }
        let first = || self.edits.iter().position(|edits| !edits.is_empty());
        let index = change.map_or_else(first, |index| usize::try_from(index).ok())?;
        let edits = self.edits.get(index).filter(|edits| !edits.is_empty())?;
        Some((vec![title(index)?], edits))
    }
}

/// What an edit does to the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum EditAction {
    /// Replaces the value of a setting.
    Replace,
    /// Adds a setting.
    Add,
    /// Removes a setting.
    Remove,
}

/// One setting that changes in a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Edit {
    /// What happens to the setting.
    pub action: EditAction,
    /// Index of the file: 0 for `text`, from 1 for `further`. Omitted if it is 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub file: u32,
    /// Line of the file, from 1: the changed line, or the line after which a setting is added.
    pub line: u32,
    /// The new setting in the syntax of the file, or the name of a removed setting.
    pub setting: String,
    /// Variable or expression of a script that the edit replaces. Its later values have no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<String>,
    /// First byte of the replaced range.
    pub start: u32,
    /// Byte after the replaced range.
    pub end: u32,
    /// Replacement of the range.
    pub text: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_first(file: &u32) -> bool {
    *file == 0
}

/// Returns the files of a job with edits, or `None` as for [`apply`].
pub fn apply_to_files(files: &[&str], edits: &[Edit]) -> Option<Vec<String>> {
    let edited = (0..).zip(files).map(|(index, file)| apply(file, edits.iter().filter(|edit| edit.file == index)));
    edited.collect()
}

/// Returns the file with edits, or `None` if two of them overlap or one lies outside the file.
pub fn apply<'a>(file: &str, edits: impl IntoIterator<Item = &'a Edit>) -> Option<String> {
    let mut edits: Vec<&Edit> = edits.into_iter().collect();
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let (mut changed, mut position) = (String::with_capacity(file.len()), 0);
    for edit in edits {
        let (start, end) = (edit.start as usize, edit.end as usize);
        if start < position || end < start {
            return None;
        }
        changed.push_str(file.get(position..start)?);
        file.get(start..end)?;
        changed.push_str(&edit.text);
        position = end;
    }
    changed.push_str(file.get(position..)?);
    Some(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: u32, end: u32, text: &str) -> Edit {
        Edit {
            action: EditAction::Replace,
            file: 0,
            line: 1,
            setting: String::new(),
            replaced: None,
            start,
            end,
            text: text.to_owned(),
        }
    }

    #[test]
    fn edits_replace_ranges_in_any_order() {
        let edits = [edit(8, 9, "2"), edit(2, 3, "16"), edit(10, 10, "!")];
        assert_eq!(apply("a=8 and 4.", &edits).unwrap(), "a=16 and 2.!");
        assert_eq!(apply("a", []).unwrap(), "a");
        assert_eq!(apply("abcdef", &[edit(0, 3, ""), edit(2, 4, "")]), None, "overlap");
        assert_eq!(apply("abc", &[edit(2, 9, "")]), None, "outside");
        assert_eq!(apply("äb", &[edit(1, 2, "")]), None, "inside a letter");
        let edits = [edit(0, 1, "x"), Edit { file: 1, ..edit(1, 1, "y") }];
        assert_eq!(apply_to_files(&["a", "b"], &edits).unwrap(), ["x", "by"]);
    }
}
