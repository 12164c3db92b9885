//! Cancellable file uploads.

use leptos::prelude::*;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, Body, RequestError};

/// Active uploads of a drop area.
#[derive(Clone, Copy)]
pub(crate) struct Sending {
    /// Active uploads by number.
    under_way: StoredValue<Vec<(u64, Option<Abort>)>, LocalStorage>,
    count: RwSignal<usize>,
    sent: StoredValue<u64>,
}

impl Sending {
    pub(crate) fn new() -> Self {
        Self { under_way: StoredValue::new_local(Vec::new()), count: RwSignal::new(0), sent: StoredValue::new(0) }
    }

    /// Returns the number of active uploads.
    pub(crate) fn count(self) -> usize {
        self.count.get()
    }

    /// Uploads a file and returns the response. Returns `None` if the upload was cancelled or the
    /// user left the page.
    pub(crate) async fn send<T: DeserializeOwned>(
        self,
        url: &str,
        file: web_sys::File,
    ) -> Option<Result<T, RequestError>> {
        let number = self.sent.try_update_value(|sent| {
            *sent += 1;
            *sent
        })?;
        let abort = Abort::new();
        let signal = abort.as_ref().map(Abort::signal);
        self.under_way.try_update_value(|all| all.push((number, abort)))?;
        self.tell();
        let response = client::send_until::<T>("POST", url, Body::File(file), signal).await;
        let waits = self.under_way.try_update_value(|all| {
            let before = all.len();
            all.retain(|(other, _)| *other != number);
            all.len() < before
        })?;
        self.tell();
        waits.then_some(response)
    }

    /// Cancels all uploads. Their responses are discarded, and the server stops reading.
    pub(crate) fn call_back(self) {
        let all = self.under_way.try_update_value(std::mem::take).unwrap_or_default();
        for (_, abort) in all {
            if let Some(abort) = abort {
                abort.abort();
            }
        }
        self.tell();
    }

    fn tell(self) {
        let count = self.under_way.try_with_value(Vec::len).unwrap_or(0);
        self.count.try_set(count);
    }
}
