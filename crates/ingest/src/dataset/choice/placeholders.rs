//! Detects image placeholders in texts of files that name no media.

use super::super::text;
use super::super::value::{Row, Value};
use super::{Measure, Part};

/// Texts with image placeholders in the first rows.
pub(super) struct Placeholders {
    name: String,
    /// Number of texts with placeholders, and number of texts.
    rows: (usize, usize),
}

impl Placeholders {
    /// Returns whether the placeholders are images. A rare one is a part of a text about markup.
    pub(super) const fn are_images(&self) -> bool {
        self.rows.0 * 10 >= self.rows.1
    }

    /// Returns a sentence about the placeholders.
    pub(super) fn sentence(&self) -> String {
        let (tagged, all) = self.rows;
        let name = &self.name;
        if self.are_images() {
            format!("Each <image> in the texts of {name} is counted as an image.")
        } else {
            format!("<image> occurs in {tagged} of the first {all} texts of {name}. It is not counted as an image.")
        }
    }
}

/// Returns the first text column with image placeholders.
pub(super) fn find(parts: &[Part], head: &[&Row<'_>]) -> Option<Placeholders> {
    /// Number of rows compared.
    const ROWS: usize = 1000;
    parts.iter().filter(|part| part.measure == Measure::Text).find_map(|part| {
        let texts = || {
            head.iter().take(ROWS).filter_map(|row| match row.value(part.index, &part.name) {
                Value::Text(text) => Some(&**text),
                _ => None,
            })
        };
        let tagged = texts().filter(|text| text::image_placeholders(text) > 0).count();
        (tagged > 0).then(|| Placeholders { name: part.name.clone(), rows: (tagged, texts().count()) })
    })
}
