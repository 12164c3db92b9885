//! Search queries of a chart, for example "r3 mb7 B", "stage 5", "> 10 ms" or "critical".

use api::planner::timeline::{SpanKind, Timeline};

use super::traversal::is_critical;

/// Search query. A span must satisfy all given conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Query {
    rank: Option<u32>,
    stage: Option<u32>,
    microbatch: Option<u32>,
    kinds: Vec<SpanKind>,
    min_ns: Option<f64>,
    max_ns: Option<f64>,
    critical: bool,
}

/// Keywords for span kinds.
const KIND_KEYWORDS: [(&str, &[SpanKind]); 15] = [
    ("f", &[SpanKind::Forward]),
    ("forward", &[SpanKind::Forward]),
    ("b", &[SpanKind::Backward]),
    ("backward", &[SpanKind::Backward, SpanKind::InputGrad, SpanKind::WeightGrad]),
    ("i", &[SpanKind::InputGrad]),
    ("input", &[SpanKind::InputGrad]),
    ("w", &[SpanKind::WeightGrad]),
    ("weight", &[SpanKind::WeightGrad]),
    ("send", &[SpanKind::SendForward, SpanKind::SendBackward]),
    ("communication", &[SpanKind::SendForward, SpanKind::SendBackward, SpanKind::GradientSync]),
    ("activations", &[SpanKind::SendForward]),
    ("gradients", &[SpanKind::SendBackward]),
    ("sync", &[SpanKind::GradientSync]),
    ("optimizer", &[SpanKind::Optimizer]),
    ("opt", &[SpanKind::Optimizer]),
];

impl Query {
    /// Parses a query.
    ///
    /// # Errors
    ///
    /// Returns the first invalid word.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut query = Self::default();
        let lower = text.to_lowercase().replace(',', " ").replace("> ", ">").replace("< ", "<");
        let mut terms = lower.split_whitespace().peekable();
        while let Some(word) = terms.next() {
            if let Some(bound) = word.strip_prefix('>').or_else(|| word.strip_prefix('<')) {
                let time = match duration_ns(bound) {
                    Some(time) => Some(time),
                    // In "> 10 ms" the unit is a separate word.
                    None => terms.peek().and_then(|unit| duration_ns(&format!("{bound}{unit}"))).inspect(|_| {
                        terms.next();
                    }),
                };
                let time = time.ok_or_else(|| word.to_owned())?;
                let slot = if word.starts_with('>') { &mut query.min_ns } else { &mut query.max_ns };
                *slot = Some(time);
            } else if matches!(word, "critical" | "path") {
                query.critical = true;
            } else if let Some((_, kinds)) = KIND_KEYWORDS.iter().find(|(name, _)| *name == word) {
                query.kinds.extend(*kinds);
            } else {
                query.number(word, &mut terms)?;
            }
        }
        Ok(query)
    }

    fn number<'a>(
        &mut self,
        word: &str,
        terms: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    ) -> Result<(), String> {
        let split = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let (name, digits) = word.split_at(split);
        let digits = if digits.is_empty() { terms.next().unwrap_or("") } else { digits };
        let value: u32 = digits.parse().map_err(|_| word.to_owned())?;
        match name {
            "r" | "rank" => self.rank = Some(value),
            "s" | "stage" => self.stage = Some(value),
            "mb" | "m" | "microbatch" | "group" => self.microbatch = Some(value),
            // Same notation as in the bars: "F12".
            "f" | "b" | "i" | "w" => {
                self.kinds.extend(
                    KIND_KEYWORDS.iter().find(|(short, _)| *short == name).map_or(&[] as &[_], |(_, kinds)| kinds),
                );
                self.microbatch = Some(value);
            }
            _ => return Err(word.to_owned()),
        }
        Ok(())
    }

    /// Returns true if the query has no condition.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Matching spans, sorted by time.
    pub(crate) fn matches(&self, timeline: &Timeline) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        let ranks = match self.rank {
            Some(rank) => rank..rank.saturating_add(1).min(timeline.ranks),
            None => 0..timeline.ranks,
        };
        let mut found: Vec<usize> = ranks
            .filter(|&rank| rank < timeline.ranks)
            .flat_map(|rank| {
                let (first, last) = (timeline.compute_lane(rank as usize), timeline.communication_lane(rank as usize));
                first.start..last.end
            })
            .filter(|&span| self.holds(timeline, span))
            .collect();
        found.sort_by_key(|&span| timeline.start_ns[span]);
        found
    }

    fn holds(&self, timeline: &Timeline, span: usize) -> bool {
        let Some(kind) = SpanKind::from_index(timeline.kind[span]) else { return false };
        let numbered = !matches!(kind, SpanKind::GradientSync | SpanKind::Optimizer);
        let time = timeline.duration_ns[span] as f64;
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && self.stage.is_none_or(|stage| numbered && timeline.stage[span] == stage)
            && self.microbatch.is_none_or(|microbatch| numbered && timeline.microbatch[span] == microbatch)
            && self.min_ns.is_none_or(|lower| time > lower)
            && self.max_ns.is_none_or(|upper| time < upper)
            && (!self.critical || is_critical(timeline, span))
    }
}

/// Parses a duration such as "10ms" and returns ns.
fn duration_ns(text: &str) -> Option<f64> {
    let split = text.find(|c: char| c.is_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let value: f64 = number.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value * scale)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn found(text: &str) -> Vec<(usize, u8, u32)> {
        let timeline = sample::one_f_one_b(2, 3);
        let query = Query::parse(text).expect("it can be read");
        let spans = query.matches(&timeline);
        spans
            .into_iter()
            .map(|span| (timeline.span_rank(span), timeline.kind[span], timeline.microbatch[span]))
            .collect()
    }

    #[test]
    fn parts_are_read_in_any_order_and_spelling() {
        for text in ["r1 mb2 B", "B2 rank 1", "rank 1 microbatch 2 backward", "R1, MB2, b"] {
            assert_eq!(found(text), [(1, 1, 2)], "{text}");
        }
        assert_eq!(found("stage 0 f").len(), 3);
        assert_eq!(found("send r0"), [(0, 4, 0), (0, 4, 1), (0, 4, 2)]);
        assert_eq!(found(""), []);
        assert_eq!(found("r9"), []);
    }

    #[test]
    fn durations_bound_from_both_sides() {
        // Durations: forward 1,000 ns, backward 2,000 ns, send 100 ns.
        assert!(found(">1.5us").iter().all(|&(_, kind, _)| kind == 1) && found(">1.5us").len() == 6);
        assert_eq!(found("> 0.5 us < 1.5 us").len(), 6);
        assert!(found("<200ns").iter().all(|&(_, kind, _)| kind >= 4));
        assert_eq!(found(">1s"), []);
    }

    #[test]
    fn unreadable_terms_are_named() {
        for (text, word) in [("r1 nonsense", "nonsense"), ("rank", "rank"), ("> fast", ">fast"), ("mb-1", "mb-1")] {
            assert_eq!(Query::parse(text), Err(word.to_owned()), "{text}");
        }
    }

    #[test]
    fn query_can_select_critical_path() {
        let timeline = sample::one_f_one_b(4, 6);
        let spans = Query::parse("critical").expect("it can be read").matches(&timeline);
        assert_eq!(spans.len(), timeline.critical_path.len());
    }
}
