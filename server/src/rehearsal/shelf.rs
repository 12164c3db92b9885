//! What a rank has computed and received, so that it computes and sends only what it can.

use std::collections::{BTreeMap, BTreeSet};

use planner::execution_plan::{Payload, PlanAction, PlanActionKind};

/// Why a rank cannot do what its list says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ShelfError {
    #[error("it has computed that before")]
    Again,
    #[error("it has not waited for the {} from stage {stage}, microbatch {microbatch}", payload.name())]
    Unreceived { payload: Payload, stage: u32, microbatch: u32 },
    #[error("it has not computed the {} of stage {stage}, microbatch {microbatch} before", made.name())]
    Unmade { made: Made, stage: u32, microbatch: u32 },
    #[error("its list ends without the {} of stage {stage}, microbatch {microbatch}", made.name())]
    Unfinished { made: Made, stage: u32, microbatch: u32 },
}

/// What a computation makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Made {
    Output,
    InputGradient,
    WeightGradient,
}

impl Made {
    const fn name(self) -> &'static str {
        match self {
            Self::Output => "output",
            Self::InputGradient => "gradient of the input",
            Self::WeightGradient => "gradients of the weights",
        }
    }
}

/// Stage and microbatch.
type Cell = (u32, u32);

/// Of one rank in one iteration.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Receives that a computation needs, by payload and own cell, with the cells that they come from.
    needed: BTreeMap<(Payload, Cell), BTreeSet<Cell>>,
    received: BTreeSet<(Payload, Cell, Cell)>,
    made: BTreeSet<(Made, Cell)>,
    /// Cells whose forward is in the list.
    forwards: BTreeSet<Cell>,
}

impl Shelf {
    /// An empty one for a rank that will do all that.
    pub(super) fn of(list: &[PlanAction]) -> Self {
        let mut shelf = Self::default();
        for action in list {
            let cell = (action.stage, action.microbatch);
            match (action.action, action.transfer) {
                (PlanActionKind::ForwardStage, _) => drop(shelf.forwards.insert(cell)),
                (PlanActionKind::Irecv, Some(transfer)) => {
                    let from = (transfer.peer_stage, transfer.peer_microbatch);
                    shelf.needed.entry((transfer.payload, cell)).or_default().insert(from);
                }
                _ => {}
            }
        }
        shelf
    }

    /// Puts there what was waited for.
    pub(super) fn receive(&mut self, action: &PlanAction) {
        if let (PlanActionKind::WaitIrecv, Some(transfer)) = (action.action, action.transfer) {
            let from = (transfer.peer_stage, transfer.peer_microbatch);
            self.received.insert((transfer.payload, (action.stage, action.microbatch), from));
        }
    }

    /// Whether everything is there that an action begins with.
    pub(super) fn check(&self, action: &PlanAction) -> Result<(), ShelfError> {
        let cell = (action.stage, action.microbatch);
        let (stage, microbatch) = cell;
        match action.action {
            PlanActionKind::ForwardStage => {
                self.is_new(Made::Output, cell)?;
                self.has_received(Payload::Activation, cell)?;
                match stage.checked_sub(1).map(|before| (before, microbatch)) {
                    Some(before) if self.forwards.contains(&before) => self.has(Made::Output, before),
                    _ => Ok(()),
                }
            }
            PlanActionKind::BackwardStage | PlanActionKind::InputGradStage => {
                self.is_new(Made::InputGradient, cell)?;
                self.has(Made::Output, cell)?;
                self.has_received(Payload::Gradient, cell)?;
                let behind = (stage.saturating_add(1), microbatch);
                if self.forwards.contains(&behind) { self.has(Made::InputGradient, behind) } else { Ok(()) }
            }
            PlanActionKind::WeightGradStage => {
                self.is_new(Made::WeightGradient, cell)?;
                self.has(Made::InputGradient, cell)
            }
            PlanActionKind::Isend => match action.transfer.map(|transfer| transfer.payload) {
                Some(Payload::Gradient) => self.has(Made::InputGradient, cell),
                _ => self.has(Made::Output, cell),
            },
            PlanActionKind::Irecv | PlanActionKind::WaitIrecv | PlanActionKind::WaitIsend => Ok(()),
        }
    }

    /// Puts there what an action computes.
    pub(super) fn make(&mut self, action: &PlanAction) {
        let cell = (action.stage, action.microbatch);
        match action.action {
            PlanActionKind::ForwardStage => drop(self.made.insert((Made::Output, cell))),
            PlanActionKind::InputGradStage => drop(self.made.insert((Made::InputGradient, cell))),
            PlanActionKind::WeightGradStage => drop(self.made.insert((Made::WeightGradient, cell))),
            PlanActionKind::BackwardStage => {
                self.made.extend([(Made::InputGradient, cell), (Made::WeightGradient, cell)]);
            }
            _ => {}
        }
    }

