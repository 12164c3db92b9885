//! Which of the runs are listed, and in what order.

use api::run::{RunState, RunSummary};

/// States to choose from, by the value of their option.
pub(super) const STATES: [(&str, &str, Option<RunState>); 6] = [
    ("", "any state", None),
    ("waiting", "waiting", Some(RunState::Waiting)),
    ("live", "live", Some(RunState::Live)),
    ("stalled", "stalled", Some(RunState::Stalled)),
    ("ended", "ended", Some(RunState::Ended)),
    ("crashed", "crashed", Some(RunState::Crashed)),
];

/// The state of an option.
pub(super) fn state_of(value: &str) -> Option<RunState> {
    STATES.into_iter().find(|(id, ..)| *id == value).and_then(|(.., state)| state)
}

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Question {
    /// Words that must all stand somewhere.
    pub(super) words: String,
    /// Tag that it must have.
    pub(super) tag: Option<String>,
    /// State that it must be in.
    pub(super) state: Option<RunState>,
    /// Order.
    pub(super) order: Order,
}

impl Question {
    /// Whether a run is asked for.
    pub(super) fn matches(&self, run: &RunSummary) -> bool {
        let text = format!("{} {} {}", run.name, run.note.as_deref().unwrap_or_default(), run.tags.join(" ")).to_lowercase();
        self.words.to_lowercase().split_whitespace().all(|word| text.contains(word))
            && self.tag.as_ref().is_none_or(|tag| run.tags.contains(tag))
            && self.state.is_none_or(|state| run.state == state)
    }
}

/// An order of runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// Newest first.
    #[default]
    Newest,
    /// By name.
    Name,
    /// Largest log first.
    Size,
    /// Most points first.
    Points,
    /// Shortest median step first; those without one last.
    Step,
}

impl Order {
    /// All of them.
    pub(super) const ALL: [Self; 5] = [Self::Newest, Self::Name, Self::Size, Self::Points, Self::Step];

    /// Value of its option.
    pub(super) const fn id(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Name => "name",
            Self::Size => "size",
            Self::Points => "points",
            Self::Step => "step",
        }
    }

    /// Name on the page.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Newest => "newest first",
            Self::Name => "by name",
            Self::Size => "largest log first",
            Self::Points => "most points first",
            Self::Step => "shortest step first",
        }
    }

    /// The order of an option.
    pub(super) fn of(id: &str) -> Self {
        Self::ALL.into_iter().find(|order| order.id() == id).unwrap_or_default()
    }

    /// Puts runs in order; those that it does not tell apart stay as they are, newest first.
    pub(super) fn sort(self, runs: &mut [RunSummary]) {
        match self {
            Self::Newest => runs.sort_by(|one, other| other.created_at.cmp(&one.created_at)),
            Self::Name => runs.sort_by_key(|run| run.name.to_lowercase()),
            Self::Size => runs.sort_by_key(|run| std::cmp::Reverse(run.bytes)),
            Self::Points => runs.sort_by_key(|run| std::cmp::Reverse(run.points)),
            Self::Step => {
                let time = |run: &RunSummary| run.median_step_s.unwrap_or(f64::INFINITY);
                runs.sort_by(|one, other| time(one).total_cmp(&time(other)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::a_summary as summary;

    #[test]
    fn words_tag_and_state_must_all_match() {
        let run = RunSummary { note: Some("with offload".into()), ..summary() };
        let ask = |words: &str| Question { words: words.into(), ..Question::default() };
        assert!(ask("").matches(&run) && ask("OFFLOAD nightly").matches(&run) && ask("a100").matches(&run));
        assert!(!ask("nightly h100").matches(&run));
        assert!(Question { tag: Some("a100".into()), state: Some(RunState::Live), ..ask("") }.matches(&run));
        assert!(!Question { tag: Some("b200".into()), ..ask("") }.matches(&run));
        assert!(!Question { state: state_of("ended"), ..ask("") }.matches(&run));
    }

    #[test]
    fn orders() {
        let run = |id: &str, bytes, median_step_s, created: &str| RunSummary {
            id: id.into(),
            name: id.into(),
            bytes,
            median_step_s,
            created_at: created.into(),
            ..summary()
        };
        let runs = [run("b", 3, None, "2026-01-03"), run("C", 1, Some(2.0), "2026-01-02"), run("a", 2, Some(1.0), "2026-01-01")];
        for (order, ids) in [(Order::Newest, "bCa"), (Order::Name, "abC"), (Order::Size, "baC"), (Order::Step, "aCb")] {
            let mut runs = runs.clone();
            order.sort(&mut runs);
            assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<String>(), ids);
            assert_eq!(Order::of(order.id()), order);
        }
    }
}
