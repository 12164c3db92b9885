//! Dataset import: parse, preview, store.

use api::dataset::{
    ColumnCandidate, DatasetPreview, FileRanges, RANGES_MEDIA_TYPE, StorePreviews, TokenizerSummary, Uploaded,
};
use api::path;
use leptos::prelude::*;
use leptos::task::spawn_local;
use web_sys::File;

use super::choice::{ImportOptions, SelectedTokenizer};
use super::local;
use super::transfer::Transfer;
use crate::client::{self, Body, RequestError};

const BYTES: &str = "application/octet-stream";

/// Upload progress.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Progress {
    /// File that is being sent.
    pub(super) file: String,
    /// File number, starting at 1, and number of files.
    pub(super) number: (usize, usize),
    /// Sent bytes and total bytes. `None`: nothing to send, the server computes.
    pub(super) bytes: Option<(f64, f64)>,
}

/// Import state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    /// No file, or no result yet.
    Empty,
    /// The user must choose a column.
    Unclear(Vec<ColumnCandidate>),
    /// The file with this name is rejected.
    Rejected(String, RequestError),
    /// The files are parsed and can be stored.
    Ready(Box<DatasetPreview>),
}

/// Dataset import state.
#[derive(Clone, Copy)]
pub(super) struct Import {
    files: StoredValue<Vec<File>, LocalStorage>,
    /// File names and total bytes.
    pub(super) selected_files: RwSignal<(Vec<String>, f64)>,
    pub(super) options: RwSignal<ImportOptions>,
    pub(super) stage: RwSignal<Stage>,
    pub(super) progress: RwSignal<Option<Progress>>,
    /// Columns of the last parsed file.
    pub(super) columns: RwSignal<Vec<ColumnCandidate>>,
    /// Reason for the last rejected tokenizer.
    pub(super) tokenizer_error: RwSignal<Option<RequestError>>,
    /// Last tokenizer file. It may be sent again, because the server stores only a few tokenizers
    /// for a limited time.
    tokenizer: StoredValue<Option<File>, LocalStorage>,
    transfer: Transfer,
    /// Operation number. Results of older operations are ignored.
    generation: StoredValue<u64>,
}

/// Reason for an end without a preview.
enum End {
    /// A newer operation started, or the user left the page.
    Superseded,
    Failed(String, RequestError),
}

impl Import {
    pub(super) fn new() -> Self {
        let import = Self {
            files: StoredValue::new_local(Vec::new()),
            selected_files: RwSignal::default(),
            options: RwSignal::default(),
            stage: RwSignal::new(Stage::Empty),
            progress: RwSignal::new(None),
            columns: RwSignal::default(),
            tokenizer_error: RwSignal::new(None),
            tokenizer: StoredValue::new_local(None),
            transfer: Transfer::new(),
            generation: StoredValue::new(0),
        };
        on_cleanup(move || import.transfer.abort());
        import
    }

    pub(super) fn has_files(self) -> bool {
        self.selected_files.with(|(names, _)| !names.is_empty())
    }

    /// Starts an import of new files.
    pub(super) fn begin(self, files: Vec<File>) {
        self.selected_files.set((files.iter().map(File::name).collect(), files.iter().map(|file| file.size()).sum()));
        self.files.set_value(files);
        self.columns.set(Vec::new());
        self.tokenizer_error.set(None);
        self.options.update(|current| *current = current.for_another_file());
        self.stage.set(Stage::Empty);
        self.read();
    }

    /// Discards the files and all results.
    pub(super) fn discard(self) {
        self.cancel();
        self.files.set_value(Vec::new());
        self.selected_files.set((Vec::new(), 0.0));
        self.columns.set(Vec::new());
        self.tokenizer_error.set(None);
        self.options.update(|current| *current = current.for_another_file());
        self.stage.set(Stage::Empty);
    }

