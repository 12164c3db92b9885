//! Encoder and backbone input shapes for images, video and sound in a model family.

use serde::{Deserialize, Serialize};

use planscope_core::host::{Cancellation, Workers};
use planscope_plan::scenario::FieldError;
use planscope_core::workload::preprocessing::{ImageSize, Media, Preprocessing};

/// Maximum items.
const ITEMS: usize = 65_536;
/// Maximum number of images, frames and clips in a request.
const INPUTS: u64 = 1_000_000;
/// Maximum image width or height in pixels.
const MAX_EDGE: u32 = 65_536;
/// Maximum clip duration: one day.
const MAX_CLIP_S: f64 = 86_400.0;

/// Dataset items as stored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Model family whose preprocessor reads the items: an identifier from [`Preprocessing::ALL`].
    pub preprocessing: String,
    /// Dataset items.
    pub items: Vec<Stored>,
}

/// A stored item.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stored {
    /// Text tokens.
    pub text_tokens: u32,
    /// Width and height per image, in pixels.
    pub images: Vec<[u32; 2]>,
    /// Sampled video frames.
    pub frames: u32,
    /// Frame width and height in pixels. Required if `frames` is positive.
    pub frame: Option<[u32; 2]>,
    /// Duration per audio clip in seconds.
    pub clips_s: Vec<f64>,
}

/// Input shapes per item.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Response {
    /// Effective encoder batch b(d) per item.
    pub batch: Vec<u32>,
    /// Encoder tokens per item.
    pub encoder_tokens: Vec<u64>,
    /// Backbone sequence length s(d) per item, in tokens.
    pub backbone_tokens: Vec<u64>,
    /// Mean b(d).
    pub mean_batch: f64,
    /// Mean s(d) in tokens.
    pub mean_backbone_tokens: f64,
}

/// Computes the input shapes.
///
/// # Errors
/// Returns the JSON pointers to all invalid fields.
pub fn respond(request: &Request, _: &dyn Workers, _: &dyn Cancellation) -> Result<Response, Vec<FieldError>> {
    let mut errors = Vec::new();
    let mut wrong = |pointer: &str, detail: String| errors.push(FieldError::new(pointer, detail));
    let family = Preprocessing::from_id(&request.preprocessing);
    if family.is_none() {
        let known = Preprocessing::ALL.map(Preprocessing::id).join(", ");
        wrong("/preprocessing", format!("{:?} is none of {known}", request.preprocessing));
    }
    let count = request.items.len();
    if !(1..=ITEMS).contains(&count) {
        wrong("/items", format!("{count} is not a number of items from 1 to {ITEMS}"));
    }
    let input_count = |item: &Stored| (item.images.len() + item.clips_s.len()) as u64 + u64::from(item.frames);
    let inputs: u64 = request.items.iter().map(input_count).sum();
    if inputs > INPUTS {
        wrong("/items", format!("{inputs} images, frames and clips are more than {INPUTS}"));
    }
    for (index, item) in request.items.iter().enumerate().take(ITEMS) {
        let sized = item.images.iter().enumerate().map(|(image, size)| (format!("images/{image}"), size));
        let frame = item.frame.iter().map(|size| ("frame".to_owned(), size));
        for (name, size) in
            sized.chain(frame).filter(|(_, size)| size.iter().any(|edge| !(1..=MAX_EDGE).contains(edge)))
        {
            let [width, height] = size;
            wrong(&format!("/items/{index}/{name}"), format!("{width} x {height} pixels: edges are 1 to {MAX_EDGE}"));
        }
        if item.frames > 0 && item.frame.is_none() {
            wrong(&format!("/items/{index}/frame"), "the size of the frames is missing".to_owned());
        }
        for (clip, seconds) in item.clips_s.iter().enumerate() {
            if !(0.0..=MAX_CLIP_S).contains(seconds) {
                wrong(&format!("/items/{index}/clips_s/{clip}"), format!("{seconds} is not from 0 to {MAX_CLIP_S} s"));
            }
        }
    }
    let Some(family) = family.filter(|_| errors.is_empty()) else { return Err(errors) };
    let shapes: Vec<_> = request.items.iter().map(|item| family.shape(&media(item))).collect();
    let (batch, backbone_tokens): (Vec<u32>, Vec<u64>) =
        shapes.iter().map(|shape| (shape.batch(), shape.backbone)).unzip();
    let encoder_tokens =
        shapes.iter().map(|shape| shape.encoder.iter().map(|&length| u64::from(length)).sum()).collect();
    let mean_batch = batch.iter().map(|&batch| f64::from(batch)).sum::<f64>() / count as f64;
    let mean_backbone_tokens = backbone_tokens.iter().map(|&tokens| tokens as f64).sum::<f64>() / count as f64;
    Ok(Response { batch, encoder_tokens, backbone_tokens, mean_batch, mean_backbone_tokens })
}

