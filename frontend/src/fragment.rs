//! View state in the URL fragment, for example
//! `#i=3&p=interleaved&t=1200us..3400us&sel=r3.s1.mb7.B&base=1f1b&cmp=abcdefghij`. Further keys are
//! `cmpe=...` for the compared engine version and `layout=...` for the module layout.
//!
//! All keys are optional. The parser skips an invalid key and still reads the other keys, so that
//! links from older and newer versions work. It reports the skipped keys in one message.

mod action;

pub(crate) use action::ActionName;

use api::planner::scenario::PlannerKind;

/// Maximum fragment length in bytes.
const MAX: usize = 8 << 10;
/// Maximum number of invalid keys listed by name; the message counts the others.
const MAX_NAMED: usize = 3;
/// Length of a full identifier.
const FULL_LENGTH: usize = 52;
/// Minimum length of an identifier prefix.
const MIN: usize = 10;

/// View state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Iteration, from 0.
    pub(crate) iteration: Option<u32>,
    /// Planner in the explanation panel.
    pub(crate) planner: Option<PlannerKind>,
    /// Visible time range in ns; `None` for the full range.
    pub(crate) window_ns: Option<(u64, u64)>,
    /// Reference planner for speed-ups.
    pub(crate) baseline: Option<PlannerKind>,
    /// Selected module layout, by its name in the sweep.
    pub(crate) layout: Option<String>,
    /// Selected action.
    pub(crate) action: Option<ActionName>,
    /// Scenario for comparison.
    pub(crate) compared: Option<ScenarioPrefix>,
    /// Engine version of the compared outcome, in URL-safe characters. `None` selects the current
    /// or the latest version.
    pub(crate) compared_engine: Option<String>,
}

/// Identifier or prefix of a scenario in links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScenarioPrefix {
    bytes: [u8; FULL_LENGTH],
    length: usize,
}

impl ScenarioPrefix {
    /// Parses an identifier or prefix, in upper or lower case.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let is_letter = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
        let text = text.to_ascii_lowercase();
        if !(MIN..=FULL_LENGTH).contains(&text.len()) || !text.bytes().all(is_letter) {
            return None;
        }
        let mut bytes = [0; FULL_LENGTH];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self { bytes, length: text.len() })
    }

    /// Returns the text form.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

/// Maximum length of a layout name, in characters.
const MAX_NAME: usize = 400;

impl View {
    /// Parses a fragment, with or without `#`. The second value is a message about invalid keys.
    pub(crate) fn parse_with_warning(fragment: &str) -> (Self, Option<String>) {
        let mut view = Self::default();
        let fragment = fragment.trim_start_matches('#');
        if fragment.len() > MAX {
            return (view, Some("The view in this link is longer than any view; the whole plan is shown.".to_owned()));
        }
        let mut unread = Vec::new();
        for pair in fragment.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = match key {
                "i" => value.parse().map(|iteration| view.iteration = Some(iteration)).ok(),
                "p" => PlannerKind::from_id(value).map(|planner| view.planner = Some(planner)),
                "t" => parse_window(value).map(|window| view.window_ns = Some(window)),
                "base" => PlannerKind::from_id(value).map(|planner| view.baseline = Some(planner)),
                "layout" => plain_name(value).map(|layout| view.layout = Some(layout)),
                "sel" => ActionName::parse(value).map(|action| view.action = Some(action)),
                "cmp" => ScenarioPrefix::parse(value).map(|scenario| view.compared = Some(scenario)),
                "cmpe" => plain_name(value).map(|engine| view.compared_engine = Some(engine)),
                _ => None,
            };
            if read.is_none() {
                let printable = |c: &char| c.is_ascii_graphic();
                unread.push(key.chars().filter(printable).take(12).collect::<String>());
            }
        }
        let more = unread.len().saturating_sub(MAX_NAMED);
        unread.truncate(MAX_NAMED);
        let message = (!unread.is_empty()).then(|| {
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("Parts of this link could not be read and were left out: {}{more}.", unread.join(", "))
        });
        (view, message)
    }

    /// Formats the fragment without `#`; empty for the default view.
    pub(crate) fn write(&self) -> String {
        let mut pairs = Vec::new();
        if let Some(iteration) = self.iteration {
            pairs.push(format!("i={iteration}"));
        }
        if let Some(planner) = self.planner {
            pairs.push(format!("p={}", planner.id()));
        }
        if let Some((start, end)) = self.window_ns {
            pairs.push(format!("t={}", write_window((start, end))));
        }
        if let Some(action) = self.action {
            pairs.push(format!("sel={}", action.write()));
        }
        if let Some(baseline) = self.baseline {
            pairs.push(format!("base={}", baseline.id()));
        }
        if let Some(layout) = &self.layout {
            pairs.push(format!("layout={layout}"));
        }
        if let Some(compared) = &self.compared {
            pairs.push(format!("cmp={}", compared.as_str()));
            if let Some(engine) = &self.compared_engine {
                pairs.push(format!("cmpe={engine}"));
            }
        }
        pairs.join("&")
    }
}

