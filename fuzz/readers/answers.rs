//! Data decoded in the browser: timelines, overviews, what-if responses, trace views.

use api::timeline::{self, overview};
use api::trace;
use api::what_if;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    if let Ok(read) = timeline::decode(bytes) {
        let written = timeline::encode(&read);
        assert_eq!(timeline::decode(&written).map(|again| timeline::encode(&again)), Ok(written));
    }
    drop(overview::decode(bytes));
    drop(what_if::decode(bytes).map(|answer| answer.outcome.read()));
    drop(trace::decode(bytes));
}
