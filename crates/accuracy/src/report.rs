//! Report formats: terminal table, Markdown page with plots, JSON for the dashboard.

pub mod certainty;
pub mod choice;
pub mod compare;
pub mod console;
pub mod json;
pub mod markdown;
pub mod plot;
pub mod residuals;
