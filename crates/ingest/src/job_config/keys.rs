//! Flat keys of a configuration file, with a record of the keys that were read.

mod values;

use std::collections::BTreeSet;

use planner::scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::{ConfigFormat, JobConfig, JobConfigError, MAX_KEYS, similar};
use values::{conflict, first_word, integer, is_list, is_plain, is_same, refuse};

/// Maximum value length in a report, in characters.
const MAX_KEY_CHARS: usize = 120;
/// Maximum number of keys that are compared with known names.
const MAX_COMPARED: usize = 500;

/// A setting that was read from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadSetting {
    /// Key in the file: a dotted path or an argument.
    pub key: String,
    /// Value in the file.
    pub value: String,
    /// Setting in plain words, for example "tensor parallelism".
    pub setting: String,
}

#[derive(Debug, Clone, Default)]
struct Entry {
    key: String,
    /// Key and value in the file, if the reader of another format sees others. The key is empty if the file does not
    /// state the value.
    in_file: Option<(String, String)>,
    value: String,
    /// Setting that the key was read as; empty for a known key without effect on time or memory.
    used_as: Option<&'static str>,
    /// True if the only value is inside a script branch.
    is_in_branch: bool,
}

impl Entry {
    fn file_key(&self) -> &str {
        self.in_file.as_ref().map_or(&self.key, |(key, _)| key)
    }

    /// Sets the key in the file.
    fn set_file_key(&mut self, key: String) {
        let value = self.in_file.take().map_or_else(|| self.value.clone(), |(_, value)| value);
        self.in_file = Some((key, value));
    }
}

/// Keys and values in file order.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    entries: Vec<Entry>,
    /// True while added keys are inside a script branch.
    is_in_branch: bool,
    assumed: Vec<String>,
    not_modelled: Vec<String>,
    refusals: Vec<String>,
    /// Names of keys that the reader looks for.
    known: BTreeSet<String>,
}

impl Keys {
    /// Sets whether subsequent keys are inside a script branch (`if`, `case`).
    pub(super) const fn enter_branch(&mut self, is_in_branch: bool) {
        self.is_in_branch = is_in_branch;
    }

    /// True if subsequent keys are inside a script branch.
    pub(super) const fn adds_to_branch(&self) -> bool {
        self.is_in_branch
    }

