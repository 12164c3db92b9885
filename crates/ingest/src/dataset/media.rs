//! Media in rows: image sizes, video frames and audio seconds, and their conversion by a
//! preprocessing rule.

mod column;
mod doubts;
pub(super) mod listed;

use planner::workload::preprocessing::{ImageSize, Media, Preprocessing};
use planner::workload::{Modality, ShapedItems};

use super::number;
use super::rows::ReadMedia;
use super::value::{List, Value};

pub(super) use column::{Field, MediaColumn, check, columns};
pub(super) use doubts::{doubts, hint, unread_text};
use listed::Medium;

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
    /// Number of image files under a known name.
    pictures: u32,
    /// True if a column of any files has an image in this row.
    has_image_file: bool,
    /// True if the row names a video, its duration or its frame rate.
    has_video: bool,
    images: Vec<ImageSize>,
    /// Image edges in two lists of equal length.
    widths: Vec<u32>,
    heights: Vec<u32>,
    /// Edge, and preference of its column.
    width: Option<(usize, u32)>,
    height: Option<(usize, u32)>,
    frames: Option<u32>,
    frame_width: Option<u32>,
    frame_height: Option<u32>,
    clips_s: Vec<f64>,
}

impl RowMedia {
    /// Adds a value or a list. Of several columns for one field, the first one with a value counts.
    pub(super) fn value(&mut self, column: &MediaColumn, value: &Value<'_>) -> Result<(), String> {
        let field = column.field;
        if !field.is_property() {
            self.see(field, value);
            return Ok(());
        }
        match value {
            Value::List(list) => self.list(column, &Entries::new(list)),
            Value::Object(_) => match entry(value) {
                Entry::Size(width, height) => {
                    self.list(column, &Entries { count: 1, first: vec![Entry::Size(width, height)] })
                }
                _ => Err("an object is not a number".to_owned()),
            },
            // The path of an image.
            Value::Text(text) if field == Field::Images && number::read(text).is_none() => {
                self.counted = if self.counted == 0 { listed::count(text) } else { self.counted };
                Ok(())
            }
            _ if self.has(field) => Ok(()),
            other => column.number(other)?.map_or(Ok(()), |number| self.single(column, number)),
        }
    }

    /// Returns whether a preferred column has given the number of a field.
    const fn has(&self, field: Field) -> bool {
        match field {
            Field::Images => self.counted > 0,
            Field::Width => self.width.is_some(),
            Field::Height => self.height.is_some(),
            Field::Frames => self.frames.is_some(),
            Field::FrameWidth => self.frame_width.is_some(),
            Field::FrameHeight => self.frame_height.is_some(),
            Field::Clips => !self.clips_s.is_empty(),
            Field::Frame | Field::Picture | Field::Video | Field::File | Field::Rate => false,
        }
    }

    /// Notes which media a row names.
    fn see(&mut self, field: Field, value: &Value<'_>) {
        match field {
            _ if !column::is_present(value) => {}
            Field::Picture => self.pictures = self.pictures.max(listed::images(value, false)),
            Field::File => {
                self.has_image_file |= listed::holds_file(value, Medium::Image);
                self.has_video |= listed::holds_file(value, Medium::Video);
            }
            _ => self.has_video = true,
        }
    }

    fn single(&mut self, column: &MediaColumn, value: f64) -> Result<(), String> {
        match column.field {
            Field::Images => self.counted = count(value, MAX_ROW_ITEMS as u32, "images")?,
            Field::Width => self.width = Some((column.rank, edge(value)?)),
            Field::Height => self.height = Some((column.rank, edge(value)?)),
            Field::Frames => self.frames = Some(count(value, MAX_ROW_FRAMES, "frames")?),
            Field::FrameWidth => self.frame_width = Some(edge(value)?),
            Field::FrameHeight => self.frame_height = Some(edge(value)?),
            Field::Frame => return Err(format!("the size of a frame is width and height, not {value}")),
            Field::Clips => self.clips_s.push(seconds(value)?),
            Field::Picture | Field::Video | Field::File | Field::Rate => {}
        }
        Ok(())
    }

