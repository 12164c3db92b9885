//! Why nobody goes on: ranks that wait for each other in a circle, or for what nobody will ever send or take.

use planner::execution_plan::{PlanAction, PlanActionKind};

/// Where a rank stands and whom it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) rank: usize,
    /// Index in its list; its length where it has come to the end and waits for what is still on its way.
    pub(super) index: usize,
    /// Index of the launch whose other end is missing.
    pub(super) launch: usize,
    pub(super) peer: usize,
}

/// Why nobody goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standstill {
    /// Each waits for the next one, the last for the first.
    Circle(Vec<Waiting>),
    /// The other end of a transfer is in nobody's list.
    Lost(Waiting),
    /// No rank waits for another one: something outside the plan holds them up.
    Unknown,
}

/// Finds out why nobody goes on, from the lists and where each rank is in its own.
pub(super) fn explain(lists: &[Vec<PlanAction>], at: &[usize]) -> Standstill {
    let stuck = (0..lists.len()).filter_map(|rank| waiting(lists, at, rank));
    for first in stuck {
        let mut path = vec![first];
        loop {
            let last = path[path.len() - 1];
            if !will_launch(lists, &last) {
                return Standstill::Lost(last);
            }
            if let Some(start) = path.iter().position(|one| one.rank == last.peer) {
                return Standstill::Circle(path.split_off(start));
            }
            match waiting(lists, at, last.peer) {
                Some(next) => path.push(next),
                None => break,
            }
        }
    }
    Standstill::Unknown
}

/// The channel of a launch as sender and receiver.
fn channel(rank: usize, action: &PlanAction) -> Option<(usize, usize)> {
    let peer = action.transfer?.peer as usize;
    match action.action {
        PlanActionKind::Isend => Some((rank, peer)),
        PlanActionKind::Irecv => Some((peer, rank)),
        _ => None,
    }
}

/// Indices of a rank's launches on a channel.
fn launches(lists: &[Vec<PlanAction>], rank: usize, on: (usize, usize)) -> impl Iterator<Item = usize> + use<'_> {
    let list = lists.get(rank).map_or(&[][..], Vec::as_slice);
    list.iter().enumerate().filter(move |(_, action)| channel(rank, action) == Some(on)).map(|(index, _)| index)
}

/// The index of the other end of a launch in the peer's list.
fn other_end(lists: &[Vec<PlanAction>], rank: usize, launch: usize) -> Option<usize> {
    let on = channel(rank, &lists[rank][launch])?;
    let place = launches(lists, rank, on).position(|index| index == launch)?;
    launches(lists, if on.0 == rank { on.1 } else { on.0 }, on).nth(place)
}

fn will_launch(lists: &[Vec<PlanAction>], waiting: &Waiting) -> bool {
    other_end(lists, waiting.rank, waiting.launch).is_some()
}

/// Whom a rank waits for.
fn waiting(lists: &[Vec<PlanAction>], at: &[usize], rank: usize) -> Option<Waiting> {
    let (list, index) = (&lists[rank], at[rank]);
    let batch = match list.get(index) {
        None => None,
        Some(action) if action.action.computes() || action.action.launches() => return None,
        Some(action) => Some(action.transfer?.batch),
    };
    let mut own = list.iter().enumerate().take(index).filter(|(_, action)| {
        let asked = action.transfer.filter(|_| action.action.launches());
        asked.is_some_and(|transfer| batch.is_none_or(|batch| transfer.batch == batch))
    });
    own.find_map(|(launch, action)| {
        let peer = action.transfer?.peer as usize;
        let launched = other_end(lists, rank, launch).is_some_and(|other| at.get(peer).is_some_and(|&at| other < at));
        (!launched).then_some(Waiting { rank, index, launch, peer })
    })
}

/// An action in words, as faults name it.
pub(super) fn words(index: usize, action: &PlanAction) -> String {
    let (name, stage, microbatch) = (action.action.name(), action.stage, action.microbatch);
    let transfer = action.transfer.map(|transfer| {
        let way =
            if matches!(action.action, PlanActionKind::Isend | PlanActionKind::WaitIsend) { "to" } else { "from" };
        format!(", {} {way} rank {}, tag {}", transfer.payload.name(), transfer.peer, transfer.tag)
    });
    format!("action {index} ({name} of stage {stage}, microbatch {microbatch}{})", transfer.unwrap_or_default())
}

