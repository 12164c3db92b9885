//! Column selection with sample values and a histogram for each column.

use api::dataset::ColumnCandidate;
use leptos::prelude::*;

use super::choice::{Choice, Purpose};
use super::import::Import;
use crate::charts::SmallHistogram;

/// Column selection prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Question {
    /// Selects the length column.
    Lengths,
    /// Selects the column with the sample count per row. The length column is given.
    Weight(String),
}

impl Question {
    fn new(choice: &Choice) -> Self {
        match &choice.column {
            Some(column) if choice.weight == Purpose::ByName => Self::Weight(column.clone()),
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
    fn answer(&self, choice: &mut Choice, name: String) {
        match self {
            Self::Lengths => choice.column = Some(name),
            Self::Weight(_) => choice.weight = Purpose::Column(name),
        }
    }
}

/// Column prompt with a button per column.
#[component]
pub(super) fn ColumnChooser(import: Import, columns: Vec<ColumnCandidate>) -> impl IntoView {
    let question = import.choice.with_untracked(Question::new);
    let line = |column: ColumnCandidate| {
        let (name, asks) = (column.name.clone(), question.clone());
        let choose = move |_| {
            let name = name.clone();
            import.choose(|choice| asks.answer(choice, name));
        };
        let meaning = match column.meaning.as_str() {
            "unknown" => column.kind.clone(),
            meaning => format!("{}, {meaning}", column.kind),
        };
        let preview = (question == Question::Lengths).then(|| match column.preview {
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
    let is_offered = |column: &ColumnCandidate| match &question {
        Question::Lengths => true,
        Question::Weight(lengths) => column.name != *lengths && column.kind == "numbers",
    };
    let no_weight = (question != Question::Lengths).then(|| {
        let choose = move |_| import.choose(|choice| choice.weight = Purpose::None);
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
            <b>{question.title()}</b>
            <p>{question.detail()}</p>
        </div>
        <ul class="columns" aria-label="Columns">{no_weight}{lines}</ul>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weight_is_asked_after_the_lengths() {
        let mut choice = Choice::default();
        assert_eq!(Question::new(&choice), Question::Lengths);
        Question::Lengths.answer(&mut choice, "length".to_owned());
        let question = Question::new(&choice);
        assert_eq!(question, Question::Weight("length".to_owned()));
        question.answer(&mut choice, "count".to_owned());
        assert_eq!(choice.weight, Purpose::Column("count".to_owned()));
        assert_eq!(Question::new(&choice), Question::Lengths);
    }
}
