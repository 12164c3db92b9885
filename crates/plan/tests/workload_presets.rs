//! Samples drawn from the workload presets have the published statistics.

use planscope_core::workload::SampleShape;
use planscope_core::workload::presets::samples;
use planscope_core::workload::{Distribution, SampleSource};
use planscope_plan::scenario::Sampler;
use planscope_plan::scenario::validate::NoDatasets;
use planscope_plan::scenario::{ValidScenario, parse};

fn valid_scenario(model: &str, samples: &SampleSource, iterations: u32) -> ValidScenario {
    let document = serde_json::json!({
        "schema": "scenario/1", "model": { "preset": model }, "cluster": { "preset": "h800", "nodes": 2 },
        "workload": { "samples": samples, "global_batch": 4000, "context_length": 8192, "packing": "packed" },
        "planners": ["1f1b"], "iterations": iterations, "seed": 3
    });
    let scenario = parse(&document.to_string()).unwrap();
    ValidScenario::new(scenario, &NoDatasets).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn source(id: &str) -> SampleSource {
    samples().into_iter().find(|preset| preset.id == id).unwrap().source
}

fn drawn(id: &str, model: &str) -> Vec<SampleShape> {
    Sampler::new(&valid_scenario(model, &source(id), 1)).evaluation(0).samples
}

fn mean(samples: &[SampleShape], value: impl Fn(&SampleShape) -> f64) -> f64 {
    samples.iter().map(value).sum::<f64>() / samples.len() as f64
}

#[test]
fn image_datasets_have_their_published_ratios() {
    for (id, images, text_per_image) in
        [("laion-like", 1.0, 16.4), ("obelics-like", 2.5, 320.0), ("science-qa-like", 0.49, 204.0 / 0.49)]
    {
        let samples = drawn(id, "vlm-s");
        let mean_images = mean(&samples, |sample| f64::from(sample.images));
        let ratio = mean(&samples, |sample| f64::from(sample.text_tokens)) / mean_images;
        assert!((mean_images / images - 1.0).abs() < 0.05, "{id}: {mean_images} images");
        assert!((ratio / text_per_image - 1.0).abs() < 0.08, "{id}: {ratio} text tokens an image");
    }
    for sample in drawn("obelics-like", "vlm-s") {
        let ratio = f64::from(sample.text_tokens) / f64::from(sample.images);
        assert!((0.0..=3115.5).contains(&ratio), "{sample:?}");
    }
}

#[test]
fn a_mix_shares_its_tokens() {
    let model = planscope_core::model::presets::model("vlm-s").unwrap();
    let samples = drawn("image-text-mix", "vlm-s");
    let tokens = |samples: &[SampleShape]| mean(samples, |sample| f64::from(sample.backbone_tokens(&model)));
    let third = tokens(&samples) / 3.0;
    for (id, weight) in [("laion-like", 0.56), ("obelics-like", 0.08), ("science-qa-like", 0.36)] {
        let share = weight * tokens(&drawn(id, "vlm-s")) / third;
        assert!((share - 1.0).abs() < 0.15, "{id}: {share} of a third");
    }
}

/// Means of log-normal distributions, median · exp(σ²/2), multiplied by (Φ(b - σ) - Φ(a - σ)) /
/// (Φ(b) - Φ(a)) if truncated at a and b standard deviations: 10 s · 1.133 · 0.670 / 0.826, 6 ·
/// 1.377 · 0.665 / 0.889, 4.2 · 1.163 · 0.969 / 0.988.
#[test]
fn video_is_limited_to_sixteen_seconds_and_has_fractions() {
    for (id, text, seconds) in [
        ("share-gpt4-video-like", 361.0, 9.2),
        ("intern-vid-like", 22.7, 6.2),
        ("mm-trail-like", 97.5, 4.8),
        ("video-mix", (361.0 + 22.7 + 97.5) / 3.0, (9.2 + 6.2 + 4.8) / 3.0),
    ] {
        let samples = drawn(id, "t2v-s");
        assert!(samples.iter().all(|sample| (500..=16_000).contains(&sample.video_ms)), "{id}");
        assert!(samples.iter().filter(|sample| sample.video_ms % 1000 != 0).count() > 3900, "{id}");
        let found = mean(&samples, |sample| f64::from(sample.text_tokens));
        assert!((found / text - 1.0).abs() < 0.05, "{id}: {found} text tokens");
        let found = mean(&samples, |sample| f64::from(sample.video_ms)) / 1000.0;
        assert!((found / seconds - 1.0).abs() < 0.05, "{id}: {found} s");
    }
}

#[test]
fn images_rise_and_fall_twice_in_forty_iterations() {
    let scenario = valid_scenario("vlm-s", &source("rise-and-fall"), 40);
    let sampler = Sampler::new(&scenario);
    let images = |iteration| mean(&sampler.evaluation(iteration).samples, |sample| f64::from(sample.images));
    // Means of (0, 32), (16, 32), both halfway to zero after 7.5 of 15 iterations, and zero.
    for (iteration, expected) in [(0, 16.0), (4, 24.0), (11, 13.0), (12, 11.0), (19, 0.0), (20, 16.0), (24, 24.0)] {
        assert!((images(iteration) - expected).abs() < 0.7, "{iteration}: {}", images(iteration));
    }
    let period_mean = (0..20).map(images).sum::<f64>() / 20.0;
    let sizing = mean(&sampler.sizing().samples, |sample| f64::from(sample.images));
    assert!((sizing - period_mean).abs() < 0.7, "{sizing} {period_mean}");
}

#[test]
fn sources_say_whether_they_are_synthetic_or_measured() {
    for preset in samples() {
        let is_labelled = ["(synthetic", "(measured)"].iter().any(|origin| preset.title.contains(origin));
        assert!(is_labelled || preset.id == "uniform-4096", "{}", preset.title);
    }
}

/// 13,016 files. With bin centers the mean is 3,269 tokens, 7 % above the measured 3,059.
#[test]
fn measured_files_are_as_long_as_they_were() {
    let SampleSource::Drawn { text_tokens: Distribution::Histogram { edges, counts }, .. } =
        source("rust-source-files")
    else {
        panic!("a histogram");
    };
    assert_eq!((edges.len(), edges[1], edges[16], counts.iter().sum::<f64>()), (17, 16.0, 524_288.0, 13_016.0));
    let middle: f64 = edges.windows(2).zip(&counts).map(|(bin, count)| count * (bin[0] + bin[1]) / 2.0).sum();
    assert!((middle / 13_016.0 - 3269.0).abs() < 1.0, "{middle}");
}
