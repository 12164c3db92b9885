//! Fields for parsing options.

use api::planner::workload::preprocessing::Preprocessing;
use leptos::prelude::*;

use super::choice::{ImportOptions, Purpose, UNITS};
use super::import::{Import, Stage};
use crate::client::RequestError;
use crate::drop::FileDrop;
use crate::file_uploads::FileUploads;
use crate::notice::ErrorNotice;

/// Picker options: value, text.
type Options = Vec<(String, String)>;

#[component]
fn Picker(
    id: &'static str,
    label: &'static str,
    title: &'static str,
    #[prop(into)] options: Signal<Options>,
    #[prop(into)] selected_value: Signal<String>,
    #[prop(into)] on_choose: Callback<String>,
    #[prop(optional, into)] disabled: Signal<bool>,
) -> impl IntoView {
    let options = move || {
        let option = |(value, text): (String, String)| {
            let option_value = value.clone();
            view! { <option value=value prop:selected=move || selected_value.get() == option_value>{text}</option> }
        };
        options.get().into_iter().map(option).collect_view()
    };
    view! {
        <div class="field picker">
            <label for=id>{label}</label>
            <select id=id data-testid=id title=title disabled=disabled on:change=move |event| on_choose.run(event_target_value(&event))>
                {options}
            </select>
        </div>
    }
}

/// Value of the option for no column. Column names never start with this character.
const NONE: &str = "\u{1}";

fn purpose_value(purpose: &Purpose) -> String {
    match purpose {
        Purpose::ByName => String::new(),
        Purpose::None => NONE.to_owned(),
        Purpose::Column(name) => name.clone(),
    }
}

fn parse_purpose(value: String) -> Purpose {
    match value.as_str() {
        "" => Purpose::ByName,
        NONE => Purpose::None,
        _ => Purpose::Column(value),
    }
}

/// Fields for columns, unit, characters per token and tokenizer.
#[component]
pub(super) fn MeasureFields(import: Import) -> impl IntoView {
    let import_options = import.options;
    let names = move || {
        let mut names: Vec<String> =
            import.columns.with(|columns| columns.iter().map(|column| column.name.clone()).collect());
        if let Some(selected) = import_options
            .with(|current| current.column.clone())
            .filter(|selected_column| !names.contains(selected_column))
        {
            names.insert(0, selected);
        }
        names
    };
    let named = move |first: &[(&str, &str)]| -> Options {
        let first: Vec<_> = first.iter().map(|&(value, text)| (value.to_owned(), text.to_owned())).collect();
        first.into_iter().chain(names().into_iter().map(|name| (name.clone(), name))).collect()
    };
    let by_name = ("", "by its name");
    // The column that was chosen by its name is not in the list of the others.
    let lengths = Signal::derive(move || {
        let is_unclear = import.stage.with(|stage| matches!(stage, Stage::Unclear(_)));
        let source = import.stage.with(|stage| match stage {
            Stage::Ready(preview) => {
                let source = &preview.report.source;
                source.strip_prefix("column ").or(source.strip_prefix("key ")).map(str::to_owned)
            }
            _ => None,
        });
        let is_chosen = import_options.with(|current| current.column.is_some());
        match source.filter(|_| !is_chosen) {
            Some(column) => named(&[("", &format!("by its name: {column}"))]),
            // The names did not decide, so the user chooses.
            None if is_unclear && !is_chosen => named(&[("", "choose a column")]),
            None => named(&[by_name]),
        }
    });
    let purposes = Signal::derive(move || named(&[by_name, (NONE, "none")]));
    let units = Signal::stored(
        [("", "by its name")]
            .into_iter()
            .chain(UNITS.map(|unit| (unit, unit)))
            .map(|(value, text)| (value.to_owned(), text.to_owned()))
            .collect::<Options>(),
    );
    let has_columns = Memo::new(move |_| !names().is_empty());
    let has_no_column = Signal::derive(move || import_options.with(|column_options| column_options.column.is_none()));
    let option_signal = move |read: fn(&ImportOptions) -> String| Signal::derive(move || import_options.with(read));
    let choose_column = move |name: String| {
        import.choose(|changed| {
            changed.column = Some(name).filter(|name| !name.is_empty());
            changed.add = Purpose::ByName;
        });
    };
    view! {
        <div class="measure">
            <Show when=move || has_columns.get()>
                <Picker
                    id="upload-column"
                    label="Lengths"
                    title="Column with the length of each sample"
                    options=lengths
                    selected_value=option_signal(|length_options| length_options.column.clone().unwrap_or_default())
                    on_choose=choose_column
                />
                <Picker
                    id="upload-add"
                    label="Add"
                    title="Column whose lengths are added, for example the tokens of the answer"
                    options=purposes
                    selected_value=option_signal(|add_options| purpose_value(&add_options.add))
                    on_choose=move |value| import.choose(|changed_add| changed_add.add = parse_purpose(value))
                    disabled=has_no_column
                />
                <Picker
                    id="upload-weight"
                    label="Samples per row"
                    title="Column with the number of samples of each row"
                    options=purposes
                    selected_value=option_signal(|weight_options| purpose_value(&weight_options.weight))
                    on_choose=move |value| import.choose(|changed_weight| changed_weight.weight = parse_purpose(value))
                />
            </Show>
            <Picker
                id="upload-unit"
                label="Unit"
                title="Unit of the numbers of the column"
                options=units
                selected_value=option_signal(|unit_options| unit_options.unit.unwrap_or_default().to_owned())
                on_choose=move |value: String| {
                    import.choose(|changed_unit| changed_unit.unit = UNITS.into_iter().find(|unit| *unit == value));
                }
            />
            <CharactersPerToken import=import />
            <TokenizerField import=import />
        </div>
    }
}

