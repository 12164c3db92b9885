//! Columns with properties of media, by name, unit and values.

use super::super::number::{self, Notation, Suffix};
use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{ImportError, Kind, Meaning, names, text};
use super::listed::{self, Medium};

/// Number of rows whose values show files and notations.
pub(super) const ROWS: usize = 200;

/// Media property in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Field {
    /// Image sizes, or image count.
    Images,
    /// Width of all images, or a list with one width per image.
    Width,
    Height,
    Frames,
    /// Both edges of the frames.
    Frame,
    FrameWidth,
    FrameHeight,
    /// Seconds of one or several audio clips.
    Clips,
    /// Image files.
    Picture,
    /// Video files.
    Video,
    /// Files of any medium.
    File,
    /// Duration or frame rate, which denotes a video.
    Rate,
}

/// Names of media columns and keys. If a row has several, the first one is read: `width` may be the width of a box in
/// the image, and `original_width` the width before the image was scaled.
const NAMES: [(Field, &[&str]); 7] = [
    (Field::Images, &["images", "image_sizes", "num_images", "image_count", "n_images", "img_count"]),
    (Field::Width, &["image_width", "img_width", "width", "breite", "original_width", "width_list", "widths"]),
    (Field::Height, &["image_height", "img_height", "height", "höhe", "original_height", "height_list", "heights"]),
    (Field::Frames, &["frames", "num_frames", "n_frames", "nframes", "frame_count"]),
    (Field::Frame, &["frame", "frame_size"]),
    (Field::FrameWidth, &["frame_width"]),
    (Field::FrameHeight, &["frame_height"]),
];

/// Names of audio durations with a unit behind them.
const CLIPS: [&str; 7] = ["audio", "clips", "clip", "audio_duration", "audio_length", "clip_duration", "sound"];
/// Names of durations. They denote audio if a column names an audio file, and else a video.
const DURATIONS: [&str; 5] = ["duration", "seconds", "audio_duration", "video_duration", "clip_duration"];
/// Names of durations with a unit behind them.
const LENGTHS: [&str; 3] = ["length", "video_length", "clip_length"];
const RATES: [&str; 4] = ["fps", "frame_rate", "framerate", "video_fps"];
const SOUND: [&str; 6] = ["audio", "audios", "audio_filepath", "audio_path", "audio_file", "wav"];
const VIDEO: [&str; 8] =
    ["video", "videos", "video_path", "video_paths", "video_file", "video_files", "video_url", "video_name"];

const PIXELS: [&str; 3] = ["px", "pixel", "pixels"];
/// Units of durations and their seconds. `min` and `h` behind an underscore may mean a minimum or a height.
const SECONDS: [(f64, &[&str]); 4] = [
    (1.0, &["s", "sec", "secs", "second", "seconds"]),
    (1e-3, &["ms", "msec", "msecs", "millis", "milliseconds"]),
    (60.0, &["(min)", "mins", "minute", "minutes"]),
    (3600.0, &["(h)", "hr", "hrs", "hour", "hours"]),
];

/// Returns a name in lower case, with underscores in place of spaces, dots and hyphens.
pub(super) fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-', '.'], "_")
}

/// Splits a plain name into base and unit. `min` and `h` keep their brackets.
fn split(name: &str) -> Option<(&str, &str)> {
    let (base, unit) = match name.rfind(['(', '[']) {
        Some(at) => name.split_at(at),
        None => name.rsplit_once('_')?,
    };
    let inner = unit.trim_matches(['(', ')', '[', ']']);
    let is_kept = unit.len() > inner.len() && matches!(inner, "min" | "h");
    let unit = if is_kept { if inner == "h" { "(h)" } else { "(min)" } } else { inner };
    Some((base.trim_end_matches('_'), unit))
}

/// Returns the seconds of a unit.
fn seconds(unit: &str) -> Option<f64> {
    SECONDS.iter().find(|(_, units)| units.contains(&unit)).map(|(seconds, _)| *seconds)
}

