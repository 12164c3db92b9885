//! Validates sample sources: distributions, datasets, and whether the model supports the
//! modalities.

use std::sync::Arc;

use super::{Datasets, Ranges, distribution};
use planscope_core::model::Model;
use planscope_core::workload::{
    Dataset, Distribution, MAX_VIDEO_S, Modality, PhasePoint, RealDistribution, SampleSource,
};

/// Maximum sources per mixture.
const MAX_PARTS: usize = 64;
/// Maximum nesting depth. Weights can express deeper mixtures.
const DEEPEST_MIXTURE: u32 = 4;
/// Maximum text tokens per item.
const MAX_TEXT_PER_ITEM: f64 = 1e6;
/// Maximum period in iterations.
const MAX_PERIOD: u32 = 100_000;
const MAX_POINTS: usize = 1000;

/// Validation state for sample sources.
pub(super) struct Sources<'a> {
    model: &'a Model,
    datasets: &'a dyn Datasets,
    ranges: Ranges<'a>,
    found: Vec<(String, Arc<Dataset>)>,
}

/// Location of a source.
#[derive(Clone, Copy)]
struct SourceContext<'a> {
    /// JSON pointer.
    at: &'a str,
    /// Number of enclosing mixtures and phases.
    depth: u32,
    /// Image bounds from enclosing phases, which replace the source's images.
    phases: Option<&'a [PhasePoint]>,
}

impl<'a> Sources<'a> {
    pub(super) fn new(model: &'a Model, datasets: &'a dyn Datasets, ranges: Ranges<'a>) -> Self {
        Self { model, datasets, ranges, found: Vec::new() }
    }

    /// Returns the referenced datasets.
    pub(super) fn found(self) -> Vec<(String, Arc<Dataset>)> {
        self.found
    }

    /// Validates the samples in a workload.
    pub(super) fn check(&mut self, samples: &SampleSource, at: &str, context_length: u32) {
        let (per_image, per_clip) = (self.model.tokens_per_image(), self.model.tokens_per_clip());
        let draws = self.drawn(samples);
        // If the model supports only sound, images mean audio clips.
        let image = if self.model.images().is_some() { per_image } else { per_clip };
        for (draws, tokens, item) in [(draws.images, image, "image"), (draws.audio_clips, per_clip, "clip of sound")] {
            if draws && context_length < tokens {
                let detail = format!("shorter than one {item} of {tokens} tokens");
                self.ranges.refuse("/workload/context_length", detail);
            }
        }
        self.source(samples, SourceContext { at, depth: 0, phases: None });
    }

    fn source(&mut self, samples: &SampleSource, context: SourceContext<'_>) {
        let at = context.at;
        match samples {
            SampleSource::Drawn { text_tokens, images, audio_clips, video_s, text_per_item } => {
                distribution::integer(text_tokens, &format!("{at}/text_tokens"), &mut self.ranges);
                self.images(images, &format!("{at}/images"));
                self.sound_and_video(audio_clips.as_ref(), video_s.as_ref(), at);
                if let Some(ratio) = text_per_item {
                    let at = format!("{at}/text_per_item");
                    distribution::real(ratio, MAX_TEXT_PER_ITEM, " tokens", &at, &mut self.ranges);
                }
                let clips = audio_clips.as_ref().is_none_or(Distribution::is_zero);
                let video = video_s.as_ref().is_none_or(RealDistribution::is_zero);
                let none = context.phases.map_or(images.is_zero(), |points| points.iter().all(|point| point.max == 0));
                if text_tokens.is_zero() && none && clips && video {
                    self.ranges.refuse(&format!("{at}/text_tokens"), "every sample is empty".to_owned());
                }
            }
            SampleSource::Dataset { id, images, audio_clips, video_s } => {
                self.dataset(id, [images.as_ref(), audio_clips.as_ref()], context);
                if let Some(images) = images {
                    self.images(images, &format!("{at}/images"));
                }
                self.sound_and_video(audio_clips.as_ref(), video_s.as_ref(), at);
            }
            SampleSource::Mixture { parts } => {
                if parts.is_empty() || parts.len() > MAX_PARTS || context.depth >= DEEPEST_MIXTURE {
                    let detail = format!("a mixture has one to {MAX_PARTS} parts and at most {DEEPEST_MIXTURE} levels");
                    self.ranges.refuse(&format!("{at}/parts"), detail);
                    return;
                }
                for (index, part) in parts.iter().enumerate() {
                    self.ranges.number(&format!("{at}/parts/{index}/weight"), part.weight, 0.0, 1e12, "");
                    let inner = format!("{at}/parts/{index}/source");
                    self.source(&part.source, SourceContext { at: &inner, depth: context.depth + 1, ..context });
                }
                if parts.iter().all(|part| part.weight == 0.0) {
                    let detail = "at least one weight must be positive".to_owned();
                    self.ranges.refuse(&format!("{at}/parts/0/weight"), detail);
                }
            }
            SampleSource::Phases { source, period, images } => {
                if context.phases.is_some() || context.depth >= DEEPEST_MIXTURE {
                    self.ranges.refuse(&format!("{at}/source"), "phases inside phases say nothing".to_owned());
                    return;
                }
                self.phases(*period, images, at);
                let inner = format!("{at}/source");
                self.source(source, SourceContext { at: &inner, depth: context.depth + 1, phases: Some(images) });
            }
        }
    }

