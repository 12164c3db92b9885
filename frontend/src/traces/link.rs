//! View settings of a trace in the URL fragment: `#t=1200us..3400us&s=4.1.1250000`.
//!
//! Both keys are optional. An invalid value is ignored and does not affect the other key.

use crate::fragment::{parse_window, write_window};

/// Slice position: lane, row, start in ns.
pub(super) type SlicePosition = (u32, u16, u64);

/// View settings of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct TraceLink {
    /// Visible time range in ns. `None`: full range.
    pub(super) window_ns: Option<(u64, u64)>,
    /// Selected slice.
    pub(super) selected: Option<SlicePosition>,
}

impl TraceLink {
    /// Parses a fragment with or without `#`.
    pub(super) fn parse(fragment: &str) -> Self {
        let mut link = Self::default();
        for pair in fragment.trim_start_matches('#').split('&') {
            match pair.split_once('=') {
                Some(("t", value)) => link.window_ns = parse_window(value),
                Some(("s", value)) => link.selected = parse_position(value),
                _ => {}
            }
        }
        link
    }

    /// Returns the fragment without `#`. Empty for the full range without a selection.
    pub(super) fn write(&self) -> String {
        let window = self.window_ns.map(|window| format!("t={}", write_window(window)));
        let selected = self.selected.map(|(lane, row, start_ns)| format!("s={lane}.{row}.{start_ns}"));
        window.into_iter().chain(selected).collect::<Vec<_>>().join("&")
    }
}

fn parse_position(text: &str) -> Option<SlicePosition> {
    let mut parts = text.split('.');
    let position = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_link_round_trips() {
        let link = TraceLink { window_ns: Some((1_200_000, 3_400_001)), selected: Some((4, 1, u64::MAX)) };
        assert_eq!(link.write(), "t=1200us..3400001ns&s=4.1.18446744073709551615");
        assert_eq!(TraceLink::parse(&format!("#{}", link.write())), link);
        assert_eq!((TraceLink::default().write().as_str(), TraceLink::parse("#")), ("", TraceLink::default()));
    }

    #[test]
    fn unreadable_parameters_are_omitted() {
        let link = TraceLink::parse("#t=5ms..2ms&s=3.0.17&x=1&=");
        assert_eq!(link, TraceLink { window_ns: None, selected: Some((3, 0, 17)) });
        for bad in ["s=1.2", "s=1.2.3.4", "s=a.0.1", "s=1.70000.3", "s=-1.0.3"] {
            assert_eq!(TraceLink::parse(bad).selected, None, "{bad}");
        }
    }
}
