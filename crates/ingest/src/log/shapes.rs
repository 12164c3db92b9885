//! Step lines that end before the other lines of their kind do.
//!
//! A crash or a full disk cuts a line, and the next start writes behind it. Lines of a trainer differ in their numbers only, so a
//! line that is the beginning of an earlier one and ends with a number is cut, and its last number is not that of the step.

use super::cut;
use super::point::Source;
use super::reading::{Reading, Tear};
use super::steps::Mark;

/// Maximum number of shapes that are compared.
const MAX_SHAPES: usize = 16;

/// Shapes of the step lines so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Shapes {
    /// Shapes of complete lines.
    complete: Vec<String>,
    /// Shapes that occurred once, as the beginning of a complete line.
    doubtful: Vec<String>,
    /// True if a Megatron-LM line ended with a bar. Later lines without it are torn.
    has_bars: bool,
    edge: Edge,
}

/// Step lines that end with a number at one column, each before a line without a step, as in a file that is wrapped at a
/// fixed width.
#[derive(Debug, Clone, Default)]
struct Edge {
    width: usize,
    steps: u32,
    /// True if the last line was a step line of this width.
    is_open: bool,
    /// True if a line contradicts.
    is_natural: bool,
}

/// Minimum number of such lines.
const MIN_WRAPPED: u32 = 3;

impl Shapes {
    /// Compares the end of a line. `is_step` is true for step lines.
    pub(super) fn end(&mut self, text: &str, is_step: bool) {
        let edge = &mut self.edge;
        let width = text.trim_end().chars().count();
        let is_at_edge = is_step && cut::may_continue(text) && (edge.steps == 0 || width == edge.width);
        edge.is_natural |= (is_step && (edge.is_open || !is_at_edge)) || (edge.steps > 0 && width > edge.width);
        edge.is_open = is_step;
        if is_step {
            (edge.width, edge.steps) = (width, edge.steps + 1);
        }
    }

    /// Returns a note if the file may be wrapped.
    pub(super) fn wrapped(&self) -> Option<String> {
        let Edge { width, steps, is_natural, .. } = self.edge;
        (steps >= MIN_WRAPPED && !is_natural).then(|| {
            format!(
                "each step line ends with a number at column {width}, and another line follows: if the file is wrapped at this \
                 width, the last numbers are cut, and the rest of each line is not read"
            )
        })
    }

    /// Returns the reading of a line, or that the line is cut.
    pub(super) fn checked(&mut self, reading: Reading, text: &str) -> Reading {
        let is_cut = match source(&reading) {
            Some(Source::Megatron) => {
                let has_bar = text.trim_end().ends_with('|');
                self.has_bars |= has_bar;
                if self.has_bars { !has_bar } else { self.is_cut(text) }
            }
            Some(Source::ProgressBar | Source::HuggingFaceDict | Source::JsonLines | Source::Mlperf) | None => false,
            Some(_) => self.is_cut(text),
        };
        if is_cut { Reading::Torn(Tear::Cut) } else { reading }
    }

    /// Returns true the first time that a line is the beginning of an earlier line. A trainer that adds a metric to some of its
    /// lines prints the shorter shape again.
    fn is_cut(&mut self, text: &str) -> bool {
        let shape = shape(text);
        if self.complete.contains(&shape) {
            return false;
        }
        let is_beginning = |whole: &String| whole.len() > shape.len() && whole.starts_with(&shape);
        if cut::may_continue(text) && self.complete.iter().any(is_beginning) {
            let Some(at) = self.doubtful.iter().position(|doubtful| *doubtful == shape) else {
                self.doubtful.truncate(MAX_SHAPES - 1);
                self.doubtful.insert(0, shape);
                return true;
            };
            self.doubtful.remove(at);
        }
        self.complete.truncate(MAX_SHAPES - 1);
        self.complete.insert(0, shape);
        false
    }
}

/// Returns whether a reading is a step line with a form of its own.
pub(super) fn is_step(reading: &Reading) -> bool {
    source(reading).is_some()
}

fn source(reading: &Reading) -> Option<Source> {
    match reading {
        Reading::Listed { reading, .. } => step_source(reading),
        reading => step_source(reading),
    }
}

/// Returns the source of a step line. A line that continues the step of the line before it has no form of its own.
fn step_source(reading: &Reading) -> Option<Source> {
    match reading {
        Reading::Step { point, mark: Mark::Named | Mark::Counted, .. } => Some(point.source),
        _ => None,
    }
}

/// Returns a line with each number as `#` and each gap as one blank. A number includes its sign, exponent and unit.
fn shape(text: &str) -> String {
    let mut shape = String::with_capacity(text.len());
    let mut characters = text.trim_end().chars().peekable();
    while let Some(character) = characters.next() {
        let is_sign = matches!(character, '-' | '+' | '.') && characters.peek().is_some_and(char::is_ascii_digit);
        if character.is_ascii_digit() || is_sign {
            while characters.next_if(|&next| next.is_alphanumeric() || matches!(next, '.' | ',' | '-' | '+')).is_some()
            {
            }
            shape.push('#');
        } else if character.is_whitespace() {
            while characters.next_if(|next| next.is_whitespace()).is_some() {}
            shape.push(' ');
        } else {
            shape.push(character);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_shape() {
        let line = "step:  20  loss: -8.1  lr: 1.5e-05  tps: 5,000  memory: 10.00GiB(12.6%)";
        assert_eq!(shape(line), "step: # loss: # lr: # tps: # memory: #(#%)");
        assert_eq!(shape("a | lr: 1e-"), "a | lr: #");
        assert_eq!(shape("tps: 5,"), "tps: #");
    }

    #[test]
    fn the_beginning_of_a_line_is_cut_once() {
        let mut shapes = Shapes::default();
        let cut = |shapes: &mut Shapes, line: &str| shapes.is_cut(line);
        assert!(!cut(&mut shapes, "step: 1 loss: 2.5"));
        assert!(!cut(&mut shapes, "step: 2 loss: 2.5 val: 2.5"), "a metric is added");
        assert!(!cut(&mut shapes, "step: 3 loss: 2.5"), "this shape is known");
        assert!(cut(&mut shapes, "step: 4"));
        assert!(!cut(&mut shapes, "step: 5"), "the second line of a shape is no accident");
        assert!(!cut(&mut shapes, "step: 6 loss: 2.5%"), "the percent sign ends the value");
    }
}
