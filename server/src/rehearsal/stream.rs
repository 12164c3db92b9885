//! The sending stream of a rank: one action's results at a time, of those that are ready the one launched first.

use planner::execution_plan::Payload;

/// A transfer whose two ends are launched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ready {
    /// Place among the rank's launches of sends.
    pub(super) order: usize,
    /// When the later of its ends was launched, in ns.
    pub(super) since_ns: u64,
    /// The result that it is part of: payload, stage and microbatch.
    pub(super) result: (Payload, u32, u32),
    /// How long it alone takes, in ns.
    pub(super) share_ns: u64,
}

/// What the stream does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sending {
    /// Indices into what was ready.
    pub(super) members: Vec<usize>,
    pub(super) begin_ns: u64,
    /// When the members are there, and the stream is free again.
    pub(super) due_ns: u64,
}

/// What a stream that is free from `free_ns` on sends next, and from when to when: of what is ready then the launched
/// first, together with the parts of the same result that are ready, too. What takes no time does not wait for the
/// stream.
pub(super) fn next(free_ns: u64, ready: &[Ready]) -> Option<Sending> {
    if let Some(index) = ready.iter().position(|one| one.share_ns == 0) {
        let begin_ns = ready[index].since_ns;
        return Some(Sending { members: vec![index], begin_ns, due_ns: begin_ns });
    }
    let begin_ns = ready.iter().map(|one| one.since_ns).min()?.max(free_ns);
    let there = |one: &&Ready| one.since_ns <= begin_ns;
    let first = ready.iter().filter(there).min_by_key(|one| one.order)?;
    let members: Vec<usize> =
        (0..ready.len()).filter(|&index| there(&&ready[index]) && ready[index].result == first.result).collect();
    let lasts: u64 = members.iter().map(|&index| ready[index].share_ns).sum();
    Some(Sending { members, begin_ns, due_ns: begin_ns.saturating_add(lasts) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(order: usize, since_ns: u64, microbatch: u32, share_ns: u64) -> Ready {
        Ready { order, since_ns, result: (Payload::Activation, 0, microbatch), share_ns }
    }

    #[test]
    fn the_launched_first_goes_first_of_what_is_there() {
        assert_eq!(next(0, &[]), None);
        // The stream is free at 10; at 10 all of them are ready, and 1 was launched before 2 and 3.
        let waiting = [ready(3, 4, 3, 5), ready(1, 9, 1, 5), ready(2, 6, 2, 5)];
        assert_eq!(next(10, &waiting), Some(Sending { members: vec![1], begin_ns: 10, due_ns: 15 }));
        // A stream that is free before takes what is ready first, at 4, although another one was launched before it.
        assert_eq!(next(0, &waiting), Some(Sending { members: vec![0], begin_ns: 4, due_ns: 9 }));
    }

    #[test]
    fn parts_of_a_result_go_together() {
        let parts = [ready(0, 2, 7, 4), ready(1, 3, 8, 4), ready(2, 3, 7, 4), ready(3, 6, 7, 4)];
        // Free at 3: parts 0 and 2 of microbatch 7 take 4 each; part 3 is ready later.
        assert_eq!(next(3, &parts), Some(Sending { members: vec![0, 2], begin_ns: 3, due_ns: 11 }));
    }

    #[test]
    fn what_takes_no_time_waits_for_nobody() {
        let waiting = [ready(0, 2, 7, 4), ready(1, 3, 8, 0)];
        assert_eq!(next(100, &waiting), Some(Sending { members: vec![1], begin_ns: 3, due_ns: 3 }));
    }
}
