//! Validation errors from the server, by JSON pointer.

use std::collections::{BTreeMap, BTreeSet};

use api::problem::FieldProblem;

use crate::format;

/// Validation errors by JSON pointer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldErrors {
    by_pointer: BTreeMap<String, String>,
}

impl FieldErrors {
    /// Collects the errors of a problem document. Joins multiple errors of one field.
    pub(crate) fn from_problems(problems: &[FieldProblem]) -> Self {
        let mut errors = Self::default();
        for problem in problems {
            let detail = format::grouped_in(&problem.detail);
            errors
                .by_pointer
                .entry(problem.pointer.clone())
                .and_modify(|known| {
                    known.push_str("; ");
                    known.push_str(&detail);
                })
                .or_insert(detail);
        }
        errors
    }

    /// Returns the error of a field.
    pub(crate) fn at(&self, pointer: &str) -> Option<&str> {
        self.by_pointer.get(pointer).map(String::as_str)
    }

    /// JSON pointers of invalid fields.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &str> {
        self.by_pointer.keys().map(String::as_str)
    }

    /// Sets or clears the error of a field.
    pub(crate) fn set(&mut self, pointer: &str, detail: Option<String>) {
        match detail {
            Some(detail) => self.by_pointer.insert(pointer.to_owned(), detail),
            None => self.by_pointer.remove(pointer),
        };
    }

    /// Returns true if a field at or below `prefix` is invalid.
    pub(crate) fn any_under(&self, prefix: &str) -> bool {
        self.by_pointer.keys().any(|pointer| is_under(pointer, prefix))
    }

    /// Errors at or below `prefix` without a field on the page.
    pub(crate) fn without_field(&self, prefix: &str, fields: &BTreeSet<String>) -> Vec<(String, String)> {
        self.by_pointer
            .iter()
            .filter(|(pointer, _)| is_under(pointer, prefix) && !fields.contains(*pointer))
            .map(|(pointer, detail)| (pointer.clone(), detail.clone()))
            .collect()
    }

    /// Errors without a field on the page and outside all sections.
    pub(crate) fn homeless(&self, sections: &[&str], fields: &BTreeSet<String>) -> Vec<(String, String)> {
        let mut errors = self.without_field("", fields);
        errors.retain(|(pointer, _)| !sections.iter().any(|section| is_under(pointer, section)));
        errors
    }
}

/// Converts a JSON pointer to words: "/model/modules/0/kv_heads" becomes "model, module 1, kv
/// heads".
pub(crate) fn pointer_label(pointer: &str) -> String {
    let mut terms: Vec<String> = Vec::new();
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~").replace('_', " ");
        match (segment.parse::<usize>(), terms.last_mut()) {
            // List entries are numbered from 1 and use the singular.
            (Ok(index), Some(list)) => {
                let singular = if list == "axes" { "axis" } else { list.strip_suffix('s').unwrap_or(list) };
                *list = format!("{singular} {}", index + 1);
            }
            _ => terms.push(segment),
        }
    }
    terms.join(", ")
}

fn is_under(pointer: &str, prefix: &str) -> bool {
    pointer.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(pointer: &str, detail: &str) -> FieldProblem {
        FieldProblem { pointer: pointer.to_owned(), detail: detail.to_owned() }
    }

    #[test]
    fn every_error_appears_in_exactly_a_single_location() {
        let errors = FieldErrors::from_problems(&[
            problem("/cluster/nodes", "at least 1"),
            problem("/cluster/nodes", "at most 4096"),
            problem("/cluster/name", "too long"),
            problem("/clusters", "unknown"),
            problem("", "not an object"),
        ]);
        assert_eq!(errors.at("/cluster/nodes"), Some("at least 1; at most 4,096"));
        let fields = BTreeSet::from(["/cluster/nodes".to_owned()]);
        assert_eq!(errors.without_field("/cluster", &fields), [("/cluster/name".to_owned(), "too long".to_owned())]);
        let homeless: Vec<_> =
            errors.homeless(&["/cluster"], &fields).into_iter().map(|(pointer, _)| pointer).collect();
        assert_eq!(homeless, ["", "/clusters"]);
    }

    #[test]
    fn pointers_are_converted_to_labels() {
        assert_eq!(pointer_label("/model/modules/0/kv_heads"), "model, module 1, kv heads");
        assert_eq!(pointer_label("/cluster/name"), "cluster, name");
        assert_eq!(pointer_label("/axes/0"), "axis 1");
        assert_eq!(pointer_label(""), "");
    }

    #[test]
    fn a_prefix_ends_at_a_segment() {
        let mut errors = FieldErrors::from_problems(&[problem("/clusters", "unknown")]);
        assert!(!errors.any_under("/cluster"));
        errors.set("/cluster/nodes", Some("not a number".to_owned()));
        assert!(errors.any_under("/cluster"));
        errors.set("/cluster/nodes", None);
        assert!(!errors.any_under("/cluster"));
    }
}
