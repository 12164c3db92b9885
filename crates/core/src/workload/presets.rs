//! Named sample sources: documented synthetic distributions, marked as synthetic.
//!
//! A single source is measured. The other sources are not datasets. They follow published
//! statistics; the remaining parameters are assumptions. The web page source has the mean length of
//! RefinedWeb (about 620 tokens) and a long tail: in a sample with 1.6 million tokens, the longest
//! page has 15,000 to 32,000 tokens (Hydraulis App. A.1). Length figures assume 169 backbone
//! tokens per image.

use super::{Distribution, MixturePart, PhasePoint, RealDistribution, SampleSource};

/// A named sample source.
#[derive(Debug, Clone)]
pub struct SamplePreset {
    /// Stable identifier.
    pub id: &'static str,
    /// Display name.
    pub title: &'static str,
    /// Sample source.
    pub source: SampleSource,
}

/// Returns all presets in display order.
pub fn samples() -> Vec<SamplePreset> {
    let preset = |id, title, source| SamplePreset { id, title, source };
    vec![
        preset("uniform-4096", "Equal sequences, 4,096 tokens", text(constant(4096))),
        preset(
            "long-documents",
            "Long documents (synthetic, log-normal, median 3,200)",
            text(log_normal(3200.0, 0.75, 64, 65_536)),
        ),
        preset(
            "common-crawl-like",
            "Web pages, CommonCrawl-like (synthetic)",
            text(log_normal(284.0, 1.25, 16, 262_144)),
        ),
        preset(
            "source-code",
            "Source code (synthetic, log-normal, median 900)",
            text(log_normal(900.0, 1.35, 16, 262_144)),
        ),
        preset("rust-source-files", "Source files of 428 Rust crates (measured)", text(rust_source_files())),
        preset(
            "image-text",
            "Image-text sequences (synthetic, 0 to 32 images)",
            images(constant(8192), Distribution::Uniform { min: 0, max: 32 }, None),
        ),
        preset("rise-and-fall", "Images that rise and fall over 20 iterations (synthetic)", rise_and_fall()),
        preset("laion-like", "Images with short captions, LAION-like (synthetic)", laion_like()),
        preset("obelics-like", "Interleaved documents, OBELICS-like (synthetic)", obelics_like()),
        preset("science-qa-like", "Questions with images, ScienceQA-like (synthetic)", science_qa_like()),
        preset("image-text-mix", "Image-text mix of those three (synthetic)", image_text_mix()),
        preset(
            "share-gpt4-video-like",
            "Video with long captions, ShareGPT4Video-like (synthetic)",
            share_gpt4_video_like(),
        ),
        preset("intern-vid-like", "Video with short captions, InternVid-like (synthetic)", intern_vid_like()),
        preset("msr-vtt-frames", "Video at one image a second, MSR-VTT-like (synthetic)", msr_vtt_frames()),
        preset("intern-vid-frames", "Video at one image a second, InternVid-like (synthetic)", intern_vid_frames()),
        preset("open-vid-frames", "Video at one image a second, OpenVid-like (synthetic)", open_vid_frames()),
        preset("mm-trail-like", "Trailers, MMTrail-like (synthetic)", mm_trail_like()),
        preset("video-mix", "Video mix of those three (synthetic)", video_mix()),
    ]
}

/// Lengths of 13,016 source files from the 428 libraries that this project depends on, in octaves.
/// A token corresponds to four bytes, the typical ratio for code tokenizers. Measured in November
/// 2026: mean 3,059 tokens, maximum 467,977.
fn rust_source_files() -> Distribution {
    let edges = std::iter::once(1.0).chain((4..20).map(|octave| f64::from(1_u32 << octave)));
    let counts: [u32; 16] = [135, 199, 425, 767, 1207, 1679, 2368, 2439, 1724, 1037, 587, 293, 132, 17, 5, 2];
    Distribution::Histogram { edges: edges.collect(), counts: counts.map(f64::from).to_vec() }
}

/// The lower bound on images rises from 0 to 16 during the first five iterations at upper bound 32;
/// then both fall to zero until iteration 20 (PipeWeaver Fig. 9b, which shows two such periods).
fn rise_and_fall() -> SampleSource {
    let point = |iteration, min, max| PhasePoint { iteration, min, max };
    SampleSource::Phases {
        source: Box::new(text(constant(8192))),
        period: 20,
        images: vec![point(0, 0, 32), point(4, 16, 32), point(19, 0, 0)],
    }
}

/// One image and its alternative text: 16.4 text tokens per image on average (PipeWeaver Sec. 2.2).
/// Two parameters are assumptions: the standard deviation of ln, 0.6, and truncation at 77 tokens,
/// the CLIP text limit.
fn laion_like() -> SampleSource {
    let caption = RealDistribution::LogNormal { median: 13.7, sigma: 0.6, min: 2.0, max: 77.0 };
    images(constant(0), constant(1), Some(caption))
}

