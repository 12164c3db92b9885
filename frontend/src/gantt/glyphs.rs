//! Letters and digits of labels as alpha masks for the raster image of the bars.
//!
//! The browser rasterizes a glyph once per font and pixel ratio, so thousands of labels per frame
//! need no browser calls.

use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

use super::raster::Mask;

/// Characters that labels can contain.
const SIGNS: &str = "FBIWSO0123456789+-%";

/// Glyphs for a font and pixel ratio.
#[derive(Debug, Clone, Default)]
pub(crate) struct Glyphs {
    /// Mask and width per glyph, in device pixels.
    masks: Vec<(Mask, f64)>,
}

impl Glyphs {
    /// Rasterizes all glyphs with a height of `height` device pixels. Returns an empty set if the
    /// browser provides no canvas; the chart then has no labels.
    pub(crate) fn draw(family: &str, size_px: f64, ratio: f64, height: usize) -> Self {
        Self::try_draw(family, size_px * ratio, height).unwrap_or_default()
    }

    fn try_draw(family: &str, size: f64, height: usize) -> Option<Self> {
        let canvas = leptos::prelude::document().create_element("canvas").ok()?.dyn_into::<HtmlCanvasElement>().ok()?;
        let side = (size * 2.0).ceil().max(4.0);
        canvas.set_width(side as u32);
        canvas.set_height(height as u32);
        let context = canvas.get_context("2d").ok().flatten()?.dyn_into::<CanvasRenderingContext2d>().ok()?;
        let mut masks = Vec::new();
        for sign in SIGNS.chars() {
            let text = sign.to_string();
            context.clear_rect(0.0, 0.0, side, height as f64);
            context.set_font(&format!("{size}px {family}"));
            context.set_text_baseline("middle");
            context.set_fill_style_str("#000000");
            context.fill_text(&text, 0.0, (height as f64 / 2.0 + 0.5).round()).ok()?;
            let width = context.measure_text(&text).ok()?.width();
            let pixels = context.get_image_data(0.0, 0.0, side, height as f64).ok()?.data();
            let columns = (width.ceil() as usize + 1).min(side as usize);
            let part = |x: usize, y: usize| pixels.get((y * side as usize + x) * 4 + 3).copied().unwrap_or(0);
            let parts = (0..height).flat_map(|y| (0..columns).map(move |x| (x, y))).map(|(x, y)| part(x, y)).collect();
            masks.push((Mask { width: columns, height, parts }, width));
        }
        Some(Self { masks })
    }

    /// Glyph mask and width, in device pixels.
    pub(crate) fn get(&self, sign: char) -> Option<(&Mask, f64)> {
        let (mask, width) = self.masks.get(SIGNS.find(sign)?)?;
        Some((mask, *width))
    }

    /// Glyph width in device pixels; 0 for unknown characters.
    pub(crate) fn width(&self, sign: char) -> f64 {
        self.get(sign).map_or(0.0, |(_, width)| width)
    }
}
