//! Global batches: what is drawn from the workload for every iteration.

use super::distribution::draw_histogram;
use super::{Dataset, SampleShape, SampleSource};
use crate::random::Random;
use crate::scenario::ValidScenario;

/// The random stream of the batch on which layouts are sized; judged batches have the streams 0, 1, 2 ...
const SIZING_STREAM: u64 = u64::MAX;

/// The samples of one iteration over all replicas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalBatch {
    /// In the order of the data loader.
    pub samples: Vec<SampleShape>,
}

/// Draws global batches; batch k is the same whichever others are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Sampler<'a> {
    scenario: &'a ValidScenario,
}

impl<'a> Sampler<'a> {
    /// Draws for a scenario.
    pub fn new(scenario: &'a ValidScenario) -> Self {
        Self { scenario }
    }

    /// The batch of an iteration, on which plans are judged.
    pub fn judged(self, iteration: u32) -> GlobalBatch {
        self.draw(u64::from(iteration))
    }

    /// The representative batch on which static planners choose: from the same distribution, but never one of
    /// the batches they are judged on.
    pub fn sizing(self) -> GlobalBatch {
        self.draw(SIZING_STREAM)
    }

    fn draw(self, stream: u64) -> GlobalBatch {
        let scenario = self.scenario.scenario();
        let mut random = Random::new(scenario.seed, stream);
        let source = &scenario.workload.samples;
        let samples = (0..scenario.workload.global_batch).map(|_| self.draw_sample(source, &mut random)).collect();
        GlobalBatch { samples }
    }

    fn draw_sample(self, source: &SampleSource, random: &mut Random) -> SampleShape {
        match source {
            SampleSource::Drawn { text_tokens, images } => {
                SampleShape { text_tokens: text_tokens.draw(random), images: images.draw(random) }
            }
            SampleSource::Dataset { id, images } => {
                let dataset = self.scenario.dataset(id).expect("a valid scenario has found its datasets");
                let mut shape = draw_row(dataset, random);
                if let Some(images) = images {
                    shape.images = images.draw(random);
                }
                shape
            }
            SampleSource::Mixture { parts } => {
                let total: f64 = parts.iter().map(|part| part.weight).sum();
                let mut left = random.unit() * total;
                let chosen = parts.iter().find(|part| {
                    left -= part.weight;
                    left < 0.0
                });
                let part = chosen.or(parts.last()).expect("a valid mixture has parts");
                self.draw_sample(&part.source, random)
            }
        }
    }
}

fn draw_row(dataset: &Dataset, random: &mut Random) -> SampleShape {
    match dataset {
        Dataset::Rows { text_tokens, images } => {
            let row = random.below(text_tokens.len() as u64) as usize;
            SampleShape { text_tokens: text_tokens[row], images: images.get(row).copied().unwrap_or(0) }
        }
        Dataset::Histogram { edges, counts } => {
            SampleShape { text_tokens: draw_histogram(random, edges, counts), images: 0 }
        }
    }
}