/// Returns the field of a name, its preference, and its unit in pixels or seconds.
fn known(name: &str) -> Option<(Field, usize, f64)> {
    let name = plain(name);
    let find = |name: &str| {
        NAMES.iter().find_map(|(field, known)| Some((*field, known.iter().position(|known| *known == name)?, 1.0)))
    };
    find(&name).or_else(|| {
        let (base, unit) = split(&name)?;
        if PIXELS.contains(&unit) {
            let is_edge = |field| {
                matches!(field, Field::Width | Field::Height | Field::Frame | Field::FrameWidth | Field::FrameHeight)
            };
            return find(base).filter(|(field, ..)| is_edge(*field));
        }
        let rank = CLIPS.iter().position(|known| *known == base)?;
        Some((Field::Clips, rank, seconds(unit)?))
    })
}

/// Returns the preference and the unit of a duration in seconds.
fn duration(name: &str) -> Option<(usize, f64)> {
    let name = plain(name);
    if let Some(rank) = DURATIONS.iter().position(|known| *known == name) {
        return Some((CLIPS.len() + rank, 1.0));
    }
    let (base, unit) = split(&name)?;
    let rank = DURATIONS.iter().chain(&LENGTHS).position(|known| *known == base)?;
    Some((CLIPS.len() + rank, seconds(unit)?))
}

impl Field {
    /// Returns the field for a name, which may end with a unit. Case, spaces, dots and hyphens are ignored.
    pub(in super::super) fn from_name(name: &str) -> Option<Self> {
        known(name).map(|(field, ..)| field)
    }

    /// Returns whether the values are sizes, counts or durations, and not files.
    pub(in super::super) const fn is_property(self) -> bool {
        !matches!(self, Self::Picture | Self::Video | Self::File | Self::Rate)
    }
}

/// A media column of a file.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct MediaColumn {
    pub(in super::super) field: Field,
    pub(in super::super) index: usize,
    pub(in super::super) name: String,
    /// Preference among columns of the same field; lower is preferred.
    pub(in super::super) rank: usize,
    /// Unit of the values in pixels or seconds.
    unit: f64,
    notation: Notation,
}

