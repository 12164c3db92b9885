//! Pictures on the cards of ready scenarios: drawings of what the charts will look like, not results.

/// The picture of a ready scenario.
pub(crate) fn of(slug: &str) -> &'static str {
    match slug {
        "vlm-s-image-heavy" | "vlm-s-pipeweaver-steps" => include_str!("sketch/uneven.svg"),
        "llama-2-7b-long-documents" => include_str!("sketch/long-tail.svg"),
        _ => include_str!("sketch/uniform.svg"),
    }
}
