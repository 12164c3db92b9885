//! Server limits that apply to all requests.

use std::time::Duration;

use axum::http::StatusCode;

/// A server limit that a request exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// The body paused for longer than this limit.
    #[error("no byte of the body came for {} s; send it again", .0.as_secs())]
    BodySilent(Duration),
    /// The body is slower than this rate in bytes per second.
    #[error("the body came more slowly than {} KiB/s; send it again over a faster connection", .0 >> 10)]
    BodySlow(u64),
    /// The memory budget for bodies is exhausted.
    #[error("bodies of other requests take all the memory that the server has for them; try again in a few seconds")]
    BodiesFull,
    /// The body exceeds the memory budget, in MiB.
    #[error(
        "the body is larger than the {0} MiB that the server holds of such bodies; its operator can raise --bodies"
    )]
    BodyOverBudget(u64),
    /// All connections are in use.
    #[error("all connections of the server are taken; try again in a few seconds")]
    ConnectionsFull,
    /// The address has too many concurrent requests.
    #[error("your address has {0} requests under way already; try again in a few seconds")]
    AddressRequests(u32),
    /// The client has too many open streams.
    #[error("you have {0} streams of events open already; close some of them, or ask for pages of points instead")]
    ClientStreams(usize),
}

impl LimitError {
    /// Problem type, status and title.
    pub(super) fn kind(self) -> (&'static str, StatusCode, &'static str) {
        use StatusCode as S;
        match self {
            Self::BodySilent(_) | Self::BodySlow(_) => {
                ("body-timeout", S::REQUEST_TIMEOUT, "The body did not arrive in time")
            }
            Self::BodiesFull => ("bodies-full", S::SERVICE_UNAVAILABLE, "Bodies of requests take all room"),
            Self::BodyOverBudget(_) => ("too-large", S::PAYLOAD_TOO_LARGE, "The upload is too large"),
            Self::ConnectionsFull => ("connections-full", S::SERVICE_UNAVAILABLE, "All connections are taken"),
            Self::AddressRequests(_) => {
                ("address-full", S::TOO_MANY_REQUESTS, "One address has too many requests under way")
            }
            Self::ClientStreams(_) => ("client-streams-full", S::TOO_MANY_REQUESTS, "One client has too many streams"),
        }
    }
}
