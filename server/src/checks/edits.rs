//! Finds settings in the files of a job, and the edits that change them.

mod arguments;
mod inline;
mod keys;
mod quotes;

use api::check::{Edit, EditAction};
use ingest::job_config::{self, Places};
use serde_json::Value;

use super::syntax::{Setting, word};
use api::job_config::ConfigFormat;

/// Prefixes of the keys of DeepSpeed and accelerate, which are files of their own.
const PREFIXES: [&str; 2] = ["deepspeed.", "accelerate."];

/// The files of a job, with the places of their keys.
#[derive(Debug)]
pub(super) struct Job<'a> {
    /// Format of the job.
    pub(super) format: ConfigFormat,
    documents: Vec<Document<'a>>,
}

#[derive(Debug)]
struct Document<'a> {
    /// Index of the file.
    file: u32,
    text: &'a str,
    /// Prefix of the keys of the file in the tables of settings.
    prefix: &'static str,
    /// `None` for arguments of a command line.
    places: Option<Places>,
    /// True if a switch of the command line has the value True or False.
    has_words: bool,
}

/// True for formats whose settings can be arguments of a command line.
const fn has_arguments(format: job_config::ConfigFormat) -> bool {
    use job_config::ConfigFormat as Format;
    matches!(format, Format::Megatron | Format::Torchtitan | Format::OpenRlhf | Format::Litgpt | Format::Levanter)
        || has_words(format)
}

/// True for programs with the parser of transformers.
const fn has_words(format: job_config::ConfigFormat) -> bool {
    use job_config::ConfigFormat as Format;
    matches!(
        format,
        Format::TrainingArguments
            | Format::Accelerate
            | Format::LlamaFactory
            | Format::Axolotl
            | Format::Trl
            | Format::Swift
    )
}

impl<'a> Job<'a> {
    /// Finds the places of all keys. Files of a model have none.
    pub(super) fn new(format: ConfigFormat, texts: &[&'a str]) -> Self {
        let documents = (0..).zip(texts).filter_map(|(file, text)| {
            let format = job_config::format(text.as_bytes()).ok()?;
            let prefix = match format {
                job_config::ConfigFormat::HuggingFaceModel | job_config::ConfigFormat::Mlperf => return None,
                job_config::ConfigFormat::Deepspeed => PREFIXES[0],
                job_config::ConfigFormat::Accelerate => PREFIXES[1],
                _ => "",
            };
            let places = job_config::places(text, format);
            let is_read = places.is_some() || has_arguments(format);
            let prefix = if places.is_none() { "" } else { prefix };
            is_read.then_some(Document { file, text, prefix, places, has_words: has_words(format) })
        });
        Self { format, documents: documents.collect() }
    }

    /// Returns the value of a key. Null and "auto" are no values. An argument without a value is empty.
    pub(super) fn value(&self, key: &str) -> Option<&'a str> {
        self.documents.iter().find_map(|document| document.value(key))
    }

    /// Returns true if a file states one of the keys.
    pub(super) fn states(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.value(key).is_some())
    }

    /// Returns true if the settings of the program are arguments of a command.
    pub(super) fn is_command(&self) -> bool {
        self.documents.iter().all(|document| !document.prefix.is_empty() || document.places.is_none())
    }

    /// Returns true if a file contains a text outside comments.
    pub(super) fn mentions(&self, text: &str) -> bool {
        let lines = self.documents.iter().flat_map(|document| document.text.lines());
        lines.filter(|line| !line.trim_start().starts_with('#')).any(|line| line.contains(text))
    }

    /// Returns true if a file has keys below a section, which ends with a dot.
    pub(super) fn has_section(&self, section: &str) -> bool {
        let has = |document: &Document<'_>| {
            let below = section.strip_prefix(document.prefix)?;
            document.places.as_ref().map(|it| it.places.iter().any(|place| place.key.starts_with(below)))
        };
        self.documents.iter().any(|document| has(document) == Some(true))
    }

    /// Returns the edits of settings, or `None` if one of them cannot be placed.
    pub(super) fn locate(&self, settings: &[Setting]) -> Option<Vec<Edit>> {
        let mut located: Vec<Edit> = Vec::new();
        for mut edit in settings.iter().map(|setting| self.edits(setting)).collect::<Option<Vec<_>>>()?.concat() {
            let document = self.documents.iter().find(|document| document.file == edit.file)?;
            // An argument can stand for two keys.
            if document.text.get(edit.start as usize..edit.end as usize)? == edit.text || located.contains(&edit) {
                continue;
            }
            // Keys of the same new section share its header.
            if let Some(header) = document.places.as_ref().and_then(|it| keys::header(it.notation, &edit.text)) {
                let is_same = |other: &Edit| {
                    (other.file, other.start) == (edit.file, edit.start) && other.text.starts_with(header)
                };
                if located.iter().any(is_same) {
                    edit.text = keys::without_header(header, &edit.text)?;
                }
            }
            located.push(edit);
        }
        Some(located)
    }

    /// Changes every key of a setting that the files state. If they state none, adds the first key that can be added.
    fn edits(&self, setting: &Setting) -> Option<Vec<Edit>> {
        let Setting { keys, value, is_added } = setting;
        let pairs = || keys.iter().flat_map(|key| self.documents.iter().map(move |document| (document, key)));
        let stated = pairs().filter(|(document, key)| document.value(key).is_some());
        let changed = stated.map(|(document, key)| document.replace(key, value)).collect::<Option<Vec<_>>>()?;
        if !changed.is_empty() || !is_added {
            return Some(changed);
        }
        let mut null = pairs().filter(|(document, key)| document.is_null(key));
        let added = null.find_map(|(document, key)| document.replace(key, value));
        let added = added.or_else(|| pairs().find_map(|(document, key)| document.add(key, value)));
        added.map(|edit| vec![edit])
    }
}