    fn dataset(&mut self, id: &str, [images, clips]: [Option<&Distribution>; 2], context: SourceContext<'_>) {
        let at = context.at;
        let Some(dataset) = self.datasets.dataset(id) else {
            let detail = "this dataset is not stored here (any more); upload it again or choose another".to_owned();
            self.ranges.refuse(&format!("{at}/id"), detail);
            return;
        };
        let (model, modality) = (&self.model.name, dataset.shaped().map(|shaped| shaped.preprocessing.modality()));
        let stays = images.is_none() && context.phases.is_none();
        let refusal = match modality {
            _ if !has_images(&dataset) => None,
            None => (stays && !self.reads_images()).then(|| {
                let message = format!("this dataset has images and {model} has no vision encoder; set images to 0 to leave them out");
                ("images", message)
            }),
            // Preprocessed images cannot become audio clips.
            Some(Modality::Images) => (stays && self.model.images().is_none()).then(|| {
                let image_message = format!("this dataset's images were read by a rule and {model} has no vision encoder; set images to 0 to leave them out");
                ("images", image_message)
            }),
            Some(Modality::Clips) => (clips.is_none() && self.model.sound().is_none()).then(|| {
                let sound_message = format!("this dataset's sound was read by a rule and {model} has no audio encoder; set audio_clips to 0 to leave it out");
                ("audio_clips", sound_message)
            }),
        };
        if let Some((field, detail)) = refusal {
            self.ranges.refuse(&format!("{at}/{field}"), detail);
        }
        if self.found.iter().all(|(name, _)| name != id) {
            self.found.push((id.to_owned(), dataset));
        }
    }

    fn phases(&mut self, period: u32, points: &[PhasePoint], at: &str) {
        self.ranges.integer(&format!("{at}/period"), period, 1, MAX_PERIOD, " iterations");
        if points.is_empty() || points.len() > MAX_POINTS {
            self.ranges.refuse(&format!("{at}/images"), format!("one to {MAX_POINTS} points"));
        }
        for (index, point) in points.iter().enumerate() {
            let at = format!("{at}/images/{index}");
            let bounds = Distribution::Uniform { min: point.min, max: point.max };
            self.images(&bounds, &at);
            if point.iteration >= period {
                let detail = format!("iteration {} is not below the period of {period}", point.iteration);
                self.ranges.refuse(&format!("{at}/iteration"), detail);
            }
            if index > 0 && points[index - 1].iteration >= point.iteration {
                let detail = "points stand in the order of their iterations".to_owned();
                self.ranges.refuse(&format!("{at}/iteration"), detail);
            }
        }
    }

    /// Images require a model that supports them.
    fn images(&mut self, images: &Distribution, at: &str) {
        distribution::integer(images, at, &mut self.ranges);
        if !images.is_zero() && !self.reads_images() {
            self.ranges.refuse(at, format!("{} has no vision encoder; set images to 0", self.model.name));
        }
    }

    /// Sound and video require modules that support them.
    fn sound_and_video(&mut self, clips: Option<&Distribution>, video: Option<&RealDistribution>, at: &str) {
        if let Some(clips) = clips {
            let at = format!("{at}/audio_clips");
            distribution::integer(clips, &at, &mut self.ranges);
            if !clips.is_zero() && self.model.sound().is_none() {
                self.ranges.refuse(&at, format!("{} has no audio encoder; set clips to 0", self.model.name));
            }
        }
        if let Some(video) = video {
            let at = format!("{at}/video_s");
            distribution::real(video, MAX_VIDEO_S, " s", &at, &mut self.ranges);
            if !video.is_zero() && self.model.video().is_none() {
                self.ranges.refuse(&at, format!("{} makes no video; set it to 0", self.model.name));
            }
        }
    }

    /// Returns the modalities besides text that a source can draw at the model's item length.
    /// Preprocessed dataset items have individual lengths.
    fn drawn(&self, samples: &SampleSource) -> Draws {
        let clips = |clips: &Option<Distribution>| clips.as_ref().is_some_and(|clips| !clips.is_zero());
        match samples {
            SampleSource::Drawn { images, audio_clips, .. } => {
                Draws { images: !images.is_zero(), audio_clips: clips(audio_clips) }
            }
            SampleSource::Dataset { id, images, audio_clips, .. } => {
                let has_stored_images = || {
                    let dataset = self.datasets.dataset(id);
                    dataset.is_some_and(|dataset| dataset.shaped().is_none() && has_images(&dataset))
                };
                let images = images.as_ref().map_or_else(has_stored_images, |images| !images.is_zero());
                Draws { images, audio_clips: clips(audio_clips) }
            }
            SampleSource::Mixture { parts } => {
                parts.iter().map(|part| self.drawn(&part.source)).fold(Draws::default(), |sum, other| Draws {
                    images: sum.images || other.images,
                    audio_clips: sum.audio_clips || other.audio_clips,
                })
            }
            SampleSource::Phases { source, images, .. } => {
                Draws { images: images.iter().any(|point| point.max > 0), ..self.drawn(source) }
            }
        }
    }

    /// If the model supports only sound besides text, images mean audio clips.
    fn reads_images(&self) -> bool {
        self.model.images().is_some() || self.model.sound().is_some()
    }
}

/// Modalities besides text that a source can draw.
#[derive(Clone, Copy, Default)]
struct Draws {
    images: bool,
    audio_clips: bool,
}

fn has_images(dataset: &Dataset) -> bool {
    match dataset {
        Dataset::Rows { images, .. } => images.iter().any(|&count| count > 0),
        Dataset::Histogram { .. } => false,
    }
}