#[component]
fn CharactersPerToken(import: Import) -> impl IntoView {
    let error = RwSignal::new(None::<&'static str>);
    let replaced = Signal::derive(move || import.options.with(|current| current.tokenizer.is_some()));
    let value = move || {
        import.options.with(|current| current.characters_per_token.map(|ratio| ratio.to_string()).unwrap_or_default())
    };
    let change = move |event| {
        let text = event_target_value(&event);
        let ratio = match text.trim() {
            "" => None,
            typed => match typed.parse::<f64>() {
                Ok(ratio) if (0.1..=100.0).contains(&ratio) => Some(ratio),
                _ => {
                    error.set(Some("a number from 0.1 to 100 is needed"));
                    return;
                }
            },
        };
        error.set(None);
        import.choose(|changed| changed.characters_per_token = ratio);
    };
    view! {
        <div class="field" class:wrong=move || error.with(Option::is_some)>
            <label for="upload-characters">"Characters per token"</label>
            <input
                id="upload-characters"
                data-testid="upload-characters"
                type="number"
                inputmode="decimal"
                min="0.1"
                max="100"
                step="0.1"
                placeholder="4"
                title="Characters or bytes per token, for texts and for lengths in characters or bytes"
                prop:value=value
                disabled=replaced
                aria-invalid=move || error.with(Option::is_some).to_string()
                on:change=change
            />
        </div>
        {move || error.get().map(|error| view! { <p class="field-error" role="alert">{error}</p> })}
    }
}

/// Drop area for a tokenizer, or the selected tokenizer.
#[component]
fn TokenizerField(import: Import) -> impl IntoView {
    let idle = FileUploads::new();
    let used = move || {
        let tokenizer = import.options.with(|current| current.tokenizer.clone())?;
        let example = format!(
            "\u{201c}The quick brown fox jumps over the lazy dog.\u{201d} has {} tokens",
            tokenizer.summary.example_tokens
        );
        let remove = move |_| import.choose(|changed| changed.tokenizer = None);
        Some(view! {
            <p class="tokenizer" data-testid="tokenizer">
                <span><b>{tokenizer.file}</b><small>{example}</small></span>
                <button type="button" class="quiet" on:click=remove>"Remove"</button>
            </p>
        })
    };
    let error_notice =
        move || import.tokenizer_error.get().map(|error: RequestError| view! { <ErrorNotice error=error /> });
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose a tokenizer.json".to_owned())
            hint="Counts tokens in texts"
            test_id="upload-tokenizer"
            sending=idle
            compact=true
            on_file=move |file| import.use_tokenizer(file)
        />
        {used}
        {error_notice}
    }
}

/// Media conversion rule.
#[component]
pub(super) fn PreprocessingField(import: Import) -> impl IntoView {
    let rules = [("", "None")].into_iter().chain(Preprocessing::ALL.map(|rule| (rule.id(), rule.title())));
    let rules: Options = rules.map(|(value, text)| (value.to_owned(), text.to_owned())).collect();
    view! {
        <Picker
            id="upload-preprocessing"
            label="Preprocessing"
            title="Rule that converts image sizes, frames and seconds of audio to encoder items and backbone tokens"
            options=Signal::stored(rules)
            selected_value=Signal::derive(move || {
                import.options.with(|current| current.preprocessing.map(Preprocessing::id).unwrap_or_default().to_owned())
            })
            on_choose=move |value: String| import.choose(|changed| changed.preprocessing = Preprocessing::from_id(&value))
        />
    }
}
