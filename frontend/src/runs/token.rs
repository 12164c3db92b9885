//! Tokens of runs that were opened here: the server keeps a hash, this tab the token while it is open.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static TOKENS: RefCell<BTreeMap<String, String>> = const { RefCell::new(BTreeMap::new()) };
}

/// Keeps the token of a run as long as the page is not left.
pub(crate) fn keep_token(run: &str, token: &str) {
    TOKENS.with_borrow_mut(|tokens| tokens.insert(run.to_owned(), token.to_owned()));
}

/// The token of a run, where it was opened here.
pub(crate) fn token_of(run: &str) -> Option<String> {
    TOKENS.with_borrow(|tokens| tokens.get(run).cloned())
}