/// Web documents with 0.4 to 3,115 text tokens per image (PipeWeaver Sec. 2.2). 115 billion tokens,
/// 353 million images and 141 million documents (Laurençon et al. 2023) give about 320 tokens per
/// image and 2.5 images per document. Assumption: both are log-normal and independent.
fn obelics_like() -> SampleSource {
    let between = RealDistribution::LogNormal { median: 160.0, sigma: 1.3, min: 0.4, max: 3115.0 };
    images(constant(0), log_normal(2.0, 0.7, 1, 30), Some(between))
}

/// School questions with lecture and solution; 10,332 of 21,208 contain an image (Lu et al. 2022),
/// here every second sample. Assumption: about 200 text tokens with or without image.
fn science_qa_like() -> SampleSource {
    images(log_normal(180.0, 0.5, 24, 800), Distribution::Uniform { min: 0, max: 1 }, None)
}

/// The weights give each source approximately a third of the tokens: mean sample lengths are 185,
/// 1,240 and 290.
fn image_text_mix() -> SampleSource {
    mixture([(0.56, laion_like()), (0.08, obelics_like()), (0.36, science_qa_like())])
}

/// 270-word captions on average (Chen et al. 2024). Here and below, clips are limited to 16 s, as
/// PipeWeaver transcodes them. Assumption: median 10 s.
fn share_gpt4_video_like() -> SampleSource {
    let seconds = RealDistribution::LogNormal { median: 10.0, sigma: 0.5, min: 2.0, max: 16.0 };
    video(log_normal(340.0, 0.35, 80, 1024), seconds)
}

/// 18-word captions on average, clips with 11.7 s on average before truncation (Wang et al. 2024:
/// 4.1 billion words, 234 million clips, 760,000 hours); short clips dominate. The spreads are
/// assumptions.
fn intern_vid_like() -> SampleSource {
    let seconds = RealDistribution::LogNormal { median: 6.0, sigma: 0.8, min: 0.5, max: 16.0 };
    video(log_normal(21.0, 0.4, 6, 77), seconds)
}

/// Clips from 10 to 30 s, 14.8 s on average (Xu et al. 2016: 10,000 clips, 41.2 hours), a sentence
/// each. Here and in the next two sources, a second of video equals an image: a single InternVL
/// frame or two Qwen3-VL frames. This choice and the distribution shapes are assumptions. DHP
/// states only that most clips are shorter than 8 s, that few exceed 64 s, and that this dataset
/// has the most uniform lengths.
fn msr_vtt_frames() -> SampleSource {
    images(log_normal(13.0, 0.35, 4, 40), log_normal(13.7, 0.35, 10, 30), None)
}

/// Clips with 11.7 s on average, 18-word captions (see [`intern_vid_like`]), truncated at four
/// minutes.
fn intern_vid_frames() -> SampleSource {
    images(log_normal(21.0, 0.4, 6, 77), log_normal(6.0, 1.15, 1, 240), None)
}

/// Clips with 7.4 s on average (Nan et al. 2025: 1.02 million clips, 2,100 hours) and long
/// captions. According to DHP, this is the dataset with the heaviest tail among the three.
fn open_vid_frames() -> SampleSource {
    images(log_normal(150.0, 0.4, 30, 400), log_normal(3.5, 1.22, 1, 240), None)
}

/// Clips with 5 s on average (Chi et al. 2024: 20 million clips, 27,100 hours). Assumption:
/// captions with about 100 tokens, which also describe the music.
fn mm_trail_like() -> SampleSource {
    let seconds = RealDistribution::LogNormal { median: 4.2, sigma: 0.55, min: 1.0, max: 16.0 };
    video(log_normal(90.0, 0.4, 20, 300), seconds)
}

/// Equal number of clips per source (assumption).
fn video_mix() -> SampleSource {
    mixture([(1.0, share_gpt4_video_like()), (1.0, intern_vid_like()), (1.0, mm_trail_like())])
}

const fn constant(value: u32) -> Distribution {
    Distribution::Constant { value }
}

const fn log_normal(median: f64, sigma: f64, min: u32, max: u32) -> Distribution {
    Distribution::LogNormal { median, sigma, min, max }
}

const fn text(text_tokens: Distribution) -> SampleSource {
    images(text_tokens, constant(0), None)
}

const fn images(
    text_tokens: Distribution,
    images: Distribution,
    text_per_item: Option<RealDistribution>,
) -> SampleSource {
    SampleSource::Drawn { text_tokens, images, audio_clips: None, video_s: None, text_per_item }
}

const fn video(text_tokens: Distribution, seconds: RealDistribution) -> SampleSource {
    let images = constant(0);
    SampleSource::Drawn { text_tokens, images, audio_clips: None, video_s: Some(seconds), text_per_item: None }
}

fn mixture(parts: impl IntoIterator<Item = (f64, SampleSource)>) -> SampleSource {
    SampleSource::Mixture { parts: parts.into_iter().map(|(weight, source)| MixturePart { weight, source }).collect() }
}