fn media(item: &Stored) -> Media {
    let size = |&[width, height]: &[u32; 2]| ImageSize { width, height };
    Media {
        text_tokens: item.text_tokens,
        images: item.images.iter().map(size).collect(),
        frames: item.frames,
        frame: item.frame.as_ref().map(size),
        clips_s: item.clips_s.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::solve::tests::{answered, validation_errors};

    /// LLaVA-OneVision: an image produces a tile, 729 tokens per tile; the item has two images.
    /// Qwen2-VL: 280 x 280 pixels are 20 x 20 patches, merged four to a token. Qwen2-Audio: a clip
    /// is padded to 1,500 frames; 4.37 s produce 109 tokens.
    #[test]
    fn items_have_the_shapes_from_their_family() {
        let two = json!({ "text_tokens": 7, "images": [[500, 300], [280, 280]] });
        for (family, item, batch, encoder, backbone) in [
            ("llava-onevision", two, 2, 2 * 729, 7 + 2 * 729),
            ("qwen-vl", json!({ "images": [[280, 280]] }), 1, 400, 100),
            ("qwen2-audio", json!({ "text_tokens": 3, "clips_s": [4.37] }), 1, 1500, 112),
            ("internvl", json!({ "text_tokens": 5 }), 0, 0, 5),
        ] {
            let response = answered(&json!({ "kind": "input-shapes", "preprocessing": family, "items": [item] }));
            assert_eq!(response["batch"], json!([batch]), "{family}");
            assert_eq!(response["encoder_tokens"], json!([encoder]), "{family}");
            assert_eq!(response["backbone_tokens"], json!([backbone]), "{family}");
            assert_eq!(response["mean_backbone_tokens"].as_f64(), Some(f64::from(backbone)), "{family}");
        }
    }

    #[test]
    fn wrong_fields_are_named() {
        let item = json!({ "images": [[0, 9]], "frames": 4, "clips_s": [-1] });
        assert_eq!(
            validation_errors(&json!({ "kind": "input-shapes", "preprocessing": "clip", "items": [item] })),
            [
                "/preprocessing: \"clip\" is none of llava-onevision, internvl, qwen-vl, qwen2-audio",
                "/items/0/images/0: 0 x 9 pixels: edges are 1 to 65536",
                "/items/0/frame: the size of the frames is missing",
                "/items/0/clips_s/0: -1 is not from 0 to 86400 s",
            ]
        );
        let many = json!({ "kind": "input-shapes", "preprocessing": "qwen-vl", "items": [{ "frames": 1_000_001, "frame": [28, 28] }] });
        assert_eq!(validation_errors(&many), ["/items: 1000001 images, frames and clips are more than 1000000"]);
        let none = json!({ "kind": "input-shapes", "preprocessing": "qwen-vl", "items": [] });
        assert_eq!(validation_errors(&none), ["/items: 0 is not a number of items from 1 to 65536"]);
    }
}
