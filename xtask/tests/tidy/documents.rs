//! Statements in the documentation match the program.

use std::collections::BTreeSet;

use crate::source::{root, sources};
use crate::{is_error_definition, none};

/// HTTP statuses of problems, as written in the program.
const STATUSES: [(&str, u16); 20] = [
    ("MULTIPLE_CHOICES", 300),
    ("BAD_REQUEST", 400),
    ("UNAUTHORIZED", 401),
    ("FORBIDDEN", 403),
    ("NOT_FOUND", 404),
    ("METHOD_NOT_ALLOWED", 405),
    ("REQUEST_TIMEOUT", 408),
    ("CONFLICT", 409),
    ("GONE", 410),
    ("PAYLOAD_TOO_LARGE", 413),
    ("UNSUPPORTED_MEDIA_TYPE", 415),
    ("RANGE_NOT_SATISFIABLE", 416),
    ("MISDIRECTED_REQUEST", 421),
    ("UNPROCESSABLE_ENTITY", 422),
    ("TOO_MANY_REQUESTS", 429),
    ("INTERNAL_SERVER_ERROR", 500),
    ("NOT_IMPLEMENTED", 501),
    ("SERVICE_UNAVAILABLE", 503),
    ("GATEWAY_TIMEOUT", 504),
    ("INSUFFICIENT_STORAGE", 507),
];

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns problem kinds from program text, such as `("gone", S::GONE, ...)`, with statuses. Named
/// kinds are resolved in `constants`.
fn kinds(text: &str, constants: &str) -> BTreeSet<(u16, String)> {
    let mut kinds = BTreeSet::new();
    for (at, _) in text.match_indices('(') {
        let mut parts = text[at + 1..].splitn(3, ", ");
        let (Some(kind), Some(status)) = (parts.next(), parts.next()) else { continue };
        let Some(status) = status.strip_prefix("S::").or_else(|| status.strip_prefix("StatusCode::")) else { continue };
        let status = status.split(',').next().unwrap_or(status);
        let name = kind.rsplit("::").next().unwrap_or(kind);
        let kind = if kind.starts_with('"') {
            kind.trim_matches('"')
        } else if name.contains(char::is_lowercase) {
            continue;
        } else {
            let value = constants.split(&format!("const {name}: &str = \"")).nth(1);
            value.and_then(|value| value.split('"').next()).unwrap_or_else(|| panic!("no constant {kind}"))
        };
        let number = STATUSES.iter().find(|(name, _)| *name == status).map(|(_, number)| *number);
        kinds.insert((number.unwrap_or_else(|| panic!("{status} has no number here")), kind.to_owned()));
    }
    kinds
}

/// Returns problem kinds and statuses from the table in the API documentation.
fn documented_kinds(text: &str) -> BTreeSet<(u16, String)> {
    let mut kinds = BTreeSet::new();
    for line in text.lines() {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let (Some(status), Some(named)) = (cells.next().and_then(|cell| cell.parse().ok()), cells.next()) else {
            continue;
        };
        kinds.extend(named.split(',').map(|kind| (status, kind.trim().trim_matches('`').to_owned())));
    }
    kinds
}

#[test]
fn problem_kinds_match_the_api_document() {
    let rust = sources(".rs");
    let constants: String =
        rust.iter().filter(|source| source.is_under("crates/api/src/")).map(|source| source.text.as_str()).collect();
    let errors = rust.iter().filter(|source| is_error_definition(source));
    let sent: BTreeSet<_> = errors.flat_map(|source| kinds(&source.text, &constants)).collect();
    assert!(sent.len() > 40, "{sent:?}");
    let documented = documented_kinds(&read("docs/api.md"));
    let offences: Vec<_> =
        sent.symmetric_difference(&documented).map(|(status, kind)| format!("{status} {kind}")).collect();
    none(&offences, "kinds of problems that are sent and not in docs/api.md, or there and never sent");
}

/// Bold words are labels of user interface elements.
#[test]
fn guide_labels_exist_in_the_interface() {
    let guide = read("docs/guide.md").replace('\n', " ");
    let mut pages: String = sources(".rs")
        .iter()
        .filter(|source| source.is_under("frontend/src/"))
        .map(|source| source.text.as_str())
        .collect();
    pages.extend(
        sources(".json").iter().filter(|source| source.is_under("examples/")).map(|source| source.text.as_str()),
    );
    let bold: Vec<&str> = guide.split("**").skip(1).step_by(2).collect();
    assert!(bold.len() > 8, "{bold:?}");
    let labels = bold.iter().flat_map(|bold| bold.split(" → "));
    let offences: Vec<_> =
        labels.filter(|label| !pages.contains(&format!("\"{label}\""))).map(ToString::to_string).collect();
    none(&offences, "docs/guide.md names what stands on no page");
}

#[test]
fn kinds_are_found_on_both_sides() {
    let program =
        "=> (\"gone\", S::GONE, \"Gone\"),\n x(\"other\", 5),\n (api::LATE, StatusCode::SERVICE_UNAVAILABLE, \"\")";
    let table = "| status | type | when |\n|---|---|---|\n| 503 | `late`, `full` | \"x\" |\n| a | `b` | |\n";
    let expected_kinds =
        |kinds: [(u16, &str); 2]| BTreeSet::from(kinds.map(|(status, kind)| (status, kind.to_owned())));
    assert_eq!(kinds(program, "pub const LATE: &str = \"late\";"), expected_kinds([(410, "gone"), (503, "late")]));
    assert_eq!(documented_kinds(table), expected_kinds([(503, "full"), (503, "late")]));
}
