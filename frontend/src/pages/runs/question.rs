//! Which of the runs are listed, and in what order.

use api::run::{RunState, RunSummary};

/// Most runs that are asked for at once.
pub(super) const PAGE: u32 = 200;

/// What is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Question {
    /// Text in name, note, identifier or tags.
    pub(super) search: String,
    /// Tag that it must have.
    pub(super) tag: Option<String>,
    /// State that it must be in.
    pub(super) state: Option<RunState>,
}

impl Question {
    /// Whether it asks for all.
    pub(super) fn is_open(&self) -> bool {
        *self == Self::default()
    }

    /// The query of the list, from behind a run; `encode` makes a text safe.
    pub(super) fn query(&self, after: Option<&str>, encode: impl Fn(&str) -> String) -> String {
        let mut query = format!("?limit={PAGE}");
        let search = self.search.trim();
        let words =
            [("search", (!search.is_empty()).then_some(search)), ("tag", self.tag.as_deref()), ("after", after)];
        for (key, text) in words {
            if let Some(text) = text {
                query.push('&');
                query.push_str(key);
                query.push('=');
                query.push_str(&encode(text));
            }
        }
        if let Some(state) = self.state {
            query.push_str("&state=");
            query.push_str(state.id());
        }
        query
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
    fn only_what_is_asked_for_stands_in_the_query() {
        assert!(Question::default().is_open());
        assert_eq!(Question::default().query(None, str::to_owned), "?limit=200");
        let question = Question { search: " a b ".into(), tag: Some("lab".into()), state: Some(RunState::Live) };
        let encode = |text: &str| text.replace(' ', "%20");
        assert_eq!(question.query(Some("ab12"), encode), "?limit=200&search=a%20b&tag=lab&after=ab12&state=live");
        assert!(!question.is_open());
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
        let runs = [
            run("b", 3, None, "2026-01-03"),
            run("C", 1, Some(2.0), "2026-01-02"),
            run("a", 2, Some(1.0), "2026-01-01"),
        ];
        for (order, ids) in [(Order::Newest, "bCa"), (Order::Name, "abC"), (Order::Size, "baC"), (Order::Step, "aCb")] {
            let mut runs = runs.clone();
            order.sort(&mut runs);
            assert_eq!(runs.iter().map(|run| run.id.as_str()).collect::<String>(), ids);
            assert_eq!(Order::of(order.id()), order);
        }
    }
}
