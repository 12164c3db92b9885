//! Files that the user selects or drops, and their text.

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::{DragEvent, Event, File, FileList, HtmlInputElement, HtmlTextAreaElement};

/// Bytes of a MiB.
const MIB: u32 = 1024 * 1024;

/// Returns the files of a list.
pub(crate) fn listed(files: Option<FileList>) -> Vec<File> {
    files.map(|files| (0..files.length()).filter_map(|index| files.get(index)).collect()).unwrap_or_default()
}

/// Takes the selected files of a file input. Clears the input, so that selecting the same file
/// again fires a change event.
pub(crate) fn selected(event: &Event) -> Vec<File> {
    let input = event_target::<HtmlInputElement>(event);
    let files = listed(input.files());
    input.set_value("");
    files
}

/// Element on which files can be dropped.
#[derive(Clone, Copy)]
pub(crate) struct DropTarget {
    is_over: RwSignal<bool>,
    on_files: Callback<Vec<File>>,
}

impl DropTarget {
    /// Creates a target. `on_files` is called with the files of a drop.
    pub(crate) fn new(on_files: impl Fn(Vec<File>) + Send + Sync + 'static) -> Self {
        Self { is_over: RwSignal::new(false), on_files: Callback::new(on_files) }
    }

    /// True while files are dragged over the element.
    pub(crate) fn is_over(self) -> bool {
        self.is_over.get()
    }

    /// Handles `dragover`. Targets can be nested, so the event does not reach outer ones.
    pub(crate) fn drag_over(self, event: &DragEvent) {
        event.prevent_default();
        event.stop_propagation();
        self.is_over.set(true);
    }

    /// Handles `dragleave`.
    pub(crate) fn drag_leave(self) {
        self.is_over.set(false);
    }

    /// Handles `drop`. The browser inserts text that is dropped on a text field, and opens no other
    /// dropped content.
    pub(crate) fn drop(self, event: &DragEvent) {
        self.is_over.set(false);
        let files = listed(event.data_transfer().and_then(|data| data.files()));
        let is_text_field = event.target().is_some_and(|target| target.dyn_ref::<HtmlTextAreaElement>().is_some());
        if !files.is_empty() || !is_text_field {
            event.prevent_default();
        }
        if !files.is_empty() {
            event.stop_propagation();
            self.on_files.run(files);
        }
    }
}

/// Reads a file of at most `max_mib` MiB as text.
///
/// # Errors
/// A sentence for the user, with the name of the file.
pub(crate) async fn read_text(file: &File, max_mib: u32) -> Result<String, String> {
    let name = file.name();
    if file.size() > f64::from(max_mib * MIB) {
        return Err(format!("{name} is larger than {max_mib} MiB."));
    }
    let text = JsFuture::from(file.text()).await.ok().and_then(|text| text.as_string());
    text.ok_or_else(|| format!("The browser cannot read {name}."))
}
