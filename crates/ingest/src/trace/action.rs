//! Pipeline schedule actions as annotated by torch: `PP:0F3` is the forward pass for microbatch 3
//! on stage 0. Single-stage schedules (`Schedule1F1B`, `ScheduleGPipe`) write `Forward 3` and
//! `Backward 3`, without the stage.

use serde::{Deserialize, Serialize};

/// Action type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionKind {
    /// `F`.
    Forward,
    /// `B`: input and weight gradients.
    Backward,
    /// `I`: input gradients.
    InputGrad,
    /// `W`: weight gradients.
    WeightGrad,
    /// `UNSHARD`: gathers sharded weights.
    Unshard,
    /// `RESHARD`: frees gathered weights.
    Reshard,
    /// `REDUCE_GRAD`: reduces gradients.
    ReduceGrad,
    /// `SEND_F`: sends activations.
    SendForward,
    /// `RECV_F`: receives activations.
    ReceiveForward,
    /// `SEND_B`: sends gradients.
    SendBackward,
    /// `RECV_B`: receives gradients.
    ReceiveBackward,
}

/// An action on a microbatch or on weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Action {
    /// Pipeline stage.
    pub stage: u32,
    /// Action type.
    pub kind: ActionKind,
    /// Microbatch index; `None` for actions on weights.
    pub microbatch: Option<u32>,
}

/// An action without a stage in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplacedAction {
    /// `Forward` or `Backward`.
    pub kind: ActionKind,
    /// Microbatch index.
    pub microbatch: u32,
}

/// Longer words come first, so that a word does not match its own prefix.
const ACTION_NAMES: [(&str, ActionKind); 11] = [
    ("REDUCE_GRAD", ActionKind::ReduceGrad),
    ("UNSHARD", ActionKind::Unshard),
    ("RESHARD", ActionKind::Reshard),
    ("SEND_F", ActionKind::SendForward),
    ("RECV_F", ActionKind::ReceiveForward),
    ("SEND_B", ActionKind::SendBackward),
    ("RECV_B", ActionKind::ReceiveBackward),
    ("F", ActionKind::Forward),
    ("B", ActionKind::Backward),
    ("I", ActionKind::InputGrad),
    ("W", ActionKind::WeightGrad),
];

impl Action {
    fn read(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit())?;
        let (stage, rest) = text.split_at(digits);
        let (kind, rest) = ACTION_NAMES.iter().find_map(|(word, kind)| Some((*kind, rest.strip_prefix(word)?)))?;
        let microbatch = if rest.is_empty() { None } else { Some(rest.parse().ok()?) };
        Some(Self { stage: stage.parse().ok()?, kind, microbatch })
    }
}

/// Parses a single-stage schedule name, `Forward 0` or `Backward 0`.
pub(super) fn unplaced(name: &str) -> Option<UnplacedAction> {
    let (kind, number) = match name.split_once(' ')? {
        ("Forward", number) => (ActionKind::Forward, number),
        ("Backward", number) => (ActionKind::Backward, number),
        _ => return None,
    };
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    Some(UnplacedAction { kind, microbatch: number.parse().ok().filter(|_| is_number)? })
}

/// Parses the actions in a slice name: none, one, or several that overlap
/// (`PP:(0F1;2B0)OVERLAP_F_B`). Without the prefix, as in torch's schedule plots, the complete name
/// must be an action with a microbatch.
pub fn actions(name: &str) -> Vec<Action> {
    let Some(name) = name.strip_prefix("PP:") else {
        let bare = Action::read(name).filter(|action| action.microbatch.is_some());
        return bare.into_iter().collect();
    };
    let Some((parts, _)) = name.strip_prefix('(').and_then(|name| name.split_once(')')) else {
        return Action::read(name).into_iter().collect();
    };
    let read: Option<Vec<Action>> = parts.split([';', ',']).map(|part| Action::read(part.trim())).collect();
    read.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_a_stage() {
        let action = |kind, microbatch| Some(UnplacedAction { kind, microbatch });
        assert_eq!(unplaced("Forward 12"), action(ActionKind::Forward, 12));
        assert_eq!(unplaced("Backward 0"), action(ActionKind::Backward, 0));
        for name in ["Forward", "Forward x", "Forward +1", "Forward 1 2", "Backward Linear", "forward 1"] {
            assert_eq!(unplaced(name), None, "{name}");
        }
    }

    #[test]
    fn action_names() {
        let action = |stage, kind, microbatch| vec![Action { stage, kind, microbatch }];
        for (name, expected) in [
            ("PP:0F3", action(0, ActionKind::Forward, Some(3))),
            ("PP:1SEND_F2", action(1, ActionKind::SendForward, Some(2))),
            ("PP:3UNSHARD", action(3, ActionKind::Unshard, None)),
            ("0W12", action(0, ActionKind::WeightGrad, Some(12))),
            (
                "PP:(0F1;2B0)OVERLAP_F_B",
                [action(0, ActionKind::Forward, Some(1)), action(2, ActionKind::Backward, Some(0))].concat(),
            ),
            ("PP:F3", vec![]),
            ("3F", vec![]),
            ("aten::add", vec![]),
            ("PP:99999999999F1", vec![]),
            ("PP:0F1x", vec![]),
        ] {
            assert_eq!(actions(name), expected, "{name}");
        }
    }
}
