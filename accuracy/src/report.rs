//! What came out: on the terminal, as a page with plots, and as data for the dashboard.

pub mod compare;
pub mod console;
pub mod json;
pub mod markdown;
pub mod plot;
pub mod residuals;
