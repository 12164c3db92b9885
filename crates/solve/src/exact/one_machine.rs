//! Single-machine bounds: precedence and earliest end on one rank.
//!
//! An action has a head (earliest start), a time, and a tail (minimum time from the action's end to
//! the iteration end). The preemptive relaxation has a direct solution (Jackson, 1955; Carlier,
//! 1982): its end is the maximum `min head + total time + min tail` over all action sets. Edge
//! finding (Carlier and Pinson, 1989; in the quadratic form by Nuijten, 1994) uses the same sums to
//! prove that an action must follow a set.

/// Time window for an action on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    /// Earliest start.
    pub head: u64,
    /// Duration.
    pub time: u64,
    /// Latest end.
    pub due: u64,
}

/// Raises heads for actions that must follow other actions. Returns `false` if no order meets all
/// due times.
///
/// `by_head` and `by_due` are scratch buffers.
pub(super) fn raise_heads(windows: &mut [Window], by_head: &mut Vec<usize>, by_due: &mut Vec<usize>) -> bool {
    sort(by_head, windows, |window| window.head);
    sort(by_due, windows, |window| window.due);
    let mut raised: Vec<u64> = windows.iter().map(|window| window.head).collect();
    let mut ends = vec![0; windows.len()];
    for &limit in by_due.iter() {
        let due = windows[limit].due;
        // Accumulates total work and earliest end for actions due by `due`, in descending head
        // order.
        let (mut work, mut end) = (0, 0);
        for (position, &at) in by_head.iter().enumerate().rev() {
            let job = windows[at];
            if job.due <= due {
                work += job.time;
                end = end.max(job.head + work);
                if end > due {
                    return false;
                }
            }
            ends[position] = end;
        }
        let mut earlier = 0;
        for (index, &at) in by_head.iter().enumerate() {
            let task = windows[at];
            if task.due <= due {
                earlier = earlier.max(task.head + work);
                work -= task.time;
                continue;
            }
            if task.head + work + task.time > due && work > 0 {
                raised[at] = raised[at].max(ends[index]);
            }
            if earlier + task.time > due && earlier > 0 {
                raised[at] = raised[at].max(end);
            }
        }
    }
    for (window, head) in windows.iter_mut().zip(raised) {
        window.head = head;
    }
    windows.iter().all(|window| window.head + window.time <= window.due)
}

/// Returns the preemptive minimum end for actions given as (head, time, tail).
pub(super) fn interruptible_end(actions: &mut [(u64, u64, u64)]) -> u64 {
    actions.sort_unstable_by_key(|&(head, ..)| std::cmp::Reverse(head));
    let set_end = |&(.., min_tail): &(u64, u64, u64)| {
        let mut work = 0;
        let ends = actions.iter().filter(|&&(.., tail)| tail >= min_tail).map(|&(head, time, _)| {
            work += time;
            head + work + min_tail
        });
        ends.max().unwrap_or(0)
    };
    actions.iter().map(set_end).max().unwrap_or(0)
}

fn sort(order: &mut Vec<usize>, windows: &[Window], key: fn(&Window) -> u64) {
    order.clear();
    order.extend(0..windows.len());
    order.sort_unstable_by_key(|&at| (key(&windows[at]), at));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(head: u64, time: u64, due: u64) -> Window {
        Window { head, time, due }
    }

    /// Two actions (time 3, due 8) occupy 2 to 8. The third action (time 2, due 20) cannot run
    /// before either, so it starts at 8.
    #[test]
    fn actions_that_cannot_precede_a_set_follow_it() {
        let mut windows = [window(2, 3, 8), window(2, 3, 8), window(1, 2, 20)];
        assert!(raise_heads(&mut windows, &mut Vec::new(), &mut Vec::new()));
        assert_eq!(windows[2].head, 8);
        let mut over = [window(2, 3, 7), window(2, 3, 7)];
        assert!(!raise_heads(&mut over, &mut Vec::new(), &mut Vec::new()));
    }

    /// The long action runs from 0 to 4, preempted at 1 by the action that has the long tail. The
    /// end is 1 + 2 + 10.
    #[test]
    fn preemptive_end_equals_the_worst_set() {
        assert_eq!(interruptible_end(&mut [(0, 4, 0), (1, 2, 10)]), 13);
        assert_eq!(interruptible_end(&mut [(0, 4, 9), (1, 2, 10)]), 15);
        assert_eq!(interruptible_end(&mut []), 0);
    }

    /// Enumerates all orders that meet all due times. Returns the starts.
    fn schedules(windows: &[Window]) -> Vec<Vec<u64>> {
        fn go(windows: &[Window], done: &mut Vec<(usize, u64)>, free: u64, found: &mut Vec<Vec<u64>>) {
            if done.len() == windows.len() {
                let mut starts = vec![0; windows.len()];
                for &(at, start) in done.iter() {
                    starts[at] = start;
                }
                found.push(starts);
                return;
            }
            for at in 0..windows.len() {
                let start = free.max(windows[at].head);
                if done.iter().all(|&(other, _)| other != at) && start + windows[at].time <= windows[at].due {
                    done.push((at, start));
                    go(windows, done, start + windows[at].time, found);
                    done.pop();
                }
            }
        }
        let mut found = Vec::new();
        go(windows, &mut Vec::new(), 0, &mut found);
        found
    }

    proptest! {
        #[test]
        fn no_order_in_time_starts_an_action_before_its_raised_head(
            drawn in prop::collection::vec((0_u64..12, 0_u64..6, 0_u64..14), 1..6)
        ) {
            let windows: Vec<Window> = drawn.iter().map(|&(head, time, slack)| window(head, time, head + time + slack)).collect();
            let mut raised = windows.clone();
            let possible = raise_heads(&mut raised, &mut Vec::new(), &mut Vec::new());
            let all = schedules(&windows);
            prop_assert!(possible || all.is_empty());
            for starts in &all {
                for (start, window) in starts.iter().zip(&raised) {
                    prop_assert!(*start >= window.head, "{windows:?} {raised:?} {starts:?}");
                }
            }
        }
    }
}
