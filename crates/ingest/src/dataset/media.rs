//! Media in rows: image sizes, video frames and audio seconds, and their conversion by a
//! preprocessing rule.

pub(super) mod listed;

use planner::workload::preprocessing::{ImageSize, Media, Preprocessing};
use planner::workload::{Modality, ShapedItems};

use super::number::{self, Number};
use super::profile::Profile;
use super::value::{List, Value};

/// Maximum number of images in a row, and of clips in a row.
pub const MAX_ROW_ITEMS: usize = 10_000;
/// Maximum number of frames in a row.
pub const MAX_ROW_FRAMES: u32 = 100_000;
/// Maximum edge of an image or frame, in pixels.
pub const MAX_EDGE: u32 = 65_536;
/// Maximum duration of an audio clip: one day, in seconds.
pub const MAX_CLIP_S: f64 = 86_400.0;

/// Media that an import found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MediaReport {
    /// Columns or keys that contain media.
    pub columns: Vec<String>,
    /// Rule; `None` if the user chose no rule.
    pub preprocessing: Option<Preprocessing>,
    /// Rows without an encoder item.
    pub without_items: u64,
    /// Images that the rule does not read.
    pub unread_images: u64,
    /// Video frames that the rule does not read.
    pub unread_frames: u64,
    /// Audio clips that the rule does not read.
    pub unread_clips: u64,
    /// Suggested rule, or the reason why the chosen rule has no effect.
    pub advice: Option<String>,
}

/// Media property in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
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
}

impl Field {
    /// Returns the field for a name. Case, spaces, dots and hyphens are ignored.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let plain = |byte: u8| match byte {
            b' ' | b'-' | b'.' => b'_',
            other => other.to_ascii_lowercase(),
        };
        let name = name.trim();
        let is_name = |known: &str| name.len() == known.len() && name.bytes().map(plain).eq(known.bytes());
        NAMES.iter().find(|(known, _)| is_name(known)).map(|(_, field)| *field)
    }
}

/// Names of media columns and keys.
const NAMES: [(&str, Field); 29] = [
    ("images", Field::Images),
    ("image_sizes", Field::Images),
    ("num_images", Field::Images),
    ("image_count", Field::Images),
    ("n_images", Field::Images),
    ("img_count", Field::Images),
    ("image_width", Field::Width),
    ("img_width", Field::Width),
    ("width", Field::Width),
    ("width_list", Field::Width),
    ("widths", Field::Width),
    ("height_list", Field::Height),
    ("heights", Field::Height),
    ("image_height", Field::Height),
    ("img_height", Field::Height),
    ("height", Field::Height),
    ("frames", Field::Frames),
    ("num_frames", Field::Frames),
    ("n_frames", Field::Frames),
    ("frame_count", Field::Frames),
    ("frame", Field::Frame),
    ("frame_size", Field::Frame),
    ("frame_width", Field::FrameWidth),
    ("frame_height", Field::FrameHeight),
    ("audio_s", Field::Clips),
    ("clips_s", Field::Clips),
    ("clip_s", Field::Clips),
    ("audio_seconds", Field::Clips),
    ("audio_duration_s", Field::Clips),
];

/// Names of durations. They denote audio if a column names an audio file.
const DURATIONS: [&str; 4] = ["duration", "duration_s", "seconds", "audio_duration"];
const SOUND: [&str; 5] = ["audio", "audio_filepath", "audio_path", "audio_file", "wav"];

/// Returns the media columns of a file with index and name. An image count alone is not a media
/// column.
pub(super) fn columns(profiles: &[Profile]) -> Vec<(Field, usize, String)> {
    let is = |profile: &Profile, names: &[&str]| names.iter().any(|name| profile.name.eq_ignore_ascii_case(name));
    let has_sound = profiles.iter().any(|profile| profile.has_values && is(profile, &SOUND));
    let field = |profile: &Profile| {
        let as_clip = has_sound && profile.kind == super::Kind::Number && is(profile, &DURATIONS);
        Field::from_name(&profile.name).or(as_clip.then_some(Field::Clips))
    };
    let found = profiles.iter().enumerate().filter(|(_, profile)| profile.has_values);
    let found: Vec<_> =
        found.filter_map(|(index, profile)| Some((field(profile)?, index, profile.name.clone()))).collect();
    let is_media_column =
        |(field, index, _): &(Field, usize, String)| *field != Field::Images || profiles[*index].has_sizes;
    if found.iter().any(is_media_column) { found } else { Vec::new() }
}