impl Standstill {
    /// It in words, with the lists that it is of.
    pub(super) fn describe(&self, lists: &[Vec<PlanAction>]) -> String {
        let place = |waiting: &Waiting| match lists[waiting.rank].get(waiting.index) {
            Some(action) => words(waiting.index, action),
            None => "the end of its list".to_owned(),
        };
        let launch = |waiting: &Waiting| words(waiting.launch, &lists[waiting.rank][waiting.launch]);
        match self {
            Self::Circle(circle) => {
                let waits: Vec<String> = circle
                    .iter()
                    .map(|one| {
                        let (rank, peer) = (one.rank, one.peer);
                        format!("  rank {rank}, at {}, waits for rank {peer} to meet its {}", place(one), launch(one))
                    })
                    .collect();
                format!("deadlock, ranks wait for each other in a circle:\n{}", waits.join("\n"))
            }
            Self::Lost(one) => format!(
                "a message is lost: rank {}, at {}, waits for ever for rank {} to meet its {}, which is not in the list of \
                 rank {}",
                one.rank,
                place(one),
                one.peer,
                launch(one),
                one.peer
            ),
            Self::Unknown => "no rank goes on, although none waits for another one".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use planner::execution_plan::{Payload, Transfer};

    use super::*;
    use PlanActionKind::{ForwardStage, Irecv, Isend, WaitIrecv, WaitIsend};

    fn travel(action: PlanActionKind, peer: u32, batch: u32) -> PlanAction {
        let transfer = Transfer {
            payload: Payload::Activation,
            peer,
            peer_stage: 0,
            peer_microbatch: 0,
            tag: 0,
            batch,
            bytes: None,
        };
        PlanAction {
            start_ns: 0,
            duration_ns: None,
            action,
            stage: 0,
            microbatch: 0,
            with_next: false,
            transfer: Some(transfer),
        }
    }

    fn compute() -> PlanAction {
        PlanAction { transfer: None, ..travel(ForwardStage, 0, 0) }
    }

    /// Both ranks wait for their sends before they launch their receives.
    #[test]
    fn sends_that_wait_for_each_other_are_a_circle() {
        let list = |peer| {
            vec![travel(Isend, peer, 0), travel(WaitIsend, peer, 0), travel(Irecv, peer, 1), travel(WaitIrecv, peer, 1)]
        };
        let lists = [list(1), list(0)];
        let [first, second] = [(0, 1), (1, 0)].map(|(rank, peer)| Waiting { rank, index: 1, launch: 0, peer });
        assert_eq!(explain(&lists, &[1, 1]), Standstill::Circle(vec![first, second]));
        let told = Standstill::Circle(vec![first, second]).describe(&lists);
        assert!(told.contains("rank 1, at action 1 (wait_isend of stage 0"), "{told}");
    }

    /// Rank 1 waits for a second message, but rank 0 sends one.
    #[test]
    fn what_nobody_sends_is_lost() {
        let lists = [
            vec![compute(), travel(Isend, 1, 0), travel(WaitIsend, 1, 0)],
            vec![travel(Irecv, 0, 0), travel(Irecv, 0, 1), travel(WaitIrecv, 0, 0), travel(WaitIrecv, 0, 1), compute()],
        ];
        let lost = Waiting { rank: 1, index: 3, launch: 1, peer: 0 };
        assert_eq!(explain(&lists, &[3, 3]), Standstill::Lost(lost));
        // Rank 0 still computes: nobody waits for ever.
        assert_eq!(explain(&lists, &[0, 2]), Standstill::Unknown);
        assert!(Standstill::Lost(lost).describe(&lists).contains("not in the list of rank 0"));
    }

    /// A receive that is launched late holds up a sender that has come to its end; it is not lost.
    #[test]
    fn who_waits_for_a_rank_that_computes_is_not_stuck() {
        let lists = [vec![travel(Isend, 1, 0)], vec![compute(), travel(Irecv, 0, 0), travel(WaitIrecv, 0, 0)]];
        assert_eq!(explain(&lists, &[1, 0]), Standstill::Unknown);
    }
}
