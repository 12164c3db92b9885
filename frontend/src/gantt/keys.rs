//! Keyboard commands of a focused chart.

use super::traversal::Step;

/// Chart command.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Command {
    /// Multiplies the visible duration by a factor.
    Zoom(f64),
    /// Shifts the window by this fraction of its width.
    Pan(f64),
    /// Selects an adjacent span.
    Walk(Step),
    Fit,
    ZoomToSelection,
    /// Clears the selection.
    Clear,
    /// Shows or hides the critical path.
    ToggleCritical,
    /// Focuses the search field.
    Search,
    /// Selects the time range of the selection on all ranks, or extends the selected area to it.
    Area,
    /// Pins or unpins the selected rank.
    Pin,
    /// Folds or unfolds the group of the selected rank. Without a selection, applies to all groups.
    Fold,
}

/// Pressed modifier keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Modifiers {
    /// Ctrl, or Cmd.
    pub(crate) ctrl: bool,
    pub(crate) alt: bool,
}

const ZOOM_IN: f64 = 1.0 / 1.5;
const PAN: f64 = 0.2;

/// Maps a key to a command. Returns `None` for keys that the browser handles.
pub(crate) fn command(key: &str, modifiers: Modifiers) -> Option<Command> {
    let command = match (key, modifiers) {
        ("]", Modifiers { ctrl: true, .. }) => Command::Walk(Step::NextCritical),
        ("[", Modifiers { ctrl: true, .. }) => Command::Walk(Step::PreviousCritical),
        (_, Modifiers { ctrl: true, .. } | Modifiers { alt: true, .. }) => return None,
        ("w" | "W" | "+" | "=", _) => Command::Zoom(ZOOM_IN),
        ("s" | "S" | "-", _) => Command::Zoom(1.0 / ZOOM_IN),
        ("a" | "A", _) => Command::Pan(-PAN),
        ("d" | "D", _) => Command::Pan(PAN),
        ("ArrowRight" | ".", _) => Command::Walk(Step::Next),
        ("ArrowLeft" | ",", _) => Command::Walk(Step::Previous),
        ("ArrowUp", _) => Command::Walk(Step::Up),
        ("ArrowDown", _) => Command::Walk(Step::Down),
        ("f" | "F", _) => Command::Fit,
        ("Enter", _) => Command::ZoomToSelection,
        ("Escape", _) => Command::Clear,
        ("c" | "C", _) => Command::ToggleCritical,
        ("/", _) => Command::Search,
        ("m" | "M", _) => Command::Area,
        ("p" | "P", _) => Command::Pin,
        ("g" | "G", _) => Command::Fold,
        _ => return None,
    };
    Some(command)
}

/// Descriptions of keys and gestures for the help dialog.
pub(crate) fn help_rows() -> Vec<(&'static str, &'static str)> {
    vec![
        ("W S", "zoom in, out"),
        ("A D", "pan left, right"),
        ("F, double click", "show everything"),
        ("← →", "previous, next action of the rank"),
        (", .", "previous, next action of the rank"),
        ("↑ ↓", "rank above, below"),
        ("Ctrl+[ Ctrl+]", "along the critical path"),
        ("C", "mark the critical path"),
        ("Enter", "zoom to the selected area, or action"),
        ("Esc", "select nothing"),
        ("/", "search actions"),
        ("M", "select the area of the action; again to extend it"),
        ("P", "pin the rank"),
        ("G", "fold the group of ranks"),
        ("drag", "select an area and sum it up"),
        ("drag on the axis", "zoom into a stretch of time"),
        ("click on a row's name", "pin it; on ▸ ▾ fold its group"),
        ("Shift+drag, middle drag", "pan"),
        ("Ctrl+wheel", "zoom about the pointer; without Ctrl in a focused chart"),
        ("Shift+wheel", "pan"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Modifiers = Modifiers { ctrl: false, alt: false };
    const CTRL: Modifiers = Modifiers { ctrl: true, alt: false };
    const ALT: Modifiers = Modifiers { ctrl: false, alt: true };

    #[test]
    fn browser_keys_are_ignored() {
        for key in ["f", "a", "s", "c", "w", "ArrowLeft"] {
            assert_eq!(command(key, CTRL), None, "Ctrl+{key}");
            assert_eq!(command(key, ALT), None, "Alt+{key}");
        }
        assert_eq!(command("Tab", NONE), None);
        assert_eq!(command("[", NONE), None);
    }

    #[test]
    fn zooming_in_and_out_is_no_change() {
        let (Some(Command::Zoom(inward)), Some(Command::Zoom(outward))) = (command("w", NONE), command("s", NONE))
        else {
            panic!("W and S zoom");
        };
        assert!(inward < 1.0 && (inward * outward - 1.0).abs() < 1e-12);
    }

    #[test]
    fn critical_path_has_separate_keys() {
        assert_eq!(command("]", CTRL), Some(Command::Walk(Step::NextCritical)));
        assert_eq!(command("[", CTRL), Some(Command::Walk(Step::PreviousCritical)));
    }
}
