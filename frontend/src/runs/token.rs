//! Tokens of runs created in this tab. The server stores a hash; the tab stores the token until it
//! closes.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static TOKENS: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// Stores the token until the tab closes.
pub(crate) fn store_token(run: &str, token: &str) {
    TOKENS.with_borrow_mut(|tokens| tokens.insert(run.to_owned(), token.to_owned()));
}

/// Returns the token if this tab created the run.
pub(crate) fn stored_token(run: &str) -> Option<String> {
    TOKENS.with_borrow(|tokens| tokens.get(run).cloned())
}