/// Returns a warning that frame counts refer to the raw file, not to the frames that a model reads.
pub(super) fn raw_frames(profiles: &[Profile]) -> Option<String> {
    let frames =
        profiles.iter().find(|profile| profile.has_values && Field::from_name(&profile.name) == Some(Field::Frames))?;
    let rate = ["fps", "duration", "frame_rate", "video_duration"];
    let rate_column = profiles
        .iter()
        .find(|profile| profile.has_values && rate.iter().any(|name| profile.name.eq_ignore_ascii_case(name)))?;
    Some(format!(
        "{} may count the frames of the video files, because {} is given too. Models read 8 to 64 frames of a clip, or 2 per second; the numbers here are used without sampling.",
        frames.name, rate_column.name
    ))
}

/// An element in a media list.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Entry {
    Number(f64),
    /// Width and height.
    Size(f64, f64),
    Other,
}

/// A media list: element count and first elements.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Entries {
    pub(super) count: usize,
    pub(super) first: Vec<Entry>,
}

impl Entries {
    fn new(list: &List<'_>) -> Self {
        Self { count: list.count, first: list.items.iter().take(MAX_ROW_ITEMS + 1).map(entry).collect() }
    }

    /// Returns whether an element is an image size.
    pub(super) fn has_sizes(&self) -> bool {
        self.first.iter().any(|entry| matches!(entry, Entry::Size(..)))
    }
}

/// Parses a number, `[width, height]`, or an object with both.
fn entry(value: &Value<'_>) -> Entry {
    let number = |value: &Value<'_>| match value {
        Value::Number(number) => Some(number.value()),
        _ => None,
    };
    let edges = match value {
        Value::Number(number) => return Entry::Number(number.value()),
        Value::List(List { count: 2, items, .. }) => (items.first().and_then(number), items.get(1).and_then(number)),
        Value::Object(members) => {
            let edge = |edge: &str| members.iter().find(|(name, _)| name == edge).and_then(|(_, value)| number(value));
            (edge("width"), edge("height"))
        }
        _ => (None, None),
    };
    match edges {
        (Some(width), Some(height)) => Entry::Size(width, height),
        _ => Entry::Other,
    }
}

/// Media of a row during reading. An error is the reason why the row is skipped.
#[derive(Debug, Default)]
pub(super) struct RowMedia {
    /// Number of images without size.
    counted: u32,
    images: Vec<ImageSize>,
    /// Image edges in two lists of equal length.
    widths: Vec<u32>,
    heights: Vec<u32>,
    width: Option<u32>,
    height: Option<u32>,
    frames: u32,
    frame_width: Option<u32>,
    frame_height: Option<u32>,
    clips_s: Vec<f64>,
}

impl RowMedia {
    /// Adds a value or a list.
    pub(super) fn value(&mut self, field: Field, value: &Value<'_>) -> Result<(), String> {
        match value {
            Value::List(list) => self.list(field, &Entries::new(list)),
            Value::Object(_) => match entry(value) {
                Entry::Size(width, height) => {
                    self.list(field, &Entries { count: 1, first: vec![Entry::Size(width, height)] })
                }
                _ => Err("an object is not a number".to_owned()),
            },
            // The path of an image.
            Value::Text(text) if field == Field::Images && number::read(text).is_none() => {
                self.counted = listed::count(text);
                Ok(())
            }
            other => self.single(field, other),
        }
    }

