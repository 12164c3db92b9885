//! Collects rows and keeps count of what was repaired and what was left out.

use planner::data_aware::{Media, Preprocessing};
use planner::workload::Dataset;

use super::cell::{Cell, clip};
use super::media::{self, MediaReport, Shaping};
use super::number::{self, Number};
use super::{ImportError, Imported, MAX_IMAGES, MAX_LENGTH, MAX_ROWS, Report};

/// Rows read so far.
#[derive(Debug, Default)]
pub(super) struct Rows {
    text_tokens: Vec<u32>,
    images: Vec<u32>,
    report: Report,
    /// Where a rule reads media.
    shaping: Option<Shaping>,
    /// Columns or keys that hold media.
    media: Vec<String>,
}

/// Media of a row without its text and what was repaired, or why the row cannot be read.
pub(super) type ReadMedia = Result<(Media, Option<&'static str>), String>;

impl Rows {
    /// Rows whose media a rule reads, if there is one.
    pub(super) fn of(rule: Option<Preprocessing>) -> Self {
        Self { shaping: rule.map(Shaping::new), ..Self::default() }
    }

    /// Whether a rule reads media.
    pub(super) const fn has_rule(&self) -> bool {
        self.shaping.is_some()
    }

    /// Remembers a column or key that holds media.
    pub(super) fn saw_media(&mut self, name: &str) {
        if self.media.len() < 20 && self.media.iter().all(|known| known != name) {
            self.media.push(name.to_owned());
        }
    }

    /// Takes a row with media. Text may be missing; a row in which the rule finds nothing at all is left out.
    pub(super) fn push_with_media(
        &mut self,
        place: impl Fn() -> String,
        text: Cell<'_>,
        media: ReadMedia,
    ) -> Result<(), ImportError> {
        if self.text_tokens.len() + self.report.skipped as usize >= MAX_ROWS {
            return Err(ImportError::TooManyRows);
        }
        let (tokens, repaired) = match (text, number_of(text)) {
            (Cell::Missing, _) => (0, None),
            (_, Some(number)) => {
                let tokens = whole(number, 0, MAX_LENGTH, "length", &place)?;
                (tokens, matches!(number, Number::Repaired(_)).then(|| format!("read as {tokens}")))
            }
            (_, None) => {
                self.skip(place, &no_number(text));
                return Ok(());
            }
        };
        let (media, of_media) = match media {
            Ok(media) => media,
            Err(why) => {
                self.skip(place, &why);
                return Ok(());
            }
        };
        let media = Media { text_tokens: tokens, ..media };
        let items = self.shaping.as_mut().map_or(Ok(0), |shaping| shaping.take(&media));
        match items {
            Ok(items) => {
                self.text_tokens.push(tokens);
                self.images.push(items);
                if let Some(repair) = repaired.or(of_media.map(str::to_owned)) {
                    self.report.repaired += 1;
                    self.problem(&place, &repair);
                }
            }
            Err(why) => self.skip(place, why),
        }
        Ok(())
    }

    /// Takes a row without images.
    pub(super) fn push(&mut self, place: impl Fn() -> String, length: Cell<'_>) -> Result<(), ImportError> {
        self.take(&place, length, None)
    }

    /// Takes a row of a file that counts images; a missing count is zero images.
    pub(super) fn push_with_images(
        &mut self,
        place: impl Fn() -> String,
        length: Cell<'_>,
        images: Cell<'_>,
    ) -> Result<(), ImportError> {
        self.take(&place, length, Some(images))
    }

    /// Leaves a row out.
    pub(super) fn skip(&mut self, place: impl Fn() -> String, why: &str) {
        self.report.skipped += 1;
        self.problem(&place, why);
    }

    /// The dataset, if enough of the file was readable.
    pub(super) fn finish(
        self,
        format: &'static str,
        source: String,
        alternatives: Vec<String>,
    ) -> Result<Imported, ImportError> {
        let Self { text_tokens, images, report, shaping, media } = self;
        let rows = text_tokens.len() as u64 + report.skipped;
        if rows == 0 {
            return Err(ImportError::NoNumbers { format });
        }
        if text_tokens.is_empty() || report.skipped * 10 > rows {
            let first = report.first_problem.unwrap_or_default();
            let skipped = report.skipped;
            return Err(match shaping {
                Some(_) if !media.is_empty() => ImportError::MediaUnreadable { skipped, rows, first },
                _ => ImportError::MostlyUnreadable { skipped, rows, first },
            });
        }
        let parsed = text_tokens.len() as u64 - report.repaired;
        let (shaped, media) = match shaping {
            Some(Shaping { columns, report }) if !media.is_empty() => {
                (Some(columns), Some(MediaReport { columns: media, ..report }))
            }
            None if !media.is_empty() => {
                let advice = Some(media::advice(&media));
                (None, Some(MediaReport { columns: media, advice, ..MediaReport::default() }))
            }
            _ => (None, None),
        };
        let report = Report { format: format.to_owned(), source, alternatives, parsed, media, ..report };
        Ok(Imported { dataset: Dataset::Rows { text_tokens, images, shaped }, report })
    }

    fn take(
        &mut self,
        place: &dyn Fn() -> String,
        length: Cell<'_>,
        images: Option<Cell<'_>>,
    ) -> Result<(), ImportError> {
        if self.text_tokens.len() + self.report.skipped as usize >= MAX_ROWS {
            return Err(ImportError::TooManyRows);
        }
        let Some(number) = number_of(length) else {
            self.report.skipped += 1;
            self.problem(place, &no_number(length));
            return Ok(());
        };
        let tokens = whole(number, 1, MAX_LENGTH, "length", place)?;
        let mut repair = match number {
            Number::Whole(_) => None,
            Number::Repaired(_) => Some(format!("read as {tokens}")),
        };
        if let Some(images) = images {
            let count = if let Some(number) = number_of(images) {
                whole(number, 0, MAX_IMAGES, "number of images", place)?
            } else {
                repair = Some("no number of images, read as 0".to_owned());
                0
            };
            self.images.push(count);
        }
        self.text_tokens.push(tokens);
        if let Some(repair) = repair {
            self.report.repaired += 1;
            self.problem(place, &repair);
        }
        Ok(())
    }

    fn problem(&mut self, place: &dyn Fn() -> String, what: &str) {
        if self.report.first_problem.is_none() {
            self.report.first_problem = Some(format!("{}: {what}", place()));
        }
    }
}

fn number_of(cell: Cell<'_>) -> Option<Number> {
    match cell {
        Cell::Number(number) => Some(number),
        Cell::Text(text) => number::read(text),
        Cell::Missing | Cell::Other(_) => None,
    }
}

/// Why a cell is no number.
fn no_number(cell: Cell<'_>) -> String {
    match cell {
        Cell::Text(text) => format!("{:?} is not a number", clip(text)),
        Cell::Other(what) => format!("{what} is not a number"),
        Cell::Missing | Cell::Number(_) => "there is no value".to_owned(),
    }
}

/// The number inside its range, rounded where it has decimals.
fn whole(number: Number, least: u32, most: u32, what: &str, place: &dyn Fn() -> String) -> Result<u32, ImportError> {
    let (value, shown) = match number {
        Number::Whole(value) => (value, value.to_string()),
        // Casting saturates, so that nothing large slips through.
        Number::Repaired(value) => (value.round() as i128, value.to_string()),
    };
    let range = i128::from(least)..=i128::from(most);
    match u32::try_from(value) {
        Ok(value) if range.contains(&i128::from(value)) => Ok(value),
        _ => Err(ImportError::BadNumber {
            place: place(),
            value: shown,
            why: format!("is not a {what}: a {what} is a whole number from {least} to {most}"),
        }),
    }
}