    fn list(&mut self, column: &MediaColumn, entries: &Entries) -> Result<(), String> {
        match column.field {
            Field::Frame => match entries.first.as_slice() {
                &[Entry::Number(width), Entry::Number(height)] | &[Entry::Size(width, height)] => {
                    let size = size(width, height)?;
                    self.frame_width.get_or_insert(size.width);
                    self.frame_height.get_or_insert(size.height);
                }
                _ => return Err("the size of a frame is width and height".to_owned()),
            },
            Field::Images | Field::Clips if entries.count > MAX_ROW_ITEMS => {
                let noun = if column.field == Field::Clips { "clips" } else { "images" };
                return Err(format!("{} {noun} are more than {MAX_ROW_ITEMS}", entries.count));
            }
            Field::Images if entries.has_sizes() => {
                let sizes = entries.first.iter().enumerate().map(|(index, entry)| match *entry {
                    Entry::Size(width, height) => {
                        size(width, height).map_err(|why| format!("image {}: {why}", index + 1))
                    }
                    _ => Err(format!("image {} has no size", index + 1)),
                });
                let sizes = sizes.collect::<Result<Vec<ImageSize>, String>>()?;
                if self.images.is_empty() {
                    self.images = sizes;
                }
            }
            Field::Images if self.counted > 0 => {}
            Field::Images => self.counted = entries.count as u32,
            Field::Clips if !self.clips_s.is_empty() => {}
            Field::Clips => {
                for (index, entry) in entries.first.iter().enumerate() {
                    let Entry::Number(value) = *entry else {
                        return Err(format!("clip {} is no number of seconds", index + 1));
                    };
                    let clip = seconds(column.scaled(value)).map_err(|why| format!("clip {}: {why}", index + 1))?;
                    self.clips_s.push(clip);
                }
            }
            Field::Width | Field::Height if entries.count <= MAX_ROW_ITEMS => {
                let list = if column.field == Field::Width { &mut self.widths } else { &mut self.heights };
                if !list.is_empty() {
                    return Ok(());
                }
                for (index, entry) in entries.first.iter().enumerate() {
                    let Entry::Number(value) = *entry else { return Err(format!("image {} has no size", index + 1)) };
                    list.push(edge(value).map_err(|why| format!("image {}: {why}", index + 1))?);
                }
            }
            Field::Width | Field::Height | Field::Frames | Field::FrameWidth | Field::FrameHeight => {
                return Err("a list is not a number".to_owned());
            }
            Field::Picture | Field::Video | Field::File | Field::Rate => {}
        }
        Ok(())
    }