    /// Whether everything that went forward went backward, too.
    pub(super) fn is_finished(&self) -> Result<(), ShelfError> {
        for &(stage, microbatch) in &self.forwards {
            for made in [Made::InputGradient, Made::WeightGradient] {
                if !self.made.contains(&(made, (stage, microbatch))) {
                    return Err(ShelfError::Unfinished { made, stage, microbatch });
                }
            }
        }
        Ok(())
    }

    fn is_new(&self, made: Made, cell: Cell) -> Result<(), ShelfError> {
        if self.made.contains(&(made, cell)) { Err(ShelfError::Again) } else { Ok(()) }
    }

    fn has(&self, made: Made, cell: Cell) -> Result<(), ShelfError> {
        let (stage, microbatch) = cell;
        if self.made.contains(&(made, cell)) { Ok(()) } else { Err(ShelfError::Unmade { made, stage, microbatch }) }
    }

    fn has_received(&self, payload: Payload, cell: Cell) -> Result<(), ShelfError> {
        let missing = self.needed.get(&(payload, cell)).into_iter().flatten();
        match missing.copied().find(|&from| !self.received.contains(&(payload, cell, from))) {
            Some((stage, microbatch)) => Err(ShelfError::Unreceived { payload, stage, microbatch }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use planner::execution_plan::Transfer;

    use super::ShelfError::{Again, Unfinished, Unmade, Unreceived};
    use super::*;
    use PlanActionKind::{BackwardStage, ForwardStage, InputGradStage, Irecv, Isend, WaitIrecv, WeightGradStage};

    fn compute(action: PlanActionKind, stage: u32) -> PlanAction {
        PlanAction { start_ns: 0, duration_ns: Some(1), action, stage, microbatch: 0, with_next: false, transfer: None }
    }

    fn travel(action: PlanActionKind, stage: u32, payload: Payload, peer_stage: u32) -> PlanAction {
        let transfer = Transfer { payload, peer: 9, peer_stage, peer_microbatch: 0, tag: 0, batch: 0, bytes: None };
        PlanAction { transfer: Some(transfer), ..compute(action, stage) }
    }

    /// The first index at which a list cannot be followed, and why; its length for the end.
    fn follow(list: &[PlanAction]) -> Result<(), (usize, ShelfError)> {
        let mut shelf = Shelf::of(list);
        for (index, action) in list.iter().enumerate() {
            shelf.check(action).map_err(|error| (index, error))?;
            shelf.receive(action);
            shelf.make(action);
        }
        shelf.is_finished().map_err(|error| (list.len(), error))
    }

    #[test]
    fn a_list_that_can_be_followed_and_its_spoilt_forms() {
        let list = [
            travel(Irecv, 1, Payload::Activation, 0),
            travel(Irecv, 2, Payload::Gradient, 3),
            travel(WaitIrecv, 1, Payload::Activation, 0),
            compute(ForwardStage, 1),
            compute(ForwardStage, 2),
            travel(Isend, 2, Payload::Activation, 3),
            travel(WaitIrecv, 2, Payload::Gradient, 3),
            compute(InputGradStage, 2),
            compute(BackwardStage, 1),
            travel(Isend, 1, Payload::Gradient, 0),
            compute(WeightGradStage, 2),
        ];
        assert_eq!(follow(&list), Ok(()));
        let without = |index: usize| {
            let mut list = list.to_vec();
            list.remove(index);
            follow(&list)
        };
        let moved = |from: usize, to: usize| {
            let mut list = list.to_vec();
            let action = list.remove(from);
            list.insert(to, action);
            follow(&list)
        };
        let unreceived = |payload, stage| Unreceived { payload, stage, microbatch: 0 };
        let unmade = |made, stage| Unmade { made, stage, microbatch: 0 };
        assert_eq!(without(2), Err((2, unreceived(Payload::Activation, 0))));
        assert_eq!(without(6), Err((6, unreceived(Payload::Gradient, 3))));
        assert_eq!(moved(4, 3), Err((3, unmade(Made::Output, 1))));
        assert_eq!(moved(5, 4), Err((4, unmade(Made::Output, 2))));
        assert_eq!(moved(8, 7), Err((7, unmade(Made::InputGradient, 2))));
        assert_eq!(moved(10, 6), Err((6, unmade(Made::InputGradient, 2))));
        let unfinished = Unfinished { made: Made::WeightGradient, stage: 2, microbatch: 0 };
        assert_eq!(without(10), Err((10, unfinished)));
        let mut twice = list.to_vec();
        twice.push(compute(BackwardStage, 1));
        assert_eq!(follow(&twice), Err((11, Again)));
    }
}
