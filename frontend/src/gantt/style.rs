//! Colours and fonts around the bars, read from the page's CSS variables.

use api::planner::timeline::levels::INKS;
use web_sys::HtmlCanvasElement;

use super::colours::{self, Paint};
use super::glyphs::Glyphs;
use super::palette::Theme;
use super::raster::Rgb;
use super::{observers, rows};

/// Font size in bars, in px.
const LETTER_PX: f64 = 11.0;

/// CSS colours.
#[derive(Debug, Clone)]
pub(crate) struct Chrome {
    pub(crate) theme: Theme,
    pub(crate) ink: String,
    pub(crate) mute: String,
    pub(crate) hatch: String,
    pub(crate) panel: String,
    pub(crate) accent: String,
    pub(crate) family: String,
}

impl Chrome {
    /// Reads the CSS variables and the canvas font.
    fn read(canvas: &HtmlCanvasElement) -> Self {
        let variable = observers::css_variables();
        let family = leptos::prelude::window()
            .get_computed_style(canvas)
            .ok()
            .flatten()
            .and_then(|style| style.get_property_value("font-family").ok())
            .filter(|family| !family.is_empty())
            .unwrap_or_else(|| "sans-serif".to_owned());
        Self {
            theme: observers::theme(),
            ink: variable("--ink", "#1a1d21"),
            mute: variable("--mute", "#667080"),
            hatch: variable("--hatch", "#d8dce2"),
            panel: variable("--panel", "#ffffff"),
            accent: variable("--accent", "#0b62d6"),
            family,
        }
    }
}

/// Chart style for a theme and a pixel ratio.
#[derive(Debug, Clone)]
pub(crate) struct Style {
    version: u32,
    ratio: f64,
    pub(crate) chrome: Chrome,
    pub(crate) paints: [Paint; INKS],
    pub(crate) panel: Rgb,
    pub(crate) hatch: Rgb,
    pub(crate) ink: Rgb,
    pub(crate) label_font: String,
    pub(crate) axis_font: String,
    pub(crate) glyphs: Glyphs,
}

impl Style {
    /// Reads the style from the page.
    pub(crate) fn read(version: u32, ratio: f64, canvas: &HtmlCanvasElement) -> Self {
        let chrome = Chrome::read(canvas);
        let panel = Rgb::parse(&chrome.panel);
        Self {
            version,
            ratio,
            paints: colours::paints(chrome.theme, panel),
            panel,
            hatch: Rgb::parse(&chrome.hatch),
            ink: Rgb::parse(&chrome.ink),
            label_font: format!("{LETTER_PX}px {}", chrome.family),
            axis_font: format!("10.5px {}", chrome.family),
            glyphs: Glyphs::draw(&chrome.family, LETTER_PX, ratio, (rows::BAR * ratio).round() as usize),
            chrome,
        }
    }

    /// Returns true if theme and pixel ratio are unchanged.
    pub(crate) fn is_current(&self, version: u32, ratio: f64) -> bool {
        self.version == version && self.ratio.total_cmp(&ratio).is_eq()
    }
}
