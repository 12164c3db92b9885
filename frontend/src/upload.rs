//! Uploading a file of lengths: drag it here or choose it, and read what was made of it.

use api::dataset::{ImportReport, MediaReport, ShapedReport, Uploaded};
use api::path;
use api::planner::data_aware::Preprocessing;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::client::{self, Failure};
use crate::drop::FileDrop;
use crate::format;
use crate::notice::FailureNotice;
use crate::sending::Sending;

/// A place to drop a file of lengths on.
#[component]
pub(crate) fn Upload(
    /// A single line instead of a field to aim at.
    compact: bool,
    #[prop(into)] on_uploaded: Callback<Uploaded>,
) -> impl IntoView {
    let sending = Sending::new();
    let failure = RwSignal::new(None::<Failure>);
    let alternatives = RwSignal::new(Vec::<String>::new());
    let last_file = StoredValue::new_local(None::<web_sys::File>);
    // Of the last file; another file begins with the best known column.
    let last_column = StoredValue::new(None::<String>);
    let rule = RwSignal::new(None::<Preprocessing>);
    let has_media = RwSignal::new(false);
    let send = move |file: web_sys::File, column: Option<String>| {
        failure.set(None);
        // The file may be sent again with another choice: only the last answer counts.
        sending.call_back();
        let mut url = format!("{}?name={}", path::DATASETS, client::encode(&file.name()));
        if let Some(column) = &column {
            url.push_str("&column=");
            url.push_str(&client::encode(column));
        }
        if let Some(rule) = rule.get_untracked() {
            url.push_str("&preprocessing=");
            url.push_str(rule.id());
        }
        last_file.set_value(Some(file.clone()));
        last_column.set_value(column);
        spawn_local(async move {
            let Some(answer) = sending.send::<Uploaded>(&url, file).await else { return };
            match answer {
                Ok(uploaded) => {
                    alternatives.set(uploaded.report.alternatives.clone());
                    has_media.set(uploaded.report.media.is_some());
                    on_uploaded.run(uploaded);
                }
                Err(problem) => {
                    alternatives.set(Vec::new());
                    failure.set(Some(problem));
                }
            }
        });
    };
    let choose_column = move |event| {
        let column = event_target_value(&event);
        if let Some(file) = last_file.get_value() {
            send(file, Some(column));
        }
    };
    let choose_rule = move |event| {
        rule.set(Preprocessing::of_id(&event_target_value(&event)));
        if let Some(file) = last_file.get_value() {
            send(file, last_column.get_value());
        }
    };
    let shows_rules = move || !compact || has_media.get() || rule.get().is_some();
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose a file of lengths".to_owned())
            hint="CSV, JSON, JSON lines, Parquet, .npy, Megatron .idx or plain numbers"
            test_id="upload"
            sending=sending
            compact=compact
            on_file=move |file| send(file, None)
        />
        {move || failure.get().map(|failure| view! { <FailureNotice failure=failure /> })}
        <Show when=move || !alternatives.get().is_empty()>
            <div class="field picker">
                <label for="upload-column">"Other column"</label>
                <select id="upload-column" on:change=choose_column>
                    <option value="" selected=true disabled=true>"choose…"</option>
                    {move || alternatives.get().into_iter().map(|name| view! { <option value=name.clone()>{name.clone()}</option> }).collect_view()}
                </select>
            </div>
        </Show>
        <Show when=shows_rules>
            <div class="field picker preprocessing">
                <label for="upload-preprocessing">"Preprocessing"</label>
                <select
                    id="upload-preprocessing"
                    data-testid="upload-preprocessing"
                    title="What sizes of images, frames and seconds of sound become: items of the encoder and tokens of the backbone"
                    on:change=choose_rule
                >
                    <option value="" selected=move || rule.get().is_none()>"None"</option>
                    {Preprocessing::ALL
                        .into_iter()
                        .map(|choice| {
                            view! {
                                <option value=choice.id() selected=move || rule.get() == Some(choice)>
                                    {choice.title()}
                                </option>
                            }
                        })
                        .collect_view()}
                </select>
            </div>
        </Show>
    }
}

/// What an import read and what it did not.
#[component]
pub(crate) fn ImportReportView(report: ImportReport) -> impl IntoView {
    let mut read = format!("{} samples read", format::count(report.parsed + report.repaired));
    for (count, word) in [(report.repaired, "repaired"), (report.skipped, "left out")] {
        if count > 0 {
            read.push_str(", ");
            read.push_str(&format::count(count));
            read.push(' ');
            read.push_str(word);
        }
    }
    view! {
        <div class="import-report" data-testid="import-report" role="status">
            <b>{read}</b>
            <span>{format!("{}, {}", report.format, report.source)}</span>
            {report.first_problem.map(|problem| view! { <span class="warning">{problem}</span> })}
            {report.media.map(media)}
        </div>
    }
}

/// What became of media.
fn media(report: MediaReport) -> impl IntoView {
    let lines = report.shaped.map(|shaped| {
        let words = in_words(&shaped);
        let unread = (!shaped.unread.is_empty()).then(|| {
            let told = format!("Not read by {}: {}", shaped.preprocessing.title(), shaped.unread.join(", "));
            view! { <span class="warning">{told}</span> }
        });
        let lines = words.map(|line| view! { <span>{line}</span> }).collect_view();
        view! {
            {lines}
            {unread}
        }
    });
    view! {
        {lines}
        {report.advice.map(|advice| view! { <span class="warning" data-testid="import-advice">{advice}</span> })}
    }
}

fn in_words(shaped: &ShapedReport) -> [String; 3] {
    let figures =
        |mean: f64, most: f64| format!("mean {}, most {}", format::three_digits(mean), format::count(most as u64));
    let with = format::count(shaped.with_items);
    [
        format!(
            "Encoder, by {}: {} items a sample",
            shaped.preprocessing.title(),
            figures(shaped.mean_batch, shaped.largest_batch)
        ),
        format!("Backbone: {} tokens a sample", figures(shaped.mean_backbone_tokens, shaped.largest_backbone_tokens)),
        match shaped.without_items {
            0 => format!("{with} samples have items for the encoder"),
            without => format!("{with} samples have items for the encoder, {} have none", format::count(without)),
        },
    ]
}