    fn single(&mut self, field: Field, value: &Value<'_>) -> Result<(), String> {
        let number = match value {
            Value::Missing => return Ok(()),
            Value::Number(number) => *number,
            Value::Text(text) if text.trim().is_empty() => return Ok(()),
            Value::Text(text) => {
                number::read(text).ok_or_else(|| format!("{:?} is not a number", value.display_text()))?
            }
            Value::Boolean(_) => return Err("true or false is not a number".to_owned()),
            Value::Other(description) => return Err(format!("{description} is not a number")),
            Value::List(_) | Value::Object(_) => return Err("a list is not a number".to_owned()),
        };
        let value = Number::value(number);
        match field {
            Field::Images => self.counted = count(value, MAX_ROW_ITEMS as u32, "images")?,
            Field::Width => self.width = Some(edge(value)?),
            Field::Height => self.height = Some(edge(value)?),
            Field::Frames => self.frames = count(value, MAX_ROW_FRAMES, "frames")?,
            Field::FrameWidth => self.frame_width = Some(edge(value)?),
            Field::FrameHeight => self.frame_height = Some(edge(value)?),
            Field::Frame => return Err(format!("the size of a frame is width and height, not {value}")),
            Field::Clips => self.clips_s.push(seconds(value)?),
        }
        Ok(())
    }

    pub(super) fn list(&mut self, field: Field, entries: &Entries) -> Result<(), String> {
        match field {
            Field::Frame => match entries.first.as_slice() {
                &[Entry::Number(width), Entry::Number(height)] | &[Entry::Size(width, height)] => {
                    let size = size(width, height)?;
                    (self.frame_width, self.frame_height) = (Some(size.width), Some(size.height));
                }
                _ => return Err("the size of a frame is width and height".to_owned()),
            },
            Field::Images | Field::Clips if entries.count > MAX_ROW_ITEMS => {
                let noun = if field == Field::Clips { "clips" } else { "images" };
                return Err(format!("{} {noun} are more than {MAX_ROW_ITEMS}", entries.count));
            }
            Field::Images if entries.has_sizes() => {
                for (index, entry) in entries.first.iter().enumerate() {
                    let Entry::Size(width, height) = *entry else {
                        return Err(format!("image {} has no size", index + 1));
                    };
                    self.images.push(size(width, height).map_err(|why| format!("image {}: {why}", index + 1))?);
                }
            }
            Field::Images => self.counted = entries.count as u32,
            Field::Clips => {
                for (index, entry) in entries.first.iter().enumerate() {
                    let Entry::Number(value) = *entry else {
                        return Err(format!("clip {} is no number of seconds", index + 1));
                    };
                    self.clips_s.push(seconds(value).map_err(|why| format!("clip {}: {why}", index + 1))?);
                }
            }
            Field::Width | Field::Height if entries.count <= MAX_ROW_ITEMS => {
                let list = if field == Field::Width { &mut self.widths } else { &mut self.heights };
                for (index, entry) in entries.first.iter().enumerate() {
                    let Entry::Number(value) = *entry else { return Err(format!("image {} has no size", index + 1)) };
                    list.push(edge(value).map_err(|why| format!("image {}: {why}", index + 1))?);
                }
            }
            Field::Width | Field::Height | Field::Frames | Field::FrameWidth | Field::FrameHeight => {
                return Err("a list is not a number".to_owned());
            }
        }
        Ok(())
    }