    /// Adds a key. For duplicate keys the last value is used, as in all supported formats.
    pub(super) fn push(&mut self, key: String, value: String) -> Result<(), JobConfigError> {
        if self.entries.len() >= MAX_KEYS {
            return Err(JobConfigError::TooManyKeys);
        }
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            if entry.value != value {
                let branch = if self.is_in_branch || entry.is_in_branch { ", in a branch (if, case)" } else { "" };
                // Other words may be secrets.
                let values = if is_plain(&entry.value) && is_plain(&value) {
                    format!(", as {} and as {value}", entry.value)
                } else {
                    String::new()
                };
                self.assumed.push(format!("{key} is given twice{values}{branch}. The last value counts."));
            }
            entry.value = value;
            entry.is_in_branch &= self.is_in_branch;
            return Ok(());
        }
        self.entries.push(Entry { key, value, is_in_branch: self.is_in_branch, ..Entry::default() });
        Ok(())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    /// Returns the keys below `prefix`, without it, and their values.
    pub(super) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.entries.iter().filter_map(move |entry| Some((entry.key.strip_prefix(prefix)?, entry.value.as_str())))
    }

    pub(super) fn has_section(&self, prefix: &str) -> bool {
        self.entries.iter().any(|entry| entry.key.starts_with(prefix))
    }

    /// Returns the first key that starts with `prefix`.
    pub(super) fn first_below(&self, prefix: &str) -> Option<String> {
        self.entries.iter().find(|entry| entry.key.starts_with(prefix)).map(|entry| entry.key.clone())
    }

    /// Like [`Self::first_below`], for keys that are not switched off.
    pub(super) fn first_set_below(&self, prefix: &str) -> Option<String> {
        let is_set = |value: &str| !value.trim().eq_ignore_ascii_case("false");
        let entry = self.entries.iter().find(|entry| entry.key.starts_with(prefix) && is_set(&entry.value));
        entry.map(|entry| entry.key.clone())
    }

    /// Returns a value without marking the key as read.
    pub(super) fn peek(&self, key: &str) -> Option<&str> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }

    /// Returns the value of the first key in `names` that exists, and marks it as read.
    pub(super) fn text(&mut self, names: &[&str], setting: &'static str) -> Option<String> {
        self.take(names, setting).map(|(_, value)| value)
    }

    fn take(&mut self, names: &[&str], setting: &'static str) -> Option<(String, String)> {
        self.known.extend(names.iter().map(|name| (*name).to_owned()));
        let index = names.iter().find_map(|name| self.entries.iter().position(|entry| entry.key == *name))?;
        let entry = &mut self.entries[index];
        entry.used_as = Some(setting);
        let (key, value) = (entry.file_key().to_owned(), entry.value.clone());
        // The same value under an alias is not a conflict.
        self.ignore_where(|entry| entry.value == value && names.contains(&entry.key.as_str()));
        Some((key, value))
    }

    /// Reads an integer. Underscores between digits and a zero fraction are accepted.
    pub(super) fn integer(&mut self, names: &[&str], setting: &'static str) -> Result<Option<u32>, JobConfigError> {
        let Some((key, value)) = self.take_stated(names, setting) else { return Ok(None) };
        integer(&key, &value).map(Some)
    }

    /// Like [`Self::take`], without an empty value, for example of a variable that is empty.
    fn take_stated(&mut self, names: &[&str], setting: &'static str) -> Option<(String, String)> {
        let (key, value) = self.take(names, setting)?;
        if !value.trim().is_empty() {
            return Some((key, value));
        }
        for entry in self.entries.iter_mut().filter(|entry| names.contains(&entry.key.as_str())) {
            entry.used_as = Some("");
        }
        self.assume(format!("{key} has an empty value. It is not read."));
        None
    }

    /// Reads a positive integer. Zero and -1 mean "not set" in all supported frameworks.
    pub(super) fn count(&mut self, names: &[&str], setting: &'static str) -> Result<Option<u32>, JobConfigError> {
        let Some((key, value)) = self.take_stated(names, setting) else { return Ok(None) };
        if first_word(&value) == "-1" {
            return Ok(None);
        }
        integer(&key, &value).map(|number| Some(number).filter(|&number| number > 0))
    }

    /// Like [`Self::count`] for values that the launcher may set: an undefined variable counts as
    /// absent.
    pub(super) fn launch_count(
        &mut self,
        names: &[&str],
        setting: &'static str,
    ) -> Result<Option<u32>, JobConfigError> {
        // Words after the first are those of the script, for example the program.
        self.known.extend(names.iter().map(|name| (*name).to_owned()));
        let is_unset = |name: &&str| self.peek(name).is_some_and(|value| first_word(value).contains('$'));
        let stated: Vec<&str> = names.iter().filter(|name| !is_unset(name)).copied().collect();
        self.ignore(|key| names.contains(&key));
        self.count(&stated, setting)
    }

    pub(super) fn number(&mut self, names: &[&str], setting: &'static str) -> Result<Option<f64>, JobConfigError> {
        let Some((key, value)) = self.take_stated(names, setting) else { return Ok(None) };
        let number = first_word(&value).replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        number.map_or_else(|| Err(refuse(&key, &value, "a number")), |number| Ok(Some(number)))
    }

    /// Reads a boolean. An argument without a value is true.
    pub(super) fn flag(&mut self, names: &[&str], setting: &'static str) -> Option<bool> {
        let (key, value) = self.take(names, setting)?;
        let word = first_word(&value).to_lowercase();
        if word.starts_with('$') && !is_list(&word) {
            self.assume(format!("{key} has a variable that the file does not set. It is read as on."));
        }
        Some(!matches!(word.as_str(), "false" | "no" | "0" | "off"))
    }

    /// Marks keys as known and without effect on time and memory.
    pub(super) fn ignore(&mut self, is_ignored: impl Fn(&str) -> bool) {
        self.ignore_where(|entry| is_ignored(&entry.key));
    }

    /// Adds names that a misspelt key can mean.
    pub(super) fn name(&mut self, names: impl Iterator<Item = &'static str>) {
        self.known.extend(names.map(str::to_owned));
    }

    fn ignore_where(&mut self, is_ignored: impl Fn(&Entry) -> bool) {
        for entry in &mut self.entries {
            if entry.used_as.is_none() && is_ignored(entry) {
                entry.used_as = Some("");
            }
        }
    }

    /// Returns the keys below `prefix` with the prefix removed. [`Self::merge`] returns their read
    /// marks.
    pub(super) fn section(&self, prefix: &str) -> Self {
        let below =
            |entry: &Entry| entry.key.strip_prefix(prefix).map(|key| Entry { key: key.to_owned(), ..entry.clone() });
        Self { entries: self.entries.iter().filter_map(below).collect(), ..Self::default() }
    }

    /// Merges the read marks from [`Self::section`].
    pub(super) fn merge(&mut self, prefix: &str, section: Self) {
        for part in &section.entries {
            let key = format!("{prefix}{}", part.key);
            if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
                entry.used_as = part.used_as;
            }
        }
        self.known.extend(section.known.iter().map(|name| format!("{prefix}{name}")));
        self.absorb_report(section);
    }

    /// Adds the keys of another document below `prefix`.
    pub(super) fn adopt(&mut self, prefix: &str, other: Self) -> Result<(), JobConfigError> {
        other.entries.into_iter().try_for_each(|entry| self.push(format!("{prefix}{}", entry.key), entry.value))
    }

    /// Adds the keys of another file below `prefix`. Reports name them without the prefix. A key that both files state
    /// has one value.
    pub(super) fn adopt_file(&mut self, prefix: &str, other: Self) -> Result<(), JobConfigError> {
        for mut entry in other.entries {
            let key = format!("{prefix}{}", entry.key);
            if let Some(own) = self.entries.iter().find(|own| own.key == key) {
                if own.value != entry.value {
                    return Err(conflict((own.file_key(), &own.value), (entry.file_key(), &entry.value)));
                }
                continue;
            }
            if self.entries.len() >= MAX_KEYS {
                return Err(JobConfigError::TooManyKeys);
            }
            entry.set_file_key(entry.file_key().to_owned());
            entry.key = key;
            self.entries.push(entry);
        }
        self.assumed.extend(other.assumed);
        Ok(())
    }

    /// Returns the keys with the new key, name in reports and value that `convert` gives for key and value. Keys without
    /// them are left out.
    pub(super) fn converted(mut self, convert: impl Fn(&str, &str) -> Option<(String, String, String)>) -> Self {
        for entry in std::mem::take(&mut self.entries) {
            let Some((key, name, value)) = convert(&entry.key, &entry.value) else { continue };
            self.entries.retain(|other| other.key != key);
            self.entries.push(Entry { key, in_file: Some((name, value.clone())), value, ..entry });
        }
        self
    }

    /// Adds the keys of a command line. Its values replace those of the file.
    pub(super) fn override_with(&mut self, mut command: Self) -> Result<(), JobConfigError> {
        for entry in std::mem::take(&mut command.entries) {
            if let Some(index) = self.entries.iter().position(|own| own.key == entry.key) {
                let own = self.entries.remove(index);
                if !is_same(&own.value, &entry.value) {
                    // Words may be secrets, numbers are not.
                    let values = if is_plain(&own.value) && is_plain(&entry.value) {
                        format!(": {} instead of {}", entry.value, own.value)
                    } else {
                        String::new()
                    };
                    self.assumed.push(format!("{} replaces {} of the file{values}.", entry.file_key(), own.file_key()));
                }
            }
            if self.entries.len() >= MAX_KEYS {
                return Err(JobConfigError::TooManyKeys);
            }
            self.entries.push(entry);
        }
        self.absorb_report(command);
        Ok(())
    }

    /// Appends the keys and the report of another file, all of whose keys were read.
    pub(super) fn absorb_file(&mut self, other: Self) {
        self.entries.extend(other.entries.iter().cloned());
        self.known.extend(other.known.iter().cloned());
        self.absorb_report(other);
    }

    /// Renames the keys for the reader of another format. Reports keep the names in the file.
    pub(super) fn rename(&mut self, new_name: impl Fn(&str) -> Option<String>) {
        for entry in &mut self.entries {
            if let Some(name) = new_name(&entry.key) {
                entry.set_file_key(entry.file_key().to_owned());
                entry.key = name;
            }
        }
    }

    /// Adds a key that the reader of another format expects, with the meaning of `source` in the file, which counts as
    /// read. Without `source`, the key is no part of the report.
    pub(super) fn derive(&mut self, name: &str, value: &str, source: &str) {
        self.ignore(|key| key == source);
        let source = self.entries.iter().find(|entry| entry.key == source);
        let in_file = source.map_or_else(Default::default, |entry| {
            entry.in_file.clone().unwrap_or_else(|| (entry.key.clone(), entry.value.clone()))
        });
        self.entries.retain(|entry| entry.key != name);
        self.entries.push(Entry {
            key: name.to_owned(),
            value: value.to_owned(),
            in_file: Some(in_file),
            ..Entry::default()
        });
    }

    /// Adds `prefix` to the names in the file.
    pub(super) fn relabel(&mut self, prefix: &str) {
        // Arguments and keys of another file have their complete names.
        let is_short = |entry: &&mut Entry| {
            let name = entry.file_key();
            let is_complete = entry.in_file.is_some() && name.starts_with(prefix);
            !name.is_empty() && !name.starts_with("--") && !is_complete
        };
        for entry in self.entries.iter_mut().filter(is_short) {
            entry.set_file_key(format!("{prefix}{}", entry.file_key()));
        }
    }

    /// Sets the name of a key in reports.
    pub(super) fn set_name(&mut self, key: &str, name: &str) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == key) {
            entry.set_file_key(name.to_owned());
        }
    }

    /// Adds a key that the reader expects, for a value that the file states under another name.
    pub(super) fn translate(&mut self, name: &str, value: &str, (in_file, stated): (&str, &str)) {
        self.derive(name, value, "");
        if let Some(entry) = self.entries.last_mut() {
            entry.in_file = Some((in_file.to_owned(), stated.to_owned()));
        }
    }

    /// Replaces the keys below `prefix` by those of a section of [`Self::section`] that was renamed.
    pub(super) fn replace_section(&mut self, prefix: &str, mut section: Self) {
        self.entries.retain(|entry| !entry.key.starts_with(prefix));
        for mut entry in section.entries.drain(..) {
            entry.key.insert_str(0, prefix);
            self.entries.push(entry);
        }
        self.known.extend(section.known.iter().map(|name| format!("{prefix}{name}")));
        self.absorb_report(section);
    }

    /// Replaces values. `new_value` takes the key and the value.
    pub(super) fn replace_values(&mut self, new_value: impl Fn(&Self, &str, &str) -> Option<String>) {
        let values: Vec<_> = self.entries.iter().map(|entry| new_value(self, &entry.key, &entry.value)).collect();
        for (entry, value) in self.entries.iter_mut().zip(values) {
            if let Some(value) = value {
                entry.value = value;
            }
        }
    }

    /// Returns the value that all stated keys of `names` have. "auto" is no value; it is reported if no key has one.
    pub(super) fn agreed(&mut self, names: &[&str], setting: &'static str) -> Result<Option<String>, JobConfigError> {
        let mut agreed: Option<(String, String)> = None;
        let mut automatic = None;
        for name in names {
            let Some((key, value)) = self.take(&[name], setting) else { continue };
            if value.trim().eq_ignore_ascii_case("auto") {
                automatic = Some(key);
                continue;
            }
            match &agreed {
                Some((first, other)) if !is_same(other, &value) => {
                    return Err(conflict((first, other), (&key, &value)));
                }
                Some(_) => {}
                None => agreed = Some((key, value)),
            }
        }
        if let (None, Some(key)) = (&agreed, automatic) {
            self.assume(format!("{key} is \"auto\": the trainer sets it ({setting})."));
        }
        Ok(agreed.map(|(_, value)| value))
    }

    /// Like [`Self::count`], for all of `names`. See [`Self::agreed`].
    pub(super) fn agreed_count(
        &mut self,
        names: &[&str],
        setting: &'static str,
    ) -> Result<Option<u32>, JobConfigError> {
        Ok(self.agreed_integer(names, setting)?.filter(|&number| number > 0))
    }

    /// Like [`Self::integer`], for all of `names`. See [`Self::agreed`].
    pub(super) fn agreed_integer(
        &mut self,
        names: &[&str],
        setting: &'static str,
    ) -> Result<Option<u32>, JobConfigError> {
        let value = self.agreed(names, setting)?;
        let Some(value) = value.filter(|value| value.trim() != "-1") else { return Ok(None) };
        let key = names.iter().find(|name| self.peek(name) == Some(value.as_str())).copied();
        integer(&self.file_name(key.unwrap_or_default()), &value).map(Some)
    }

    /// Returns the name of a key in the file.
    pub(super) fn file_name(&self, key: &str) -> String {
        let renamed = |entry: &&Entry| entry.file_key().trim_start_matches('-') == key;
        let found = self.entries.iter().find(|entry| entry.key == key).or_else(|| self.entries.iter().find(renamed));
        found.map(Entry::file_key).filter(|name| !name.is_empty()).unwrap_or(key).to_owned()
    }

    /// Appends the assumptions and unsupported features from another set, without its keys.
    pub(super) fn absorb_report(&mut self, other: Self) {
        self.assumed.extend(other.assumed);
        other.not_modelled.into_iter().for_each(|sentence| self.not_modelled(sentence));
        self.refusals.extend(other.refusals);
    }

    #[cfg(test)]
    pub(super) fn is_in_branch(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && entry.is_in_branch)
    }

    pub(super) fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// Records an assumed value.
    pub(super) fn assume(&mut self, sentence: impl Into<String>) {
        self.assumed.push(sentence.into());
    }

    /// Removes an assumed value. Returns false if it was not recorded.
    pub(super) fn retract(&mut self, sentence: &str) -> bool {
        let count = self.assumed.len();
        self.assumed.retain(|other| other != sentence);
        self.assumed.len() < count
    }

    /// Records a feature that the scenario cannot represent.
    pub(super) fn not_modelled(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.not_modelled.contains(&sentence) {
            self.not_modelled.push(sentence);
        }
    }

    /// Records why the framework does not start the job.
    pub(super) fn refuse(&mut self, sentence: impl Into<String>) {
        self.refusals.push(sentence.into());
    }

    /// Builds the report.
    pub(super) fn finish(mut self, format: ConfigFormat, scenario: Scenario) -> JobConfig {
        let mut read = Vec::new();
        let mut unknown: Vec<String> = Vec::new();
        let stated: BTreeSet<String> = self.entries.iter().map(|entry| entry.key.clone()).collect();
        let known: BTreeSet<String> = self.known.difference(&stated).cloned().collect();
        let mut compared = 0;
        for Entry { key, value, in_file, used_as, is_in_branch } in std::mem::take(&mut self.entries) {
            let is_read = used_as.is_some_and(|setting| !setting.is_empty());
            let is_compared = !is_read && !key.starts_with(['$', '#']) && !self.known.contains(&key);
            compared += usize::from(is_compared);
            let meant = if is_compared && compared <= MAX_COMPARED { similar::find(&key, &known) } else { None };
            let (key, value) = in_file.unwrap_or((key, value));
            if key.is_empty() {
                continue;
            }
            if is_in_branch && used_as.is_some_and(|setting| !setting.is_empty()) && !key.starts_with('$') {
                self.assumed.push(format!("{key} is in a branch (if, case) and is read as if that branch runs."));
            }
            match used_as {
                None | Some("") if meant.is_some() => {
                    let key: String = key.chars().take(MAX_KEY_CHARS).collect();
                    let meant = meant.unwrap_or_default();
                    let meant = if key.trim_start_matches('-').contains('-') {
                        meant.replace('_', "-")
                    } else {
                        meant.replace('-', "_")
                    };
                    unknown.push(format!("{key} (did you mean {meant}?)"));
                }
                None => unknown.push(key.chars().take(MAX_KEY_CHARS).collect()),
                Some("") => {}
                Some(setting) => {
                    // Words of a script may follow a number, for example the program after its options.
                    let word = first_word(&value);
                    let value = if word.parse::<f64>().is_ok() { word } else { value.as_str() };
                    let value = similar::without_credentials(value).chars().take(MAX_KEY_CHARS).collect();
                    read.push(ReadSetting { key, value, setting: setting.to_owned() });
                }
            }
        }
        let Self { assumed, not_modelled, refusals, .. } = self;
        JobConfig { format, scenario, read, assumed, not_modelled, refusals, unknown }
    }
}
