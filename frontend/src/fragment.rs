//! What is looked at, in the URL fragment: `#i=3&p=interleaved&t=1200us..3400us&base=1f1b&layout=...`.
//!
//! Every key may be absent, and a key that cannot be read is left out without touching the others, so that links
//! made by older and newer versions open.

use api::planner::scenario::PlannerKind;

/// What is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Iteration shown, from 0.
    pub(crate) iteration: Option<u32>,
    /// Planner whose reasons are shown.
    pub(crate) planner: Option<PlannerKind>,
    /// Shown range of the time axis, in ns; absent: all of it.
    pub(crate) window_ns: Option<(u64, u64)>,
    /// Planner that speed-ups are measured against.
    pub(crate) baseline: Option<PlannerKind>,
    /// Layout of the modules that is looked at, by its name in the sweep.
    pub(crate) layout: Option<String>,
}

/// Letters of the longest name of a layout: a model has a handful of modules.
const LONGEST_NAME: usize = 400;

impl View {
    /// Reads a fragment, with or without its `#`.
    pub(crate) fn parse(fragment: &str) -> Self {
        let mut view = Self::default();
        for pair in fragment.trim_start_matches('#').split('&') {
            let Some((key, value)) = pair.split_once('=') else { continue };
            match key {
                "i" => view.iteration = value.parse().ok(),
                "p" => view.planner = PlannerKind::from_id(value),
                "t" => view.window_ns = parse_window(value),
                "layout" => view.layout = layout_name(value),
                "base" => view.baseline = PlannerKind::from_id(value),
                _ => {}
            }
        }
        view
    }

    /// The fragment without its `#`, empty for the default view.
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
        if let Some(baseline) = self.baseline {
            pairs.push(format!("base={}", baseline.id()));
        }
        if let Some(layout) = &self.layout {
            pairs.push(format!("layout={layout}"));
        }
        pairs.join("&")
    }
}

/// A name of letters that need no escape.
fn layout_name(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (!text.is_empty() && text.len() <= LONGEST_NAME && text.chars().all(is_plain)).then(|| text.to_owned())
}

const UNITS: [(&str, u64); 4] = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

/// Reads a range of the time axis.
pub(crate) fn parse_window(text: &str) -> Option<(u64, u64)> {
    let (start, end) = text.split_once("..")?;
    let window = (parse_time(start)?, parse_time(end)?);
    (window.0 < window.1).then_some(window)
}

/// Writes a range of the time axis.
pub(crate) fn write_window((start, end): (u64, u64)) -> String {
    format!("{}..{}", write_time(start), write_time(end))
}

fn parse_time(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(digits);
    let scale = UNITS.iter().find(|(name, _)| *name == unit)?.1;
    let value = number.parse::<f64>().ok()? * scale as f64;
    // Up to 2^53 ns, a hundred days, a float holds every nanosecond.
    (0.0..9e15).contains(&value).then_some(value.round() as u64)
}

/// The largest unit that needs no decimals, so that reading gives back the same nanoseconds.
fn write_time(ns: u64) -> String {
    let (unit, scale) =
        UNITS.iter().rev().find(|(_, scale)| ns > 0 && ns.is_multiple_of(*scale)).copied().unwrap_or(UNITS[0]);
    format!("{}{unit}", ns / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let view = View {
            iteration: Some(3),
            planner: Some(PlannerKind::Interleaved),
            window_ns: Some((1_200_000, 3_400_001)),
            baseline: Some(PlannerKind::OneFOneB),
            layout: Some("2-apart-1_0.1.1.1.1.8.1.0.1".to_owned()),
        };
        assert_eq!(view.write(), "i=3&p=interleaved&t=1200us..3400001ns&base=1f1b&layout=2-apart-1_0.1.1.1.1.8.1.0.1");
        assert_eq!(View::parse(&format!("#{}", view.write())), view);
        assert_eq!(View::default().write(), "");
        assert_eq!(View::parse(""), View::default());
    }

    #[test]
    fn keys_are_tolerant_one_by_one() {
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
