//! Draws global batches from the workload of a scenario.

use super::ValidScenario;
use planscope_core::random::Random;
use planscope_core::workload::distribution::draw_histogram;
use planscope_core::workload::phases::distribution_at;
use planscope_core::workload::{
    Dataset, Distribution, GlobalBatch, Modality, RealDistribution, SampleShape, SampleSource, video_ms,
};

/// Random stream for the batch that sizes layouts. Evaluation batches use streams 0, 1, 2, ...
const SIZING_STREAM: u64 = u64::MAX;

/// Draws global batches. Batch k does not depend on other draws.
#[derive(Debug, Clone, Copy)]
pub struct Sampler<'a> {
    scenario: &'a ValidScenario,
}

impl<'a> Sampler<'a> {
    /// Creates a sampler for a scenario.
    pub fn new(scenario: &'a ValidScenario) -> Self {
        Self { scenario }
    }

    /// Returns the evaluation batch for an iteration.
    pub fn evaluation(self, iteration: u32) -> GlobalBatch {
        self.draw(u64::from(iteration), Some(iteration))
    }

    /// Returns the representative batch that static planners use. It has the same distribution as
    /// the evaluation batches but is never one of them. If the distribution varies by iteration,
    /// each sample uses an iteration drawn at random from the period, so that the batch represents
    /// the full run instead of a single phase.
    pub fn sizing(self) -> GlobalBatch {
        self.draw(SIZING_STREAM, None)
    }

    /// Returns another batch like the sizing batch, for planners that analyze the distribution.
    /// Never used for evaluation.
    pub fn survey(self, number: u32) -> GlobalBatch {
        self.draw(SIZING_STREAM - 1 - u64::from(number), None)
    }

    fn draw(self, stream: u64, iteration: Option<u32>) -> GlobalBatch {
        let scenario = self.scenario.scenario();
        let random = Random::new(scenario.seed, stream);
        let mut draw = Draw { scenario: self.scenario, iteration, random };
        let source = &scenario.workload.samples;
        GlobalBatch { samples: (0..scenario.workload.global_batch).map(|_| draw.sample(source, None)).collect() }
    }
}

/// State for drawing a batch.
struct Draw<'a> {
    scenario: &'a ValidScenario,
    /// Iteration of an evaluation batch.
    iteration: Option<u32>,
    random: Random,
}

impl Draw<'_> {
    /// Draws a sample. `images` replaces the source's image distribution.
    fn sample(&mut self, source: &SampleSource, images: Option<&Distribution>) -> SampleShape {
        match source {
            SampleSource::Drawn { text_tokens, images: source_images, audio_clips, video_s, text_per_item } => {
                let mut shape = SampleShape {
                    text_tokens: text_tokens.draw(&mut self.random),
                    images: images.unwrap_or(source_images).draw(&mut self.random),
                    audio_clips: self.clips(audio_clips.as_ref()),
                    video_ms: self.video(video_s.as_ref()),
                    shaped: None,
                };
                if let Some(ratio) = text_per_item {
                    shape.text_tokens = shape.text_tokens.saturating_add(self.item_text(ratio, shape));
                }
                shape
            }
            SampleSource::Dataset { id, images: dataset_images, audio_clips, video_s } => {
                let dataset = self.scenario.dataset(id).expect("a valid scenario has found its datasets");
                let mut shape = draw_row(dataset, &mut self.random);
                if let Some(images) = images.or(dataset_images.as_ref()) {
                    shape.images = images.draw(&mut self.random);
                    shape.shaped = shape.shaped_as(Modality::Clips);
                }
                if let Some(clips) = audio_clips {
                    shape.audio_clips = clips.draw(&mut self.random);
                    shape.shaped = shape.shaped_as(Modality::Images);
                }
                shape.video_ms = self.video(video_s.as_ref());
                shape
            }
            SampleSource::Mixture { parts } => {
                let total: f64 = parts.iter().map(|part| part.weight).sum();
                let mut left = self.random.unit() * total;
                let selected = parts.iter().find(|part| {
                    left -= part.weight;
                    left < 0.0
                });
                let part = selected.or(parts.last()).expect("a valid mixture has parts");
                self.sample(&part.source, images)
            }
            SampleSource::Phases { source, period, images: points } => {
                let iteration = match self.iteration {
                    Some(iteration) => iteration % period,
                    None => self.random.below(u64::from(*period)) as u32,
                };
                self.sample(source, Some(&distribution_at(points, iteration)))
            }
        }
    }

    fn clips(&mut self, clips: Option<&Distribution>) -> u32 {
        clips.map_or(0, |clips| clips.draw(&mut self.random))
    }

    fn video(&mut self, seconds: Option<&RealDistribution>) -> u32 {
        seconds.map_or(0, |seconds| video_ms(seconds.draw(&mut self.random)))
    }

    /// Draws the text tokens that accompany a sample's items.
    fn item_text(&mut self, ratio: &RealDistribution, shape: SampleShape) -> u32 {
        let seconds = f64::from(shape.video_ms) / 1000.0;
        let items = f64::from(shape.images) + f64::from(shape.audio_clips) + seconds;
        (ratio.draw(&mut self.random) * items).round() as u32
    }
}

fn draw_row(dataset: &Dataset, random: &mut Random) -> SampleShape {
    match dataset {
        Dataset::Rows { text_tokens, images, shaped } => {
            let row = random.below(text_tokens.len() as u64) as usize;
            let items = images.get(row).copied().unwrap_or(0);
            let shaped = shaped.as_ref().and_then(|shaped| shaped.get(row));
            let sample = SampleShape { text_tokens: text_tokens[row], shaped, ..SampleShape::default() };
            match shaped.map(|shaped| shaped.modality) {
                Some(Modality::Clips) => SampleShape { audio_clips: items, ..sample },
                Some(Modality::Images) | None => SampleShape { images: items, ..sample },
            }
        }
        Dataset::Histogram { edges, counts } => {
            SampleShape { text_tokens: draw_histogram(random, edges, counts), ..SampleShape::default() }
        }
    }
}
