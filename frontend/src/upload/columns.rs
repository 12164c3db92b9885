//! Columns to choose from, each with sample values and the histogram that it gives.

use api::dataset::ColumnCandidate;
use leptos::prelude::*;

use super::import::Import;
use crate::charts::SmallHistogram;

/// The question which column holds the lengths.
#[component]
pub(super) fn ColumnChooser(import: Import, columns: Vec<ColumnCandidate>) -> impl IntoView {
    let line = |column: ColumnCandidate| {
        let name = column.name.clone();
        let choose = move |_| {
            let name = name.clone();
            import.choose(|choice| choice.column = Some(name));
        };
        let meaning = match column.meaning.as_str() {
            "unknown" => column.kind.clone(),
            meaning => format!("{}, {meaning}", column.kind),
        };
        let preview = match column.preview {
            Some(data) => view! { <SmallHistogram data=data unit="tokens" /> }.into_any(),
            None => view! { <small>"No histogram for this column"</small> }.into_any(),
        };
        view! {
            <li>
                <button type="button" class="column" on:click=choose>
                    <span class="column-name"><b>{column.name}</b><small>{meaning}</small></span>
                    <span class="column-samples">{column.samples.join(" · ")}</span>
                    {column.note.map(|note| view! { <span class="column-note">{note}</span> })}
                    <span class="column-preview">{preview}</span>
                </button>
            </li>
        }
    };
    view! {
        <div class="notice" role="alert" data-testid="column-unclear">
            <b>"Choose the column with the lengths"</b>
            <p>"The names of the columns do not say which one holds the number of tokens of each sample. Nothing is stored yet."</p>
        </div>
        <ul class="columns" aria-label="Columns">{columns.into_iter().map(line).collect_view()}</ul>
    }
}
