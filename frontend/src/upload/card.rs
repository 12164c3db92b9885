//! Card for parsed files that are not yet stored.

use api::dataset::{DatasetPreview, Uploaded};
use leptos::prelude::*;

use super::columns::ColumnChooser;
use super::import::{Import, Progress, Stage, files_name};
use super::options::{MeasureFields, PreprocessingField};
use super::report::ImportReportView;
use crate::charts::Histogram;
use crate::format;
use crate::notice::ErrorNotice;
use crate::runs::size;

/// Sent bytes and a cancel button.
#[component]
pub(super) fn ProgressLine(import: Import) -> impl IntoView {
    // Retain the element while numbers change, so that the button keeps the focus.
    let is_visible = Memo::new(move |_| import.progress.with(Option::is_some));
    let text = move || import.progress.with(|progress| progress.as_ref().map(progress_text).unwrap_or_default());
    let share = move || import.progress.with(|progress| progress.as_ref().and_then(|progress| progress.bytes));
    view! {
        <Show when=move || is_visible.get()>
            <div class="upload-progress" data-testid="upload-progress">
                <progress
                    aria-label="Upload"
                    max="1"
                    // Without a known total, the bar shows an indefinite activity.
                    value=move || share().map(|(sent, total)| if total > 0.0 { sent / total } else { 1.0 })
                />
                <span role="status">{text}</span>
                <button type="button" data-testid="cancel-upload" on:click=move |_| import.cancel()>"Cancel"</button>
            </div>
        </Show>
    }
}

fn progress_text(progress: &Progress) -> String {
    let (number, count) = progress.number;
    let file_position = if count > 1 { format!(" ({number} of {count})") } else { String::new() };
    match progress.bytes {
        Some((sent, total)) => {
            format!("{}{file_position}: {} of {} sent", progress.file, size(sent as u64), size(total as u64))
        }
        None => format!("{}{file_position}: the server reads the file", progress.file),
    }
}

/// File information, parsing options, and a store button.
#[component]
pub(super) fn ImportCard(
    import: Import,
    /// Text of the store button.
    action: &'static str,
    /// True if the media rule is selected elsewhere on the page.
    has_external_rule: bool,
    on_uploaded: Callback<Uploaded>,
) -> impl IntoView {
    let files =
        move || import.selected_files.with(|(names, bytes)| format!("{} ({})", files_name(names), size(*bytes as u64)));
    let stage = move || match import.stage.get() {
        Stage::Empty => ().into_any(),
        Stage::Unclear(columns) => view! { <ColumnChooser import=import columns=columns /> }.into_any(),
        Stage::Rejected(file, error) => view! {
            <div data-testid="upload-refused">
                <p class="muted">{file}</p>
                <ErrorNotice error=error on_retry=move |()| import.read() />
            </div>
        }
        .into_any(),
        Stage::Ready(preview) => view! { <Preview preview=*preview /> }.into_any(),
    };
    let has_rule = move || {
        !has_external_rule && {
            let media =
                import.stage.with(|stage| matches!(stage, Stage::Ready(preview) if preview.report.media.is_some()));
            media || import.options.with(|current| current.preprocessing.is_some())
        }
    };
    let shows_fields = Memo::new(move |_| import.stage.with(|stage| *stage != Stage::Empty));
    view! {
        <section class="import-card" aria-label="Preview" data-testid="import-card" aria-busy=move || import.progress.with(Option::is_some).to_string()>
            <header>
                <h2>{files}</h2>
                <button type="button" class="quiet" data-testid="discard-upload" on:click=move |_| import.discard()>"Discard"</button>
            </header>
            <ProgressLine import=import />
            {stage}
            <Show when=move || shows_fields.get()>
                <Show when=has_rule><PreprocessingField import=import /></Show>
                <MeasureFields import=import />
            </Show>
            <StoreButton import=import action=action on_uploaded=on_uploaded />
        </section>
    }
}

/// Preview: figures, chart, report.
#[component]
fn Preview(preview: DatasetPreview) -> impl IntoView {
    let DatasetPreview { samples, text_tokens, images, shaped, report, .. } = preview;
    let statistics = format!(
        "In the file: {} samples, mean {} tokens, p99 {}, max {}",
        format::count(samples),
        format::length(text_tokens.mean),
        format::length(text_tokens.p99),
        format::length(text_tokens.max),
    );
    let text = if shaped.is_some() { "text tokens per sample, in the file" } else { "tokens per sample, in the file" };
    let backbone = shaped.as_ref().map(|shaped| {
        view! { <Histogram data=Signal::stored(Some(shaped.backbone_tokens.clone())) unit="backbone tokens per sample, after preprocessing" /> }
    });
    let items = if shaped.is_some() {
        "encoder items per sample, after preprocessing"
    } else {
        "images per sample, in the file"
    };
    view! {
        <p class="figures" data-testid="preview-figures"><b>{statistics}</b></p>
        <Histogram data=Signal::stored(Some(text_tokens)) unit=text />
        {backbone}
        {images.map(|images| view! { <Histogram data=Signal::stored(Some(images)) unit=items /> })}
        <ImportReportView report=report />
    }
}

/// Dataset name and store button.
#[component]
fn StoreButton(import: Import, action: &'static str, on_uploaded: Callback<Uploaded>) -> impl IntoView {
    let preview = Memo::new(move |_| {
        import.stage.with(|stage| match stage {
            Stage::Ready(preview) => Some(preview.clone()),
            _ => None,
        })
    });
    let name = RwSignal::new(String::new());
    let known = Memo::new(move |_| preview.with(|preview| preview.as_ref().map(|preview| preview.name.clone())));
    // A new option parses the same files again. Keep the typed name.
    Effect::new(move |_| name.set(known.get().unwrap_or_default()));
    let is_pending = Signal::derive(move || import.progress.with(Option::is_some));
    let store = move |_| {
        if let Some(preview) = preview.get_untracked() {
            import.store(&preview, name.get_untracked(), on_uploaded);
        }
    };
    view! {
        <Show when=move || known.with(Option::is_some)>
            <div class="store">
                <label for="upload-name">"Name"</label>
                <input
                    id="upload-name"
                    data-testid="upload-name"
                    type="text"
                    maxlength="120"
                    prop:value=move || name.get()
                    on:input=move |event| name.set(event_target_value(&event))
                />
                <button type="button" class="primary" data-testid="store-dataset" disabled=is_pending on:click=store>{action}</button>
            </div>
        </Show>
    }
}
