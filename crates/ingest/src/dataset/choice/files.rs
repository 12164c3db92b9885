//! Warnings about media under general names: files in `file_name` or `url`, columns that are called
//! `jpg` or `mp4`, and sizes such as `1024x576`.

use super::super::media::listed::{self, Medium};
use super::super::profile::Profile;
use super::super::value::{Row, Value};
use super::super::{Kind, Meaning, media, names, text};

/// Number of rows compared.
const ROWS: usize = 200;
/// Names of sizes in pixels, whose value is a list.
const SIZES: [&str; 7] =
    ["resolution", "image_size", "image_resolution", "bucket", "bucket_size", "original_size", "target_size"];

/// Returns a warning for each column that names media that are not counted.
pub(super) fn sentences(
    profiles: &[Profile],
    is_read: &dyn Fn(usize) -> bool,
    has_images: bool,
    head: &[&Row<'_>],
) -> Vec<String> {
    // Sizes, frames and durations have separate advice.
    if !media::columns(profiles, head).is_empty() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, profile) in profiles.iter().enumerate() {
        let name = profile.name.as_str();
        if !profile.has_values
            || is_read(index)
            || profile.has_prose
            || matches!(profile.meaning, Meaning::Images | Meaning::Media)
            || names::holds_any_media(name)
        {
            continue;
        }
        let values = head.iter().take(ROWS).map(|row| row.value(index, name)).filter(|value| !text::is_void(value));
        let most = |is_known: &dyn Fn(&Value<'_>) -> bool| {
            let (known, all) =
                values.clone().fold((0, 0), |(known, all), value| (known + usize::from(is_known(value)), all + 1));
            known * 10 >= all * 9 && known > 0
        };
        let is_of = |medium: Medium| {
            let is_named =
                matches!(profile.kind, Kind::Binary | Kind::Object) && listed::is_file(&format!(".{name}"), medium);
            is_named || most(&|value| listed::is_file_value(value, medium))
        };
        if is_of(Medium::Image) {
            if !has_images {
                found.push(format!(
                    "The images of {name} are not counted. If training reads them, upload their number (num_images) or their sizes \
                     (width, height)."
                ));
            }
        } else if is_of(Medium::Video) || is_of(Medium::Sound) {
            found.push(format!(
                "The video or sound of {name} is not counted: the file does not hold its frames or its duration."
            ));
        } else if most(&|value| is_size(name, value)) {
            found.push(format!(
                "{name} holds sizes in pixels, which are not counted. If training reads the images, upload the columns width and height."
            ));
        }
    }
    found
}

/// Returns whether a value is a size: `1024x576`, or a pair of numbers under the name of a size.
fn is_size(name: &str, value: &Value<'_>) -> bool {
    let is_edge = |edge: &str| (1..=5).contains(&edge.len()) && edge.bytes().all(|byte| byte.is_ascii_digit());
    match value {
        Value::Text(text) => {
            let mut edges = text.split(['x', 'X', '×', '*']).map(str::trim);
            (2..=3).contains(&edges.clone().count()) && edges.all(is_edge)
        }
        Value::List(list) => list.count == 2 && SIZES.iter().any(|known| names::is_same(name, known)),
        _ => false,
    }
}
