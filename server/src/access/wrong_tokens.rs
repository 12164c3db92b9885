//! Rate limit for invalid tokens. The response delay per address doubles with each invalid token.
//! The log contains a summary once per minute.

use crate::client::network;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Limits for invalid tokens.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrongTokenLimits {
    /// Delay for the first response. It doubles with each further invalid token.
    pub(super) first: Duration,
    /// Maximum delay.
    pub(super) max_delay: Duration,
    /// Maximum number of concurrently delayed responses per address.
    pub(super) waiting_per_address: usize,
    /// Maximum number of concurrently delayed responses for all addresses.
    pub(super) waiting: usize,
    /// Time without an invalid token after which an address starts from zero.
    pub(super) forgotten: Duration,
    /// Maximum number of addresses in memory.
    pub(super) addresses: usize,
    /// Interval between two warnings in the log.
    pub(super) warned_every: Duration,
    /// Maximum number of addresses in the audit log per interval.
    pub(super) recorded: usize,
}

impl Default for WrongTokenLimits {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(20),
            max_delay: Duration::from_secs(1),
            waiting_per_address: 8,
            waiting: 256,
            forgotten: Duration::from_mins(10),
            addresses: 4096,
            warned_every: Duration::from_mins(1),
            recorded: 10,
        }
    }
}

/// Counters for recent invalid tokens.
#[derive(Debug)]
pub(super) struct WrongTokens {
    limits: WrongTokenLimits,
    late: Arc<Mutex<Late>>,
}

#[derive(Debug, Default)]
struct Late {
    senders: BTreeMap<IpAddr, Sender>,
    /// Number of delayed responses.
    waiting: usize,
    untold: UnreportedTokens,
}

#[derive(Debug)]
struct Sender {
    tokens: u32,
    last: Instant,
    waiting: usize,
}

/// Wrong tokens since the last warning in the log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct UnreportedTokens {
    tokens: u64,
    /// Tokens rejected unseen.
    rejected: u64,
    senders: BTreeMap<IpAddr, u64>,
}

impl WrongTokens {
    pub(super) fn new(limits: WrongTokenLimits) -> Self {
        Self { limits, late: Arc::default() }
    }

    /// Reserves a slot for one token lookup; the slot is released on drop. Returns `None` if an
    /// address with invalid tokens has reached the limit, so concurrent requests give an attacker
    /// no advantage.
    pub(super) fn look(&self, sender: IpAddr) -> Option<Looking> {
        let sender = network(sender);
        let mut late = locked(&self.late);
        let all = late.waiting;
        let Some(known) = late.senders.get_mut(&sender) else {
            return Some(Looking { late: Arc::clone(&self.late), sender: None });
        };
        if known.waiting >= self.limits.waiting_per_address || all >= self.limits.waiting {
            return None;
        }
        known.waiting += 1;
        late.waiting += 1;
        Some(Looking { late: Arc::clone(&self.late), sender: Some(sender) })
    }

    /// Returns true if an invalid token is to be recorded. The audit log contains only the first
    /// invalid token per address and minute, from a limited number of addresses, so an attacker
    /// cannot fill the log.
    pub(super) fn is_to_be_recorded(&self, sender: IpAddr) -> bool {
        let reported = &locked(&self.late).untold.senders;
        reported.len() < self.limits.recorded && !reported.contains_key(&network(sender))
    }

    /// Counts a token rejected unseen.
    pub(super) fn note_refusal(&self) {
        let is_first = {
            let mut late = locked(&self.late);
            late.untold.rejected += 1;
            late.untold.is_first()
        };
        if is_first {
            self.warn_later();
        }
    }

    fn warn_later(&self) {
        let (late, every) = (Arc::clone(&self.late), self.limits.warned_every);
        tokio::spawn(async move {
            tokio::time::sleep(every).await;
            warn(&late);
        });
    }

    /// Counts an invalid token and delays the response. The slot remains in use until the delay is
    /// over, even if the client disconnects.
    pub(super) async fn note(&self, sender: IpAddr) {
        let sender = network(sender);
        let (delay, is_first) = {
            let mut late = locked(&self.late);
            late.untold.count(sender, self.limits.addresses);
            (late.enter(sender, &self.limits), late.untold.is_first())
        };
        if is_first {
            self.warn_later();
        }
        let Some(delay) = delay else { return };
        let late = Arc::clone(&self.late);
        let waiting = tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            locked(&late).leave(sender);
        });
        // The task cannot panic.
        drop(waiting.await);
    }
}