    /// Stops parsing.
    pub(super) fn cancel(self) {
        self.next_generation();
        self.transfer.abort();
        self.progress.set(None);
        if self.stage.with_untracked(|stage| *stage == Stage::Empty) {
            self.files.set_value(Vec::new());
            self.selected_files.set((Vec::new(), 0.0));
        }
    }

    /// Changes the options and parses the files again.
    pub(super) fn choose(self, change: impl FnOnce(&mut ImportOptions)) {
        let before = self.options.get_untracked();
        self.options.update(change);
        if self.options.with_untracked(|current| *current != before)
            && self.selected_files.with_untracked(|(names, _)| !names.is_empty())
        {
            self.read();
        }
    }

    /// Parses the files.
    pub(super) fn read(self) {
        let generation = self.next_generation();
        self.transfer.abort();
        spawn_local(async move {
            let read = self.read_all(generation).await;
            if !self.is_current(generation) {
                return;
            }
            self.progress.set(None);
            match read {
                Ok(preview) => {
                    self.columns.set(preview.candidates.clone());
                    self.stage.set(Stage::Ready(Box::new(preview)));
                }
                Err(End::Superseded) => {}
                Err(End::Failed(file, error)) => {
                    let columns = error_columns(&error);
                    self.stage.set(if columns.is_empty() {
                        Stage::Rejected(file, error)
                    } else {
                        self.columns.set(columns.clone());
                        Stage::Unclear(columns)
                    });
                }
            }
        });
    }

    async fn read_all(self, generation: u64) -> Result<DatasetPreview, End> {
        let files = self.files.try_get_value().ok_or(End::Superseded)?;
        let mut previews = Vec::with_capacity(files.len());
        for (index, file) in files.iter().enumerate() {
            let number = (index + 1, files.len());
            let read = self.read_file(file, number, generation).await;
            if !self.is_current(generation) {
                return Err(End::Superseded);
            }
            previews.push(read.map_err(|error| End::Failed(file.name(), error))?);
        }
        if let [_] = previews.as_slice() {
            return previews.pop().ok_or(End::Superseded);
        }
        let names: Vec<String> = files.iter().map(File::name).collect();
        let previews = previews.into_iter().map(|preview| preview.id).collect();
        let parts = StorePreviews { previews, name: Some(files_name(&names)) };
        let merged = client::send("POST", path::DATASET_PREVIEWS_MERGE, document(&parts)).await;
        merged.map_err(|merge_error| End::Failed(format!("{} files", files.len()), merge_error))
    }

    async fn read_file(
        self,
        file: &File,
        number: (usize, usize),
        generation: u64,
    ) -> Result<DatasetPreview, RequestError> {
        self.show(file, number, generation, Some((0.0, file.size())));
        let options = self.options.get_untracked();
        match self.send_file(file, number, generation, &options).await {
            // The server removes tokenizers after some time. Send the tokenizer again.
            Err(RequestError::Problem(problem)) if problem.status == 404 && options.tokenizer.is_some() => {
                let tokenizer = self.tokenizer.get_value().ok_or(RequestError::Problem(problem))?;
                client::send::<TokenizerSummary>("POST", path::TOKENIZERS, Body::File(tokenizer)).await?;
                self.send_file(file, number, generation, &options).await
            }
            read => read,
        }
    }

    async fn send_file(
        self,
        file: &File,
        number: (usize, usize),
        generation: u64,
        options: &ImportOptions,
    ) -> Result<DatasetPreview, RequestError> {
        let name = file.name();
        let on_progress = {
            let file = file.clone();
            move |total: f64| {
                let file = file.clone();
                move |sent: f64| self.show(&file, number, generation, (sent < total).then_some((sent, total)))
            }
        };
        if let Some(footer) = local::footer(file).await? {
            let length = [("length", (file.size() as u64).to_string())];
            let url = options.url(path::DATASET_FOOTERS, &name, &length, client::encode);
            let ranges: FileRanges = self.transfer.post(&url, BYTES, &footer.tail, |_| ()).await?;
            if !self.is_current(generation) {
                return Err(RequestError::Offline);
            }
            let body = local::parts(file, &footer, &ranges)?;
            let url = options.preview_url(&name, &length, client::encode);
            return self.transfer.post(&url, RANGES_MEDIA_TYPE, &body, on_progress(body.size())).await;
        }
        let url = options.preview_url(&name, &[], client::encode);
        if let Some(probe) = local::probe(file).await?
            && let Err(error) = self.transfer.post::<DatasetPreview>(&url, BYTES, &probe, |_| ()).await
            && !error_columns(&error).is_empty()
        {
            return Err(error);
        }
        if !self.is_current(generation) {
            return Err(RequestError::Offline);
        }
        self.transfer.post(&url, BYTES, file, on_progress(file.size())).await
    }

