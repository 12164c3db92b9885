//! Text for a trace span.

use super::chart::Mark;
use crate::format;
use crate::gantt::time_text;

/// Slice name, or the number of merged slices.
pub(super) fn title(mark: &Mark) -> String {
    if mark.count == 1 {
        return mark.name.clone();
    }
    format!("{} slices, the longest {}", format::count(u64::from(mark.count)), mark.name)
}

/// Start and duration.
pub(super) fn times(mark: &Mark) -> String {
    let (start, end) = (mark.start_ns as f64, mark.start_ns.saturating_add(mark.extent_ns) as f64);
    let range = time_text::range(start, end);
    if mark.count == 1 {
        return format!("{} · {} · {range}", mark.kind.title(), time_text::duration(mark.extent_ns as f64));
    }
    format!("mostly {} · together {} in {range}", mark.kind.title(), time_text::duration(mark.active_ns as f64))
}

/// Full description for screen readers.
pub(super) fn spoken(mark: &Mark) -> String {
    format!("{}, {}", title(mark), times(mark))
}