/// Slot for one token lookup.
#[derive(Debug)]
pub(super) struct Looking {
    late: Arc<Mutex<Late>>,
    /// Sender address, if it has sent invalid tokens recently.
    sender: Option<IpAddr>,
}

impl Drop for Looking {
    fn drop(&mut self) {
        if let Some(sender) = self.sender {
            locked(&self.late).leave(sender);
        }
    }
}

impl Drop for WrongTokens {
    /// Writes the last summary when the server stops.
    fn drop(&mut self) {
        warn(&self.late);
    }
}

fn warn(late: &Mutex<Late>) {
    let untold = std::mem::take(&mut locked(late).untold);
    if untold.tokens > 0 || untold.rejected > 0 {
        tracing::warn!("{untold}");
    }
}

fn locked(late: &Mutex<Late>) -> MutexGuard<'_, Late> {
    // A panic cannot leave the state inconsistent: each update is a single step.
    late.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Late {
    /// Returns the delay for an invalid token, or `None` if the limits for delayed responses are
    /// reached.
    fn enter(&mut self, sender: IpAddr, limits: &WrongTokenLimits) -> Option<Duration> {
        let now = Instant::now();
        self.forget(sender, now, limits);
        let known = self.senders.entry(sender).or_insert(Sender { tokens: 0, last: now, waiting: 0 });
        known.tokens = known.tokens.saturating_add(1);
        known.last = now;
        if self.waiting >= limits.waiting || known.waiting >= limits.waiting_per_address {
            return None;
        }
        known.waiting += 1;
        self.waiting += 1;
        let doubled = 1_u32.checked_shl(known.tokens - 1).and_then(|times| limits.first.checked_mul(times));
        Some(doubled.map_or(limits.max_delay, |delay| delay.min(limits.max_delay)))
    }

    fn leave(&mut self, sender: IpAddr) {
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(known) = self.senders.get_mut(&sender) {
            known.waiting = known.waiting.saturating_sub(1);
        }
    }

    /// Removes expired addresses. If the table is still full, removes the address with the oldest
    /// invalid token.
    fn forget(&mut self, sender: IpAddr, now: Instant, limits: &WrongTokenLimits) {
        let is_old = |known: &Sender| now.duration_since(known.last) >= limits.forgotten && known.waiting == 0;
        if self.senders.get(&sender).is_some_and(is_old) {
            self.senders.remove(&sender);
        }
        if self.senders.len() < limits.addresses || self.senders.contains_key(&sender) {
            return;
        }
        self.senders.retain(|_, known| !is_old(known));
        if self.senders.len() >= limits.addresses {
            let quietest = self.senders.iter().min_by_key(|(_, known)| known.last).map(|(address, _)| *address);
            if let Some(address) = quietest {
                self.senders.remove(&address);
            }
        }
    }
}

impl UnreportedTokens {
    /// Returns true for the first count since the last warning. The caller then schedules a
    /// warning.
    fn is_first(&self) -> bool {
        self.tokens + self.rejected == 1
    }

    fn count(&mut self, sender: IpAddr, limit: usize) {
        self.tokens += 1;
        if self.senders.len() < limit || self.senders.contains_key(&sender) {
            *self.senders.entry(sender).or_default() += 1;
        }
    }
}

