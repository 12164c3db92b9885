//! Collects rows, and counts repaired and skipped rows.

use std::collections::BTreeMap;

use planner::workload::Dataset;
use planner::workload::preprocessing::{Media, Preprocessing};

use super::choice::{Images, Length};
use super::media::{self, MediaReport, Shaping};
use super::number::Number;
use super::value::Location;
use super::{Candidate, ImportError, Imported, MAX_IMAGES, MAX_LENGTH, MAX_ROWS, Options, Report, histogram};

#[derive(Debug, Default)]
pub(super) struct Rows {
    text_tokens: Vec<u32>,
    /// Empty until a row has images.
    images: Vec<u32>,
    /// Samples by length if each row represents several samples.
    weights: Option<BTreeMap<u32, f64>>,
    /// Number of rows with a weight.
    weighted: u64,
    /// True if rows are aggregated by length, with unlimited row count.
    is_counted: bool,
    report: Report,
    /// Number of rows skipped because of empty text.
    empty: u64,
    /// Rule that reads media.
    shaping: Option<Shaping>,
    /// Columns or keys that contain media.
    media: Vec<String>,
}

/// Number of samples in a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Samples {
    /// The file has no weight column.
    Single,
    /// The number in the weight column.
    Counted(Number),
    /// The weight column has no number.
    Missing,
}

