//! Changes that requests cause, derived from the route. The audit log and the permission check use
//! them.

use axum::http::header::LOCATION;
use axum::http::{Method, Uri};
use axum::response::Response;

/// Requests with a writing method that compute a response and store no data.
const QUESTIONS: [(Method, &str); 9] = [
    (Method::POST, "/api/v1/job-configs"),
    (Method::POST, "/api/v1/checks"),
    (Method::POST, "/api/v1/checks/changes"),
    (Method::POST, "/api/v1/checks/slowness"),
    (Method::POST, "/api/v1/checks/log"),
    (Method::POST, "/api/v1/what-if"),
    (Method::POST, "/api/v1/schedules"),
    (Method::POST, "/api/v1/scenarios/identity"),
    (Method::POST, "/api/v1/datasets/footers"),
];

/// Name in the audit log for an unknown actor.
pub(crate) const NOBODY: &str = "(nobody)";
/// Name in the audit log for changes on the command line.
pub(crate) const COMMAND_LINE: &str = "(command line)";

/// Identifier of the created object if the response has no `Location` header.
#[derive(Debug, Clone)]
pub(crate) struct CreatedId(pub(crate) String);

/// A change by a request or a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// HTTP method.
    pub(crate) method: String,
    /// Action: the last literal segment of the route, or a verb derived from the method.
    pub(crate) action: String,
    /// Kind of object, for example `run`.
    pub(crate) kind: String,
    /// Identifier of the object, if the path contains it.
    pub(crate) object: String,
}

impl Change {
    /// Creates a change to a session.
    pub(crate) fn for_session(action: &str, object: String) -> Self {
        Self { method: "POST".to_owned(), action: action.to_owned(), kind: "session".to_owned(), object }
    }

    /// Creates a change by a command.
    pub(crate) fn for_command(action: &str, kind: &str, object: String) -> Self {
        Self { method: "POST".to_owned(), action: action.to_owned(), kind: kind.to_owned(), object }
    }

    /// Returns true if any role may make this change. This is the case for ending a session.
    pub(super) fn is_session_end(&self) -> bool {
        self.kind == "session" && self.action == "delete"
    }

    /// Returns the change that a request makes, or `None` for read-only requests. `route` is the
    /// path pattern in the router.
    pub(crate) fn from_request(method: &Method, uri: &Uri, route: &str) -> Option<Self> {
        let is_query = QUESTIONS.iter().any(|(asks, path)| asks == method && *path == route);
        if is_query || matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let known: Vec<&str> = route.strip_prefix(api::path::ROOT)?.trim_start_matches('/').split('/').collect();
        let segments: Vec<&str> =
            uri.path().strip_prefix(api::path::ROOT)?.trim_start_matches('/').split('/').collect();
        let kind = known.first()?.trim_end_matches('s');
        let index = known.iter().position(|part| part.starts_with('{'));
        let object = index.and_then(|position| segments.get(position)).map(|object| (*object).to_owned());
        let last = known.iter().skip(1).rfind(|part| !part.starts_with('{'));
        let action = last.copied().unwrap_or(match *method {
            Method::POST | Method::PUT => "create",
            Method::PATCH => "change",
            Method::DELETE => "delete",
            _ => "other",
        });
        Some(Self {
            method: method.as_str().to_owned(),
            action: action.to_owned(),
            kind: kind.to_owned(),
            object: object.unwrap_or_default(),
        })
    }