    /// Uploads a tokenizer and counts tokens with it.
    pub(super) fn use_tokenizer(self, file: File) {
        self.tokenizer_error.set(None);
        let generation = self.next_generation();
        self.transfer.abort();
        self.show(&file, (1, 1), generation, None);
        spawn_local(async move {
            let sent =
                self.transfer.post::<TokenizerSummary>(path::TOKENIZERS, "application/json", &file, |_| ()).await;
            if !self.is_current(generation) {
                return;
            }
            self.progress.set(None);
            match sent {
                Ok(summary) => {
                    let selected = SelectedTokenizer { file: file.name(), summary };
                    self.tokenizer.set_value(Some(file));
                    self.choose(|options| options.tokenizer = Some(selected));
                }
                Err(error) => self.tokenizer_error.set(Some(error)),
            }
        });
    }

    /// Stores the parsed dataset.
    pub(super) fn store(self, preview: &DatasetPreview, name: String, on_stored: Callback<Uploaded>) {
        let wanted = StorePreviews { previews: vec![preview.id.clone()], name: Some(name) };
        let generation = self.next_generation();
        let progress = Progress { file: preview.name.clone(), number: (1, 1), bytes: None };
        self.progress.set(Some(progress));
        spawn_local(async move {
            let stored = client::send::<Uploaded>("POST", path::DATASET_PREVIEWS, document(&wanted)).await;
            if !self.is_current(generation) {
                return;
            }
            self.progress.set(None);
            match stored {
                Ok(uploaded) => {
                    self.discard();
                    on_stored.run(uploaded);
                }
                Err(error) => {
                    let file = self.selected_files.with_untracked(|(names, _)| names.join(", "));
                    self.stage.set(Stage::Rejected(file, error));
                }
            }
        });
    }

    fn show(self, file: &File, number: (usize, usize), generation: u64, bytes: Option<(f64, f64)>) {
        if self.is_current(generation) {
            self.progress.set(Some(Progress { file: file.name(), number, bytes }));
        }
    }

    fn next_generation(self) -> u64 {
        let next = |generation: &mut u64| {
            *generation += 1;
            *generation
        };
        self.generation.try_update_value(next).unwrap_or(0)
    }

    fn is_current(self, generation: u64) -> bool {
        self.generation.try_get_value() == Some(generation)
    }
}

/// Names files: all of a few, otherwise their number, the first and the last.
pub(super) fn files_name(names: &[String]) -> String {
    match names {
        [first, .., last] if names.len() > 3 => format!("{} files, {first} to {last}", names.len()),
        names => names.join(", "),
    }
}

fn error_columns(error: &RequestError) -> Vec<ColumnCandidate> {
    match error {
        RequestError::Problem(problem) => problem.columns(),
        RequestError::Offline | RequestError::Unreadable(_) => Vec::new(),
    }
}

fn document(wanted: &StorePreviews) -> Body {
    Body::Json(serde_json::to_string(wanted).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_many_files_has_their_number() {
        let names: Vec<String> = (0..12).map(|shard| format!("shard{shard:02}.csv")).collect();
        assert_eq!(files_name(&names), "12 files, shard00.csv to shard11.csv");
        assert_eq!(files_name(&names[..2]), "shard00.csv, shard01.csv");
    }
}