impl fmt::Display for UnreportedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokens, rejected, senders } = self;
        let addresses = if senders.len() == 1 { "address" } else { "addresses" };
        write!(f, "wrong tokens: {tokens} from {} {addresses}", senders.len())?;
        if let Some((sender, count)) = senders.iter().max_by_key(|(_, tokens)| **tokens) {
            write!(f, ", {count} of them from {sender}")?;
        }
        write!(f, "; {rejected} further tokens were refused without a look at them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn answers_wait_longer_and_longer_up_to_a_second() {
        let limits = WrongTokenLimits { waiting_per_address: 100, ..WrongTokenLimits::default() };
        let mut late = Late::default();
        let delays: Vec<Option<Duration>> = (0..8).map(|_| late.enter(ADDRESS, &limits)).collect();
        assert_eq!(delays, [20, 40, 80, 160, 320, 640, 1000, 1000].map(|delay| Some(ms(delay))));
        assert_eq!(late.enter(OTHER, &limits), Some(ms(20)), "another address begins anew");
        for _ in 0..60 {
            assert_eq!(late.enter(ADDRESS, &limits), Some(ms(1000)), "a delay never overflows");
        }
    }

    #[test]
    fn an_address_that_was_quiet_begins_anew() {
        let limits = WrongTokenLimits { forgotten: Duration::ZERO, ..WrongTokenLimits::default() };
        let mut late = Late::default();
        for _ in 0..3 {
            assert_eq!(late.enter(ADDRESS, &limits), Some(ms(20)));
            late.leave(ADDRESS);
        }
    }

    #[test]
    fn few_answers_wait_at_once() {
        let limits = WrongTokenLimits { waiting_per_address: 2, waiting: 3, ..WrongTokenLimits::default() };
        let mut late = Late::default();
        assert!(late.enter(ADDRESS, &limits).is_some() && late.enter(ADDRESS, &limits).is_some());
        assert_eq!(late.enter(ADDRESS, &limits), None, "of one address");
        assert!(late.enter(OTHER, &limits).is_some());
        assert_eq!(late.enter(OTHER, &limits), None, "of all");
        late.leave(ADDRESS);
        assert!(late.enter(OTHER, &limits).is_some());
        assert_eq!(late.waiting, 3);
    }

    #[test]
    fn few_addresses_are_remembered() {
        let limits = WrongTokenLimits { addresses: 3, ..WrongTokenLimits::default() };
        let mut late = Late::default();
        for last in 0..9_u8 {
            late.enter([10, 0, 0, last].into(), &limits);
        }
        assert_eq!(late.senders.len(), 3);
        assert!(late.senders.contains_key(&IpAddr::from([10, 0, 0, 8])));
    }

    #[tokio::test]
    async fn a_sender_whose_answers_wait_is_full_until_they_come() {
        let limits = WrongTokenLimits { first: ms(30), waiting_per_address: 1, ..WrongTokenLimits::default() };
        let wrong = WrongTokens::new(limits);
        assert!(wrong.look(ADDRESS).is_some());
        let mut hung_up = Box::pin(wrong.note(ADDRESS));
        assert!(futures::poll!(&mut hung_up).is_pending());
        drop(hung_up);
        assert!(wrong.look(ADDRESS).is_none(), "hanging up gives no place back");
        assert!(wrong.look(OTHER).is_some());
        while wrong.look(ADDRESS).is_none() {
            tokio::time::sleep(ms(5)).await;
        }
        assert_eq!(locked(&wrong.late).waiting, 0);
        let looked_at = wrong.look(ADDRESS);
        assert!(looked_at.is_some() && wrong.look(ADDRESS).is_none(), "tokens that are looked at count");
        drop(looked_at);
        assert!(wrong.look(ADDRESS).is_some());
    }

    #[tokio::test]
    async fn log_reports_all_tokens_per_minute() {
        let limits = WrongTokenLimits { max_delay: Duration::ZERO, ..WrongTokenLimits::default() };
        let wrong = WrongTokens::new(limits);
        for sender in [ADDRESS, OTHER, ADDRESS, ADDRESS] {
            wrong.note(sender).await;
        }
        wrong.note_refusal();
        let message = locked(&wrong.late).untold.to_string();
        assert_eq!(
            message,
            "wrong tokens: 4 from 2 addresses, 3 of them from 10.0.0.1; 1 further tokens were refused without a look at them"
        );
        warn(&wrong.late);
        assert_eq!(locked(&wrong.late).untold, UnreportedTokens::default());
    }

    #[tokio::test]
    async fn audit_records_a_limited_number_per_minute() {
        let limits = WrongTokenLimits { max_delay: Duration::ZERO, recorded: 2, ..WrongTokenLimits::default() };
        let wrong = WrongTokens::new(limits);
        let third = IpAddr::from([10, 0, 0, 3]);
        for (sender, expected) in [(ADDRESS, true), (ADDRESS, false), (OTHER, true), (third, false)] {
            assert_eq!(wrong.is_to_be_recorded(sender), expected, "{sender}");
            wrong.note(sender).await;
        }
        warn(&wrong.late);
        assert!(wrong.is_to_be_recorded(ADDRESS), "a minute later");
    }

    #[test]
    fn ipv6_network_counts_as_a_single_sender() {
        let network_text = |text: &str| network(text.parse().unwrap()).to_string();
        assert_eq!(network_text("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(network_text("::ffff:10.0.0.1"), "10.0.0.1");
    }
}