impl MediaColumn {
    /// Returns the number of a value in pixels or seconds; `None` if there is none.
    pub(super) fn number(&self, value: &Value<'_>) -> Result<Option<f64>, String> {
        let text = match value {
            Value::Missing => return Ok(None),
            Value::Number(number) => return Ok(Some(number.value() * self.unit)),
            Value::Text(text) => text.trim(),
            Value::Boolean(_) => return Err("true or false is not a number".to_owned()),
            Value::Other(description) => return Err(format!("{description} is not a number")),
            Value::List(_) | Value::Object(_) => return Err("a list is not a number".to_owned()),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let pixels =
            || PIXELS.iter().find_map(|unit| text.strip_suffix(unit)).and_then(|text| self.notation.read(text));
        let number = match (self.notation.read(text), number::quantity(text)) {
            (Some(number), _) => Some(number.value() * self.unit),
            (None, Some((seconds, Suffix::Seconds))) if self.field == Field::Clips => Some(seconds),
            _ if self.field == Field::Clips => None,
            _ => pixels().map(number::Number::value),
        };
        let number = number.ok_or_else(|| {
            format!("{:?} is not a number; write digits with a decimal point, as in 10.5", value.display_text())
        })?;
        Ok(Some(number))
    }

    /// Returns the elements of a list in pixels or seconds.
    pub(super) const fn scaled(&self, number: f64) -> f64 {
        number * self.unit
    }
}

/// Returns the media columns of a file. Files without sizes, frames and durations have none. An image count alone is
/// no media column.
pub(in super::super) fn columns(profiles: &[Profile], head: &[&Row<'_>]) -> Vec<MediaColumn> {
    let holds = |index: usize, medium: Medium| {
        let name = profiles[index].name.as_str();
        head.iter().take(ROWS).any(|row| listed::holds_file(row.value(index, name), medium))
    };
    let is = |profile: &Profile, known: &[&str]| known.contains(&plain(&profile.name).as_str());
    let has_sound = profiles
        .iter()
        .enumerate()
        .any(|(index, profile)| profile.has_values && (is(profile, &SOUND) || holds(index, Medium::Sound)));
    let has_frames =
        profiles.iter().any(|profile| profile.has_values && Field::from_name(&profile.name) == Some(Field::Frames));
    let field = |index: usize, profile: &Profile| {
        if let Some(known) = known(&profile.name) {
            return Some(known);
        }
        let duration = duration(&profile.name);
        let as_clip = duration.filter(|_| has_sound && profile.kind == Kind::Number);
        if let Some((rank, unit)) = as_clip {
            return Some((Field::Clips, rank, unit));
        }
        // The bytes of files are not read for the kind of the row.
        let is_bytes = matches!(profile.kind, Kind::Binary | Kind::Object);
        let is_file = !is_bytes && !profile.has_prose;
        let field = if is(profile, &VIDEO) && !(is_bytes && has_frames) {
            Field::Video
        } else if profile.meaning == Meaning::Images && !is_bytes && !names::holds_any_media(&profile.name) {
            Field::Picture
        } else if is(profile, &RATES) || ((duration.is_some() || is(profile, &["duration_min"])) && !has_sound) {
            Field::Rate
        } else if is_file && (holds(index, Medium::Image) || holds(index, Medium::Video)) {
            Field::File
        } else {
            return None;
        };
        Some((field, 0, 1.0))
    };
    let column = |(index, profile): (usize, &Profile)| {
        let (field, rank, unit) = field(index, profile).filter(|_| profile.has_values)?;
        let texts = texts(head, index, &profile.name);
        let notation = if field == Field::Clips { of_seconds(profile, texts) } else { of_counts(profile, texts) };
        Some(MediaColumn { field, index, name: profile.name.clone(), rank, unit, notation })
    };
    let found: Vec<MediaColumn> = profiles.iter().enumerate().filter_map(column).collect();
    let is_media = |column: &MediaColumn| {
        column.field.is_property() && (column.field != Field::Images || profiles[column.index].has_sizes)
    };
    if found.iter().any(is_media) { found } else { Vec::new() }
}

/// Returns the texts of a column in the first rows.
fn texts<'r>(head: &'r [&Row<'_>], index: usize, name: &'r str) -> impl Iterator<Item = &'r str> + Clone {
    head.iter().take(ROWS).filter_map(move |row| match row.value(index, name) {
        Value::Text(text) => Some(&**text),
        _ => None,
    })
}

/// Returns the notation of whole numbers: a point in `1.024` separates thousands, because no edge has decimals.
fn of_counts<'t>(profile: &Profile, mut texts: impl Iterator<Item = &'t str> + Clone) -> Notation {
    let has_comma = texts.clone().any(|text| text.contains(','));
    match &profile.notation {
        Ok(Notation::Point) => Notation::Point,
        Ok(Notation::Comma) if has_comma => Notation::Comma,
        _ if texts.any(|text| number::read(text).is_some_and(|number| number.value().fract() != 0.0)) => {
            Notation::Comma
        }
        _ => Notation::Point,
    }
}

/// Returns the notation of durations: a point without commas in the column is a decimal point.
fn of_seconds<'t>(profile: &Profile, mut texts: impl Iterator<Item = &'t str>) -> Notation {
    match &profile.notation {
        Ok(Notation::Comma) if texts.any(|text| text.contains(',')) => Notation::Comma,
        _ => Notation::Point,
    }
}

/// Returns an error for durations such as `10,125` in every row, which have two readings.
pub(in super::super) fn check(columns: &[MediaColumn], head: &[&Row<'_>]) -> Result<(), ImportError> {
    for column in columns.iter().filter(|column| column.field == Field::Clips && column.notation == Notation::Point) {
        let mut texts = texts(head, column.index, &column.name);
        let has_decimals = texts.clone().any(|text| text.contains('.'));
        if let Some(value) = texts.find(|text| text.contains(',')).filter(|_| !has_decimals) {
            return Err(ImportError::TwoReadings { column: column.name.clone(), value: value.to_owned() });
        }
    }
    Ok(())
}

/// Returns whether a value names something: it is not empty, false or 0.
pub(super) fn is_present(value: &Value<'_>) -> bool {
    let is_zero =
        matches!(value, Value::Boolean(false)) || matches!(value, Value::Number(number) if number.value() == 0.0);
    !is_zero && !text::is_void(value)
}