    /// Returns the row's media without text, and a repair message.
    ///
    /// A width and a height apply to all images without a listed size. If no image count is given,
    /// they apply to one image. If the row has frames without a size, they apply to the frames.
    pub(super) fn finish(self) -> Result<(Media, Option<&'static str>), String> {
        let Self { counted, mut images, widths, heights, width, height, frames, frame_width, frame_height, clips_s } =
            self;
        let both = |width: Option<u32>, height: Option<u32>, subject: &str| match (width, height) {
            (Some(width), Some(height)) => Ok(Some(ImageSize { width, height })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(format!("{subject} has a width and no height")),
            (None, Some(_)) => Err(format!("{subject} has a height and no width")),
        };
        if widths.len() != heights.len() {
            return Err(format!("{} widths and {} heights of images", widths.len(), heights.len()));
        }
        if !widths.is_empty() && images.is_empty() {
            images = widths.iter().zip(&heights).map(|(&width, &height)| ImageSize { width, height }).collect();
        }
        let image_size = both(width, height, "an image")?;
        let framed = both(frame_width, frame_height, "a frame")?;
        let mut frame = framed;
        match (image_size, counted) {
            (Some(size), 0) if frames > 0 && frame.is_none() && images.is_empty() => frame = Some(size),
            (Some(size), count) if images.is_empty() => images = vec![size; count.max(1) as usize],
            (None, 1..) if images.is_empty() => return Err(format!("{counted} images without sizes")),
            _ => {}
        }
        if frames > 0 && frame.is_none() {
            return Err(format!("{frames} frames without the size of a frame"));
        }
        let repaired =
            (frames == 0 && framed.is_some()).then_some("the size of a frame without frames, read as no video");
        let frame = frame.filter(|_| frames > 0);
        Ok((Media { text_tokens: 0, images, frames, frame, clips_s }, repaired))
    }
}

fn count(value: f64, max: u32, noun: &str) -> Result<u32, String> {
    if value.fract() == 0.0 && (0.0..=f64::from(max)).contains(&value) {
        return Ok(value as u32);
    }
    Err(format!("{value} is no number of {noun} from 0 to {max}"))
}

fn edge(value: f64) -> Result<u32, String> {
    if value.fract() == 0.0 && (1.0..=f64::from(MAX_EDGE)).contains(&value) {
        return Ok(value as u32);
    }
    Err(format!("{value} pixels: edges are 1 to {MAX_EDGE}"))
}

fn size(width: f64, height: f64) -> Result<ImageSize, String> {
    match (edge(width), edge(height)) {
        (Ok(width), Ok(height)) => Ok(ImageSize { width, height }),
        _ => Err(format!("{width} x {height} pixels: edges are 1 to {MAX_EDGE}")),
    }
}

fn seconds(value: f64) -> Result<f64, String> {
    if (0.0..=MAX_CLIP_S).contains(&value) {
        return Ok(value);
    }
    Err(format!("{value} is not from 0 to {MAX_CLIP_S} s"))
}

/// Columns of rows that a rule converts.
#[derive(Debug)]
pub(super) struct Shaping {
    pub(super) columns: ShapedItems,
    pub(super) report: MediaReport,
}

impl Shaping {
    pub(super) fn new(rule: Preprocessing) -> Self {
        Self {
            columns: ShapedItems::new(rule),
            report: MediaReport { preprocessing: Some(rule), ..MediaReport::default() },
        }
    }

    /// Converts a row. Returns its number of encoder items, b(d), or the reason why the row is
    /// skipped.
    pub(super) fn take(&mut self, media: &Media) -> Result<u32, &'static str> {
        let rule = self.columns.preprocessing;
        let shape = rule.shape(media);
        if shape.backbone == 0 {
            return Err("neither text nor anything that the rule reads");
        }
        match rule.modality() {
            Modality::Images => self.report.unread_clips += media.clips_s.len() as u64,
            Modality::Clips => {
                self.report.unread_images += media.images.len() as u64;
                self.report.unread_frames += u64::from(media.frames);
            }
        }
        self.report.without_items += u64::from(shape.batch() == 0);
        self.columns.push(&shape, media.text_tokens);
        Ok(shape.batch())
    }
}

/// Returns advice for media that no rule has read.
pub(super) fn advice(columns: &[String]) -> String {
    // A name without a field is the duration of an audio file.
    let fields: Vec<Field> = columns.iter().map(|name| Field::from_name(name).unwrap_or(Field::Clips)).collect();
    let rules = |modality: Modality| {
        let matching = Preprocessing::ALL.into_iter().filter(|rule| rule.modality() == modality);
        matching.map(Preprocessing::id).collect::<Vec<_>>().join(", ")
    };
    let mut choices = Vec::new();
    if fields.iter().any(|field| *field != Field::Clips) {
        choices.push(format!("{} for images and video", rules(Modality::Images)));
    }
    if fields.contains(&Field::Clips) {
        choices.push(format!("{} for sound", rules(Modality::Clips)));
    }
    format!(
        "{} hold media that no rule has read. Choose the preprocessing of the model: {}",
        columns.join(", "),
        choices.join("; ")
    )
}

#[cfg(test)]
mod tests;
