//! Layers per stage: as usual, fixed by the user, or free.

use api::planner::scenario::FreeSetting;
use leptos::prelude::*;
use serde_json::{Value, json};

use super::field::FieldError;
use super::free::{FreeCheck, LAYERS_PER_STAGE, is_free};
use crate::form::use_form;
use crate::pointer;

const ID: &str = "field-layers-per-stage";

/// Field for the number of layers of each stage. An empty field means equal stages.
#[component]
pub(super) fn StageLayers() -> impl IntoView {
    let form = use_form();
    let chosen = Memo::new(move |_| form.document.with(|scenario| is_free(scenario, FreeSetting::LayersPerStage)));
    let stored = Memo::new(move |_| {
        form.document.with(|scenario| pointer::get(scenario, LAYERS_PER_STAGE).map(text).unwrap_or_default())
    });
    let write = move |typed: String| {
        let complaint = match parse(&typed) {
            Some(stages) if stages.is_empty() => {
                form.remove(LAYERS_PER_STAGE);
                None
            }
            Some(stages) => {
                form.set(LAYERS_PER_STAGE, json!(stages));
                None
            }
            None => Some("Enter whole numbers, for example “7 8*6 7”: 8*6 is six stages of 8 layers.".to_owned()),
        };
        form.unreadable.update(|errors| errors.set(LAYERS_PER_STAGE, complaint));
    };
    let wrong = move || {
        let is_wrong = |errors: &crate::field_errors::FieldErrors| errors.at(LAYERS_PER_STAGE).is_some();
        form.unreadable.with(is_wrong) || form.errors.with(is_wrong)
    };
    view! {
        <div class="field choosable" class:wrong=wrong class:chosen=move || chosen.get()>
            <label for=ID>"Layers per stage"</label>
            <FreeCheck setting=FreeSetting::LayersPerStage />
            <input
                id=ID
                type="text"
                inputmode="numeric"
                autocomplete="off"
                title="Numbers of layers in the order of the forward pass, PP x VPP of them; 8*6 is six stages of 8 layers"
                placeholder=move || if chosen.get() { "free" } else { "equal" }
                disabled=move || chosen.get()
                data-pointer=LAYERS_PER_STAGE
                data-testid="stage-layers"
                aria-invalid=move || wrong().to_string()
                prop:value=move || if chosen.get() { String::new() } else { stored.get() }
                on:change=move |event| write(event_target_value(&event))
            />
            <FieldError pointer=LAYERS_PER_STAGE.to_owned() />
        </div>
    }
}

/// Formats numbers of layers; several equal stages are "8*6".
fn text(stages: &Value) -> String {
    let stages: Vec<u64> = stages.as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    let runs = stages.chunk_by(|first, second| first == second);
    let run = |run: &[u64]| if run.len() > 1 { format!("{}*{}", run[0], run.len()) } else { run[0].to_string() };
    runs.map(run).collect::<Vec<_>>().join(" ")
}

/// Largest number of stages that the field reads.
const MAX_STAGES: usize = 8192;

/// Reads numbers with any separator. `None` if a part is no whole number, or if there are too many. A hyphen between two
/// numbers separates them; otherwise it is a sign.
fn parse(text: &str) -> Option<Vec<u32>> {
    let mut stages = Vec::new();
    let is_digit = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_digit());
    let is_sign = |at: usize| !is_digit(text[..at].chars().next_back()) && is_digit(text[at + 1..].chars().next());
    if text.match_indices('-').any(|(at, _)| is_sign(at)) {
        return None;
    }
    let is_separator = |letter: char| letter.is_whitespace() || matches!(letter, ',' | ';' | '|' | '/' | '-');
    for part in text.split(is_separator).filter(|part| !part.is_empty()) {
        let (count, times) = part.split_once(['*', '×']).unwrap_or((part, "1"));
        let (count, times) = (count.parse::<u32>().ok()?, times.parse::<usize>().ok()?);
        if times > MAX_STAGES - stages.len() {
            return None;
        }
        stages.extend(std::iter::repeat_n(count, times));
    }
    Some(stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_shortened() {
        assert_eq!(parse("7 8*2, 9|8"), Some(vec![7, 8, 8, 9, 8]));
        assert_eq!(parse("7-8 - 9"), Some(vec![7, 8, 9]));
        assert_eq!(parse(" "), Some(vec![]));
        for wrong in ["-1", "7 -8", "7 x", "7.5", "8*", "8*9000", "8*4294967296000", "99999999999"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(text(&json!([7, 8, 8, 9])), "7 8*2 9");
        assert_eq!(text(&Value::Null), "");
    }
}