/// Media of a row without its text, and the repair message; or the reason why the row cannot be
/// read.
pub(super) type ReadMedia = Result<(Media, Option<&'static str>), String>;

impl Rows {
    /// Creates the collection from options.
    pub(super) fn new(options: &Options<'_>) -> Self {
        let weights = options.as_histogram.then(BTreeMap::new);
        Self { weights, is_counted: options.as_histogram, ..Self::with_rule(options.preprocessing) }
    }

    /// Creates a collection that reads media with the rule.
    pub(super) fn with_rule(rule: Option<Preprocessing>) -> Self {
        Self { shaping: rule.map(Shaping::new), ..Self::default() }
    }

    /// Declares that each row represents several samples.
    pub(super) fn name_weights(&mut self, has_weights: bool) {
        self.weights = (has_weights || self.is_counted).then(BTreeMap::new);
    }

    /// Adds a row with length, images and sample count.
    pub(super) fn add(
        &mut self,
        location: Location,
        length: Length,
        images: Option<Images>,
        samples: Samples,
    ) -> Result<(), ImportError> {
        self.check_capacity()?;
        if self.is_counted
            && !matches!(
                images,
                None | Some(Images::Listed(0) | Images::Unreadable | Images::Counted(Number::Integer(0)))
            )
        {
            return Err(ImportError::TooManyRows);
        }
        let number = match length {
            Length::Tokens(number) => number,
            Length::Missing => {
                self.skip(|| location.to_string(), "there is no value");
                return Ok(());
            }
            Length::Unreadable(why) => {
                self.empty += u64::from(why == super::choice::NO_TEXT);
                self.skip(|| location.to_string(), &why);
                return Ok(());
            }
        };
        let Some(tokens) = self.length(number, 1, &|| location.to_string())? else { return Ok(()) };
        let mut repair = matches!(number, Number::Repaired(_)).then(|| format!("read as {tokens}"));
        if let Some(weights) = &mut self.weights {
            let samples = match samples {
                Samples::Single => Some(1.0),
                Samples::Counted(number) => Some(number.value()).filter(|samples| samples.is_finite()),
                Samples::Missing => None,
            };
            match samples {
                Some(samples) if samples >= 0.0 => {
                    *weights.entry(tokens).or_default() += samples;
                    self.weighted += 1;
                }
                Some(samples) => {
                    let why = "is not a number of samples: it is zero or more".to_owned();
                    return Err(ImportError::BadNumber {
                        location: location.to_string(),
                        value: samples.to_string(),
                        why,
                    });
                }
                None => {
                    self.skip(|| location.to_string(), "there is no number of samples");
                    return Ok(());
                }
            }
        } else {
            let count = match images {
                Some(Images::Counted(number)) => {
                    Some(integer_in_range(number, 0, MAX_IMAGES, "number of images", &|| location.to_string())?)
                }
                Some(Images::Listed(count)) => Some(count.min(MAX_IMAGES)),
                Some(Images::Unreadable) => {
                    repair = Some("no number of images, read as 0".to_owned());
                    Some(0)
                }
                None => None,
            };
            self.add_images(count);
            self.text_tokens.push(tokens);
        }
        if let Some(repair) = repair {
            self.report.repaired += 1;
            self.problem(&|| location.to_string(), &repair);
        }
        Ok(())
    }

    /// Adds a row with media. Text may be missing. A row in which the rule finds nothing is
    /// skipped.
    pub(super) fn add_with_media(
        &mut self,
        location: Location,
        text: Option<Length>,
        media: ReadMedia,
    ) -> Result<(), ImportError> {
        self.check_capacity()?;
        let (tokens, repair) = match text {
            None | Some(Length::Missing) => (0, None),
            Some(Length::Tokens(number)) => {
                let Some(tokens) = self.length(number, 0, &|| location.to_string())? else { return Ok(()) };
                (tokens, matches!(number, Number::Repaired(_)).then(|| format!("read as {tokens}")))
            }
            Some(Length::Unreadable(why)) if why == super::choice::NO_TEXT => (0, None),
            Some(Length::Unreadable(why)) => {
                self.skip(|| location.to_string(), &why);
                return Ok(());
            }
        };
        self.shape(&|| location.to_string(), tokens, repair, media);
        Ok(())
    }

    /// Validates a length. Skips the row and returns `None` if the length is below `least`, such as
    /// 0 for an empty text and -1 for a missing value.
    fn length(&mut self, number: Number, min: u32, location: &dyn Fn() -> String) -> Result<Option<u32>, ImportError> {
        if number.value().round() < f64::from(min) {
            let why = format!("{} is not a length: {}", format_number(number), rule("length", min, MAX_LENGTH));
            self.skip(location, &why);
            return Ok(None);
        }
        integer_in_range(number, min, MAX_LENGTH, "length", location).map(Some)
    }

    /// Converts the row's media with the rule.
    fn shape(&mut self, location: &dyn Fn() -> String, tokens: u32, repair: Option<String>, media: ReadMedia) {
        let (media, media_repair) = match media {
            Ok(media) => media,
            Err(why) => return self.skip(location, &why),
        };
        let media = Media { text_tokens: tokens, ..media };
        match self.shaping.as_mut().map_or(Ok(0), |shaping| shaping.take(&media)) {
            Ok(items) => {
                self.text_tokens.push(tokens);
                self.images.push(items);
                if let Some(repair) = repair.or(media_repair.map(str::to_owned)) {
                    self.report.repaired += 1;
                    self.problem(location, &repair);
                }
            }
            Err(why) => self.skip(location, why),
        }
    }

    /// Adds the images of the next row. Rows before the first row with images have none.
    fn add_images(&mut self, count: Option<u32>) {
        match count {
            Some(count) if self.images.is_empty() && count == 0 && self.text_tokens.is_empty() => self.images.push(0),
            Some(count) => {
                self.images.resize(self.text_tokens.len(), 0);
                self.images.push(count);
            }
            None if self.images.is_empty() => {}
            None => self.images.push(0),
        }
    }

    fn check_capacity(&self) -> Result<(), ImportError> {
        let rows = self.text_tokens.len() as u64 + self.weighted + self.report.skipped;
        if rows >= MAX_ROWS as u64 && !self.is_counted { Err(ImportError::TooManyRows) } else { Ok(()) }
    }

    /// Returns whether a rule reads media.
    pub(super) const fn has_rule(&self) -> bool {
        self.shaping.is_some()
    }

    /// Records a column or key that contains media.
    pub(super) fn saw_media(&mut self, name: &str) {
        if self.media.len() < 20 && self.media.iter().all(|known| known != name) {
            self.media.push(name.to_owned());
        }
    }

    /// Adds a length from a file that contains only lengths.
    pub(super) fn push(&mut self, location: impl Fn() -> String, number: Number) -> Result<(), ImportError> {
        self.check_capacity()?;
        let Some(tokens) = self.length(number, 1, &location)? else { return Ok(()) };
        self.text_tokens.push(tokens);
        if let Number::Repaired(_) = number {
            self.report.repaired += 1;
            self.problem(&location, &format!("read as {tokens}"));
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, location: impl Fn() -> String, why: &str) {
        self.report.skipped += 1;
        self.problem(&location, why);
    }

    /// Returns the dataset, or an error if too many rows are unreadable.
    pub(super) fn finish(
        self,
        format: &'static str,
        source: String,
        candidates: Vec<Candidate>,
        warnings: Vec<String>,
    ) -> Result<Imported, ImportError> {
        let Self { text_tokens, images, weights, weighted, is_counted, report, empty, shaping, media, .. } = self;
        let mut warnings = warnings;
        let read = text_tokens.len() as u64 + weighted;
        let rows = read + report.skipped;
        if rows == 0 {
            return Err(ImportError::NoNumbers { format });
        }
        if empty * 10 > rows {
            warnings.push(format!("{empty} of {rows} rows have no text. They are left out."));
        }
        if read == 0 || (report.skipped - empty) * 10 > rows {
            let first = report.first_problem.unwrap_or_default();
            let skipped = report.skipped;
            return Err(match shaping {
                Some(_) if !media.is_empty() => ImportError::MediaUnreadable { skipped, rows, first },
                _ => ImportError::MostlyUnreadable { skipped, rows, first },
            });
        }
        warnings.extend(shaping.as_ref().and_then(Shaping::cut));
        let parsed = read - report.repaired;
        let mut report = Report { format: format.to_owned(), source, candidates, parsed, warnings, ..report };
        if let Some(weights) = weights {
            let shares: Vec<f64> = weights.values().copied().collect();
            if !is_counted && !histogram::shares::are(&shares) {
                report.warnings.push(histogram::samples::weighted(weighted, shares.iter().sum()));
            }
            return histogram::weighted(weights, report);
        }
        let (shaped, media) = match shaping {
            Some(Shaping { columns, report, .. }) if !media.is_empty() => {
                (Some(columns), Some(MediaReport { columns: media, ..report }))
            }
            None if !media.is_empty() => {
                let advice = Some(media::advice(&media));
                (None, Some(MediaReport { columns: media, advice, ..MediaReport::default() }))
            }
            _ => (None, None),
        };
        Ok(Imported { dataset: Dataset::Rows { text_tokens, images, shaped }, report: Report { media, ..report } })
    }

    fn problem(&mut self, location: &dyn Fn() -> String, message: &str) {
        if self.report.first_problem.is_none() {
            self.report.first_problem = Some(format!("{}: {message}", location()));
        }
    }
}

/// Rounds a number and checks its range.
fn integer_in_range(
    number: Number,
    min: u32,
    max: u32,
    quantity: &str,
    location: &dyn Fn() -> String,
) -> Result<u32, ImportError> {
    let value = match number {
        Number::Integer(value) => value,
        // The cast saturates, so large values fail the range check.
        Number::Repaired(value) => value.round() as i128,
    };
    let range = i128::from(min)..=i128::from(max);
    match u32::try_from(value) {
        Ok(value) if range.contains(&i128::from(value)) => Ok(value),
        _ => Err(ImportError::BadNumber {
            location: location(),
            value: format_number(number),
            why: format!("is not a {quantity}: {}", rule(quantity, min, max)),
        }),
    }
}

/// Formats a number for a message.
fn format_number(number: Number) -> String {
    match number {
        Number::Integer(value) => value.to_string(),
        Number::Repaired(value) => value.to_string(),
    }
}

/// Describes the range of a quantity as a sentence.
fn rule(quantity: &str, min: u32, max: u32) -> String {
    format!("a {quantity} is a whole number from {min} to {max}")
}