    /// Returns the row's media without text, and a repair message.
    ///
    /// A width and a height apply to all images without a listed size. If no image count is given,
    /// they apply to one image. If the row has frames without a size, they apply to the frames. A rule for sound needs
    /// no sizes: images and frames are only counted.
    pub(super) fn finish(self, modality: Modality) -> ReadMedia {
        let needs_sizes = modality == Modality::Images;
        let frames = self.frames.unwrap_or(0);
        let image_size = pair(self.width, self.height)?;
        if self.widths.len() != self.heights.len() {
            return Err(format!("{} widths and {} heights of images", self.widths.len(), self.heights.len()));
        }
        let mut images = self.images;
        if images.is_empty() {
            images =
                self.widths.iter().zip(&self.heights).map(|(&width, &height)| ImageSize { width, height }).collect();
        }
        // A preview image of a video is none of its frames.
        let counted = if self.counted == 0 && frames == 0 { self.pictures } else { self.counted };
        if counted as usize > MAX_ROW_ITEMS {
            return Err(format!("{counted} images are more than {MAX_ROW_ITEMS}"));
        }
        if !images.is_empty() && counted as usize > images.len() {
            return Err(format!("{counted} images and the sizes of only {}", images.len()));
        }
        let has_images = counted > 0 || !images.is_empty() || self.has_image_file;
        let is_video = self.has_video && frames == 0 && !has_images;
        if is_video && needs_sizes {
            return Err(VIDEO.to_owned());
        }
        let framed = match (self.frame_width, self.frame_height) {
            (Some(width), Some(height)) => Some(ImageSize { width, height }),
            (None, None) => None,
            (Some(_), None) => return Err("a frame has a width and no height".to_owned()),
            (None, Some(_)) => return Err("a frame has a height and no width".to_owned()),
        };
        let mut frame = framed;
        match (image_size.filter(|_| !is_video), counted) {
            (Some(size), 0) if frames > 0 && frame.is_none() && images.is_empty() => frame = Some(size),
            (Some(size), count) if images.is_empty() => images = vec![size; count.max(1) as usize],
            (None, 1..) if images.is_empty() && needs_sizes => return Err(format!("{counted} images without sizes")),
            (None, 1..) if images.is_empty() => images = vec![ImageSize { width: 0, height: 0 }; counted as usize],
            _ => {}
        }
        if frames > 0 && frame.is_none() && needs_sizes {
            return Err(format!("{frames} frames without the size of a frame"));
        }
        let repaired =
            (frames == 0 && framed.is_some()).then_some("the size of a frame without frames, read as no video");
        let frame = frame.filter(|_| frames > 0);
        Ok((Media { text_tokens: 0, images, frames, frame, clips_s: self.clips_s }, repaired))
    }
}

/// Reason for a row whose width and height are those of a video.
const VIDEO: &str = "a video without the number of its frames that the model reads; add it as num_frames";

/// Returns the size of an image from two columns of the same name.
fn pair(width: Option<(usize, u32)>, height: Option<(usize, u32)>) -> Result<Option<ImageSize>, String> {
    match (width, height) {
        (Some((rank, width)), Some((other, height))) if rank == other => Ok(Some(ImageSize { width, height })),
        (None, None) => Ok(None),
        (Some((rank, _)), Some((other, _))) if rank > other => Err("an image has a height and no width".to_owned()),
        (Some(_), _) => Err("an image has a width and no height".to_owned()),
        (None, Some(_)) => Err("an image has a height and no width".to_owned()),
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
    let unit = if value > MAX_CLIP_S { "; milliseconds have the name audio_ms" } else { "" };
    Err(format!("{value} is not from 0 to {MAX_CLIP_S} s{unit}"))
}

/// Columns of rows that a rule converts.
#[derive(Debug)]
pub(super) struct Shaping {
    pub(super) columns: ShapedItems,
    pub(super) report: MediaReport,
    /// Audio clips, and those that the rule reads only in part.
    clips: u64,
    cut_clips: u64,
}

impl Shaping {
    pub(super) fn new(rule: Preprocessing) -> Self {
        Self {
            columns: ShapedItems::new(rule),
            report: MediaReport { preprocessing: Some(rule), ..MediaReport::default() },
            clips: 0,
            cut_clips: 0,
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
                let max_s = rule.max_clip_s().unwrap_or(f64::INFINITY);
                self.clips += media.clips_s.len() as u64;
                self.cut_clips += media.clips_s.iter().filter(|&&seconds| seconds > max_s).count() as u64;
                self.report.unread_images += media.images.len() as u64;
                self.report.unread_frames += u64::from(media.frames);
            }
        }
        self.report.without_items += u64::from(shape.batch() == 0);
        self.columns.push(&shape, media.text_tokens);
        Ok(shape.batch())
    }

    /// Returns the warning for clips that are longer than the rule reads.
    pub(super) fn cut(&self) -> Option<String> {
        let rule = self.columns.preprocessing;
        let max_s = rule.max_clip_s().filter(|_| self.cut_clips > 0)?;
        Some(format!(
            "{} of {} audio clips are longer than the {max_s} s that {} reads. The rest of them is not counted.",
            self.cut_clips,
            self.clips,
            rule.id()
        ))
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