impl<'a> Document<'a> {
    /// Returns the range of the value of a key.
    fn place(&self, key: &str) -> Option<&job_config::Place> {
        let name = key.strip_prefix(self.prefix)?;
        self.places.as_ref()?.places.iter().rfind(|place| place.key == name)
    }

    fn is_null(&self, key: &str) -> bool {
        self.place(key).is_some_and(|place| place.is_null)
    }

    fn value(&self, key: &str) -> Option<&'a str> {
        if let Some(path) = inline::path(key) {
            return inline::value(self.text, path).filter(|_| self.places.is_none());
        }
        if self.places.is_none() {
            return arguments::value(self.text, argument_name(key)?).filter(|value| *value != "auto");
        }
        let place = self.place(key).filter(|place| !place.is_null)?;
        let value = self.text[place.value.clone()?].trim_matches(['"', '\'']);
        (value != "auto").then_some(value)
    }

    /// Returns the value of an argument. Programs with the parser of transformers have words for switches.
    fn argument_value(&self, value: &Value) -> Value {
        match value {
            Value::Bool(is_on) if self.has_words => if *is_on { "True" } else { "False" }.into(),
            value => value.clone(),
        }
    }

    fn replace(&self, key: &str, value: &Value) -> Option<Edit> {
        let edit = match (&self.places, inline::path(key)) {
            (None, Some(path)) => inline::replace(self.text, path, &word(value))?,
            (None, None) => arguments::place(self.text, argument_name(key)?, &self.argument_value(value))?,
            (Some(places), _) => keys::replace(self.text, places.notation, self.place(key)?, value)?,
        };
        Some(Edit { file: self.file, ..edit })
    }

    fn add(&self, key: &str, value: &Value) -> Option<Edit> {
        if self.prefix.is_empty() && PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
            return None;
        }
        if self.place(key).is_some() {
            return self.replace(key, value);
        }
        let name = key.strip_prefix(self.prefix)?;
        let edit = match &self.places {
            None => arguments::place(self.text, name, &self.argument_value(value))?,
            Some(places) => keys::add(self.text, places, name, value)?,
        };
        Some(Edit { file: self.file, ..edit })
    }
}

/// Returns the name of the argument of a launcher or a program with the meaning of a key; `None` for keys of other files.
fn argument_name(key: &str) -> Option<&str> {
    let Some(name) = key.strip_prefix(PREFIXES[1]) else {
        return (!key.starts_with(PREFIXES[0])).then_some(key);
    };
    // Other names are arguments of the program too.
    let name = name.rsplit('.').next().unwrap_or(name);
    ["parallelism_config_", "fsdp_", "zero_stage"].iter().any(|start| name.starts_with(start)).then_some(name)
}

/// Returns an edit of a range. Its line is that of the start. A replaced variable or expression is named, because its later
/// values have no effect.
fn edit(file: &str, action: EditAction, setting: &str, (start, end): (usize, usize), text: String) -> Edit {
    let line = 1 + file[..start].matches('\n').count();
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    let old = &file[start..end];
    let replaced = (action == EditAction::Replace && old.contains('$')).then(|| old.to_owned());
    let setting = setting.to_owned();
    Edit { action, file: 0, line: offset(line), setting, replaced, start: offset(start), end: offset(end), text }
}
