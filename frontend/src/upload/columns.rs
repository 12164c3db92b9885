//! Column selection with sample values and a histogram for each column.

use api::dataset::ColumnCandidate;
use leptos::prelude::*;

use super::choice::{ImportOptions, Purpose};
use super::import::Import;
use crate::charts::SmallHistogram;

/// Column selection prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ColumnPrompt {
    /// Selects the length column.
    Lengths,
    /// Selects the column with the sample count per row. The length column is given.
    Weight(String),
}

impl ColumnPrompt {
    fn new(options: &ImportOptions) -> Self {
        match &options.column {
            Some(column) if options.weight == Purpose::ByName => Self::Weight(column.clone()),
            _ => Self::Lengths,
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Lengths => "Choose the column with the lengths".to_owned(),
            Self::Weight(column) => format!("Choose the number of samples of each row of {column}"),
        }
    }

    fn detail(&self) -> &'static str {
        match self {
            Self::Lengths => {
                "The column names do not show which column contains the number of tokens per sample. Nothing is stored yet."
            }
            Self::Weight(_) => {
                "The rows look like a histogram: another column may contain the number of samples per row. Nothing is stored yet."
            }
        }
    }

    /// Applies the selected column to the options.
    fn apply(&self, options: &mut ImportOptions, name: String) {
        match self {
            Self::Lengths => options.column = Some(name),
            Self::Weight(_) => options.weight = Purpose::Column(name),
        }
    }
}

/// Column prompt with a button per column.
#[component]
pub(super) fn ColumnChooser(import: Import, columns: Vec<ColumnCandidate>) -> impl IntoView {
    let prompt = import.options.with_untracked(ColumnPrompt::new);
    let line = |column: ColumnCandidate| {
        let (name, asks) = (column.name.clone(), prompt.clone());
        let choose = move |_| {
            let name = name.clone();
            import.choose(|options| asks.apply(options, name));
        };
        let meaning = match column.meaning.as_str() {
            "unknown" => column.kind.clone(),
            meaning => format!("{}, {meaning}", column.kind),
        };
        let preview = (prompt == ColumnPrompt::Lengths).then(|| match column.preview {
            Some(data) => view! { <SmallHistogram data=data unit="tokens" /> }.into_any(),
            None => view! { <small>"No histogram for this column"</small> }.into_any(),
        });
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
    let is_offered = |column: &ColumnCandidate| match &prompt {
        ColumnPrompt::Lengths => true,
        ColumnPrompt::Weight(lengths) => column.name != *lengths && column.kind == "numbers",
    };
    let no_weight = (prompt != ColumnPrompt::Lengths).then(|| {
        let choose = move |_| import.choose(|options| options.weight = Purpose::None);
        view! {
            <li>
                <button type="button" class="column" data-testid="no-weight" on:click=choose>
                    <b>"Every row is one sample"</b>
                </button>
            </li>
        }
    });
    let lines = columns.into_iter().filter(is_offered).map(line).collect_view();
    view! {
        <div class="notice" role="alert" data-testid="column-unclear">
            <b>{prompt.title()}</b>
            <p>{prompt.detail()}</p>
        </div>
        <ul class="columns" aria-label="Columns">{no_weight}{lines}</ul>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_prompt_follows_length_prompt() {
        let mut options = ImportOptions::default();
        assert_eq!(ColumnPrompt::new(&options), ColumnPrompt::Lengths);
        ColumnPrompt::Lengths.apply(&mut options, "length".to_owned());
        let prompt = ColumnPrompt::new(&options);
        assert_eq!(prompt, ColumnPrompt::Weight("length".to_owned()));
        prompt.apply(&mut options, "count".to_owned());
        assert_eq!(options.weight, Purpose::Column("count".to_owned()));
        assert_eq!(ColumnPrompt::new(&options), ColumnPrompt::Lengths);
    }
}
