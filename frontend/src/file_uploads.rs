//! Cancellable file uploads.

use leptos::prelude::*;
use serde::de::DeserializeOwned;

use crate::client::{self, Abort, Body, RequestError};

/// Active uploads of a drop area.
#[derive(Clone, Copy)]
pub(crate) struct FileUploads {
    /// Active uploads by number.
    active: StoredValue<Vec<(u64, Option<Abort>)>, LocalStorage>,
    count: RwSignal<usize>,
    sent: StoredValue<u64>,
}

impl FileUploads {
    pub(crate) fn new() -> Self {
        Self { active: StoredValue::new_local(Vec::new()), count: RwSignal::new(0), sent: StoredValue::new(0) }
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
        self.active.try_update_value(|all| all.push((number, abort)))?;
        self.update_count();
        let response = client::send_until::<T>("POST", url, Body::File(file), signal).await;
        let waits = self.active.try_update_value(|all| {
            let before = all.len();
            all.retain(|(other, _)| *other != number);
            all.len() < before
        })?;
        self.update_count();
        waits.then_some(response)
    }

    /// Cancels all uploads. Their responses are discarded, and the server stops reading.
    pub(crate) fn cancel_all(self) {
        let all = self.active.try_update_value(std::mem::take).unwrap_or_default();
        for (_, abort) in all {
            if let Some(abort) = abort {
                abort.abort();
            }
        }
        self.update_count();
    }

    fn update_count(self) {
        let count = self.active.try_with_value(Vec::len).unwrap_or(0);
        self.count.try_set(count);
    }
}