    /// Returns the change with the identifier of the created object, or `None` if the request
    /// failed or is not recorded.
    ///
    /// Log uploads are not recorded: the sender has the run token, and uploads arrive several times
    /// per second.
    pub(crate) fn completed(mut self, response: &Response) -> Option<Self> {
        // A file for a preview is in memory only.
        let is_preview = self.kind == "dataset" && response.status().as_u16() == 202;
        if !response.status().is_success() || is_preview || (self.kind == "run" && self.action == "log") {
            return None;
        }
        if let Some(CreatedId(id)) = response.extensions().get::<CreatedId>() {
            id.clone_into(&mut self.object);
        }
        let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
        if let Some(id) = location.and_then(|location| location.rsplit('/').next()).filter(|_| self.object.is_empty()) {
            self.object = id.to_owned();
        }
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(method: &str, path: &str, route: &str) -> Option<[String; 3]> {
        let (method, uri) = (method.parse().unwrap(), path.parse().unwrap());
        Change::from_request(&method, &uri, route).map(|change| [change.kind, change.action, change.object])
    }

    #[test]
    fn route_determines_the_change() {
        for (method, path, route, expected) in [
            ("PUT", "/api/v1/scenarios", "/api/v1/scenarios", Some(["scenario", "create", ""])),
            ("PATCH", "/api/v1/runs/r1", "/api/v1/runs/{run}", Some(["run", "change", "r1"])),
            ("DELETE", "/api/v1/tokens/ada", "/api/v1/tokens/{name}", Some(["token", "delete", "ada"])),
            ("POST", "/api/v1/runs/r1/finish", "/api/v1/runs/{run}/finish", Some(["run", "finish", "r1"])),
            ("POST", "/api/v1/runs/import", "/api/v1/runs/import", Some(["run", "import", ""])),
            (
                "POST",
                "/api/v1/sweeps/s1/points/7/scenario",
                "/api/v1/sweeps/{id}/points/{point}/scenario",
                Some(["sweep", "scenario", "s1"]),
            ),
            ("POST", "/api/v1/what-if", "/api/v1/what-if", None),
            ("DELETE", "/api/v1/session", "/api/v1/session", Some(["session", "delete", ""])),
            ("POST", "/api/v1/tokenizers", "/api/v1/tokenizers", Some(["tokenizer", "create", ""])),
            ("GET", "/api/v1/runs/r1", "/api/v1/runs/{run}", None),
        ] {
            let expected = expected.map(|parts| parts.map(str::to_owned));
            assert_eq!(change(method, path, route), expected, "{method} {path}");
        }
    }

    /// Each operation in the API that is not read-only leaves a record with kind and action.
    #[test]
    fn every_operation_that_changes_something_is_recorded() {
        // Log uploads arrive several times per second. A merged preview exists in memory only.
        const UNRECORDED: [(&str, &str); 3] = [
            ("PUT", "/api/v1/runs/{run}/log"),
            ("PATCH", "/api/v1/runs/{run}/log"),
            ("POST", "/api/v1/datasets/previews/merge"),
        ];
        let document = crate::router::document();
        let (mut questions, mut recorded) = (0, 0);
        for (route, item) in &document.paths.paths {
            let methods = [("PUT", &item.put), ("POST", &item.post), ("PATCH", &item.patch), ("DELETE", &item.delete)];
            for (method, operation) in methods {
                let Some(operation) = operation else { continue };
                let path = route.replace(['{', '}'], "");
                let Some(change) = Change::from_request(&method.parse().unwrap(), &path.parse().unwrap(), route) else {
                    questions += 1;
                    continue;
                };
                // Status code for success in the OpenAPI document.
                let status = operation.responses.responses.keys().find(|status| status.starts_with('2')).unwrap();
                let response = axum::http::Response::builder().status(status.parse::<u16>().unwrap());
                let completed = change.completed(&response.body(axum::body::Body::empty()).unwrap());
                assert_eq!(completed.is_none(), UNRECORDED.contains(&(method, route.as_str())), "{method} {route}");
                let Some(change_record) = completed else { continue };
                recorded += 1;
                assert!(!change_record.kind.is_empty() && !change_record.action.is_empty(), "{method} {route}");
                assert_eq!(!change_record.object.is_empty(), route.contains('{'), "{method} {route}");
            }
        }
        assert_eq!(questions, QUESTIONS.len(), "a question names a route that is not there");
        assert!(recorded >= 40, "{recorded}");
    }
}
