//! Warnings about media that may mean another quantity, and hints for media under unknown names.

use planner::workload::Modality;
use planner::workload::preprocessing::Preprocessing;

use super::super::candidate::Candidate;
use super::super::profile::Profile;
use super::super::value::Row;
use super::super::{Kind, Meaning};
use super::column::{ROWS, plain};
use super::{Field, MediaColumn, listed};

/// Maximum number of frames that common models read of a video, unless they read 2 per second.
const SAMPLED_FRAMES: f64 = 64.0;
/// Clips of common data sets last less than an hour, in seconds.
const LONG_CLIP_S: f64 = 3600.0;

/// Returns warnings about the media columns.
pub(in super::super) fn doubts(columns: &[MediaColumn], head: &[&Row<'_>], rule: Option<Preprocessing>) -> Vec<String> {
    let of = |field: Field| columns.iter().filter(move |column| column.field == field);
    let names = |field: Field| of(field).map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut found = Vec::new();
    if of(Field::Frames).next().is_none() && of(Field::Video).next().is_some() {
        found.push(format!(
            "The videos of {} are not counted: no column holds the number of frames that the model reads of each. Add it as num_frames.",
            names(Field::Video)
        ));
    }
    let read: &[Field] = match rule.map(Preprocessing::modality) {
        None => return found,
        Some(Modality::Images) => &[Field::Width, Field::Height, Field::Frames],
        Some(Modality::Clips) => &[Field::Clips],
    };
    for &field in read {
        let is_single = |column: &&MediaColumn| numbers(column, head).next().is_some();
        let mut same: Vec<&MediaColumn> = of(field).filter(is_single).collect();
        same.sort_by_key(|column| column.rank);
        if let [best, others @ ..] = same.as_slice()
            && !others.is_empty()
        {
            let others: Vec<&str> = others.iter().map(|column| column.name.as_str()).collect();
            found.push(format!("{} is read. {} counts only in rows without it.", best.name, others.join(", ")));
        }
    }
    let of_read = |field: Field| of(field).filter(move |_| read.contains(&field));
    found.extend(of_read(Field::Frames).filter_map(|column| raw_frames(column, &names(Field::Rate), head)));
    found.extend(of_read(Field::Clips).filter_map(|column| {
        let mut clips: Vec<f64> = numbers(column, head).collect();
        clips.sort_by(f64::total_cmp);
        let typical = clips.get(clips.len() / 2).filter(|typical| **typical > LONG_CLIP_S)?;
        Some(format!(
            "The typical clip of {} has {typical} s, more than an hour. If the numbers are milliseconds, name the column audio_ms.",
            column.name
        ))
    }));
    found
}

/// Returns the numbers of a column in the first rows, in pixels or seconds.
fn numbers<'r>(column: &'r MediaColumn, head: &'r [&Row<'_>]) -> impl Iterator<Item = f64> + 'r {
    let value = |row: &&Row<'_>| column.number(row.value(column.index, &column.name)).ok().flatten();
    head.iter().take(ROWS).filter_map(value)
}

/// Returns a warning that frame counts may refer to the video file, not to the frames that a model reads.
fn raw_frames(column: &MediaColumn, rates: &str, head: &[&Row<'_>]) -> Option<String> {
    let (count, sum) = numbers(column, head)
        .filter(|frames| *frames > 0.0)
        .fold((0_u32, 0.0), |(count, sum), frames| (count + 1, sum + frames));
    let mean = sum / f64::from(count.max(1));
    let reason = if !rates.is_empty() {
        format!("because {rates} is given too")
    } else if mean > SAMPLED_FRAMES {
        format!("because a video has {mean:.0} frames on average")
    } else {
        return None;
    };
    Some(format!(
        "{} may count the frames of the video files, {reason}. Models read 8 to 64 frames of a clip, or 2 per second; the numbers here are used without sampling.",
        column.name
    ))
}

/// Returns the columns of a file with media whose text is not read: those that can be the text of a sample, and those
/// that may be names or descriptions.
pub(in super::super) fn unread_text<'p>(profiles: &'p [Profile], head: &[&Row<'_>]) -> (Vec<&'p str>, Vec<&'p str>) {
    let is_file = |index: usize, name: &str| {
        let media = [listed::Medium::Image, listed::Medium::Video, listed::Medium::Sound];
        head.iter().take(ROWS).any(|row| media.iter().any(|medium| listed::holds_file(row.value(index, name), *medium)))
    };
    let is_text = |meaning: Meaning| {
        matches!(
            meaning,
            Meaning::Unknown | Meaning::Chat | Meaning::Text | Meaning::PromptText | Meaning::CompletionText
        )
    };
    let texts = profiles.iter().enumerate().filter(|(index, profile)| {
        is_text(profile.meaning) && !profile.has_paths && !head.is_empty() && !is_file(*index, &profile.name)
    });
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for (_, profile) in texts {
        if profile.is_textual() && (profile.has_text || profile.has_prose) {
            long.push(profile.name.as_str());
        } else if profile.has_text || profile.kind == Kind::Text {
            short.push(profile.name.as_str());
        }
    }
    (long, short)
}

/// Words in names of sizes and durations.
const WORDS: [&str; 32] = [
    "width",
    "widths",
    "height",
    "heights",
    "wh",
    "hw",
    "size",
    "sizes",
    "resolution",
    "px",
    "pixels",
    "breite",
    "höhe",
    "largeur",
    "hauteur",
    "duration",
    "durations",
    "dauer",
    "seconds",
    "sec",
    "s",
    "ms",
    "fps",
    "frames",
    "nframes",
    "rate",
    "samples",
    "min",
    "minutes",
    "length",
    "start",
    "end",
];

/// Returns a hint for columns that may hold sizes, frames or durations under unknown names.
pub(in super::super) fn hint(candidates: &[Candidate]) -> Option<String> {
    let is_near = |candidate: &&Candidate| {
        let name = plain(&candidate.name);
        let has_word = name.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
        let holds_size = |sample: &String| ["size:", "width:", "duration:"].iter().any(|word| sample.contains(word));
        let is_object = matches!(candidate.kind, Kind::Object | Kind::ObjectList);
        (has_word && candidate.kind != Kind::Empty) || (is_object && candidate.samples.iter().any(holds_size))
    };
    let names: Vec<&str> = candidates.iter().filter(is_near).map(|candidate| candidate.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} may hold them under another name: name the sizes of images width and height (pixels), the frames that the model reads of \
             a video num_frames, and seconds of sound audio_s",
            names.join(", ")
        )
    })
}