/// Returns the name if it contains only URL-safe characters.
fn plain_name(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_plain)).then(|| text.to_owned())
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Parses a time range.
pub(crate) fn parse_window(text: &str) -> Option<(u64, u64)> {
    let (start, end) = text.split_once("..")?;
    let window = (parse_time(start)?, parse_time(end)?);
    (window.0 < window.1).then_some(window)
}

/// Formats a time range.
pub(crate) fn write_window((start, end): (u64, u64)) -> String {
    format!("{}..{}", write_time(start), write_time(end))
}

fn parse_time(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let value = number.parse::<f64>().ok()? * scale as f64;
    // An `f64` is exact up to 2^53 ns, about a hundred days.
    (0.0..9e15).contains(&value).then_some(value.round() as u64)
}

/// Formats a time in the largest unit that needs no decimals, so that parsing returns the same
/// nanoseconds.
fn write_time(ns: u64) -> String {
    let (unit, scale) =
        UNITS.iter().rev().find(|(_, scale)| ns > 0 && ns.is_multiple_of(*scale)).copied().unwrap_or(UNITS[0]);
    format!("{}{unit}", ns / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl View {
        fn parse(fragment: &str) -> Self {
            Self::parse_with_warning(fragment).0
        }
    }

    #[test]
    fn fragment_round_trips() {
        let view = View {
            iteration: Some(3),
            planner: Some(PlannerKind::Interleaved),
            window_ns: Some((1_200_000, 3_400_001)),
            baseline: Some(PlannerKind::OneFOneB),
            layout: Some("2-apart-1_0.1.1.1.1.8.1.0.1".to_owned()),
            action: ActionName::parse("r3.s1.mb7.B"),
            compared: ScenarioPrefix::parse("ABCDEFGHIJ"),
            compared_engine: Some("planscope_0.2.0".to_owned()),
        };
        assert_eq!(
            view.write(),
            "i=3&p=interleaved&t=1200us..3400001ns&sel=r3.s1.mb7.B&base=1f1b&layout=2-apart-1_0.1.1.1.1.8.1.0.1&cmp=abcdefghij&cmpe=planscope_0.2.0"
        );
        assert_eq!(View::parse(&format!("#{}", view.write())), view);
        assert_eq!(View::default().write(), "");
        assert_eq!(View::parse(""), View::default());
    }

    #[test]
    fn unreadable_keys_are_reported_by_name() {
        let message = |fragment: &str| View::parse_with_warning(fragment).1;
        assert_eq!(message("#i=3&p=1f1b"), None);
        assert_eq!(
            message("#i=x&p=1f1b&sel=r999&cmp=short").as_deref(),
            Some("Parts of this link could not be read and were left out: i, sel, cmp.")
        );
        let (view, error_message) = View::parse_with_warning("#i=2&t=9..1&<script>=1&a=1&b=2&c=3");
        assert_eq!(view, View { iteration: Some(2), ..View::default() });
        assert!(error_message.is_some_and(|text| text.ends_with("t, <script>, a and 2 more.")));
        let (view, long_message) = View::parse_with_warning(&format!("#i=2&x={}", "a".repeat(100_000)));
        assert!(view == View::default() && long_message.is_some());
    }

    #[test]
    fn invalid_keys_do_not_affect_others() {
        let view = View::parse("#i=x&p=wait_free_cyclic&t=5ms..2ms&base=nonsense&future=1&&=");
        assert_eq!(view, View { planner: Some(PlannerKind::WaitFreeCyclic), ..View::default() });
        for bad in ["layout=", "layout=a/../b", "layout=a%20b", &format!("layout={}", "a".repeat(401))] {
            assert_eq!(View::parse(bad).layout, None, "{bad}");
        }
        assert_eq!(View::parse("t=1.5ms..0.002s").window_ns, Some((1_500_000, 2_000_000)));
        for bad in ["t=1..2", "t=ms..2ms", "t=-1ms..2ms", "t=1ms", "t=1e40s..2e40s", "t=NaNs..infs"] {
            assert_eq!(View::parse(bad).window_ns, None, "{bad}");
        }
    }
}
