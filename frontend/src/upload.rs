//! Uploads length files: drop, preview, adjust parsing, store.

mod card;
mod choice;
mod columns;
mod import;
mod local;
mod options;
mod report;
mod transfer;

use api::dataset::Uploaded;
use leptos::prelude::*;
use leptos::task::spawn_local;

use crate::drop::FileDrop;
use crate::file_uploads::FileUploads;
use card::ImportCard;
use import::Import;
use options::PreprocessingField;
pub(crate) use report::ImportReportView;

/// Drop area for length files, and a card for the dropped files.
#[component]
pub(crate) fn Upload(
    /// True for a single line instead of a large drop area.
    compact: bool,
    /// Text of the store button.
    action: &'static str,
    #[prop(into)] on_uploaded: Callback<Uploaded>,
    /// Called when files are selected.
    #[prop(optional, into)]
    on_begin: Option<Callback<()>>,
) -> impl IntoView {
    let import = Import::new();
    // The card shows the progress.
    let idle = FileUploads::new();
    let files = StoredValue::new_local(Vec::<web_sys::File>::new());
    let take = move |file: web_sys::File| {
        files.update_value(|files| files.push(file));
        if files.with_value(Vec::len) > 1 {
            return;
        }
        // Files selected together trigger separate events. All events arrive before this task runs.
        spawn_local(async move {
            let files = files.try_update_value(std::mem::take).unwrap_or_default();
            if !files.is_empty() {
                if let Some(on_begin) = on_begin {
                    on_begin.run(());
                }
                import.begin(files);
            }
        });
    };
    let has_files = Memo::new(move |_| import.has_files());
    view! {
        <FileDrop
            title=Signal::stored("Drop or choose files of lengths".to_owned())
            hint="Lengths, texts, chats or histograms as CSV, JSON, JSON lines, Parquet, Arrow, NumPy, Megatron .idx or plain numbers; .gz and .zst; several shards at once"
            test_id="upload"
            sending=idle
            compact=compact
            multiple=true
            on_file=take
        />
        {(!compact).then(|| view! { <PreprocessingField import=import /> })}
        <Show when=move || has_files.get()>
            <ImportCard import=import action=action has_external_rule=!compact on_uploaded=on_uploaded />
        </Show>
    }
}
