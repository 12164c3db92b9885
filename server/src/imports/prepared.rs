//! A parsed dataset that is not stored yet.

use api::dataset::{ColumnCandidate, DatasetPreview, ImportReport, MediaReport, ShapedColumns, ShapedReport};
use ingest::dataset::{Candidate, ImportError, Imported};
use planner::outcome::HistogramColumns;
use planner::workload::Dataset;

use crate::dataset_id;
use crate::store::NewDataset;

/// A parsed dataset with the statistics for the web pages.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) name: String,
    /// Dataset and report from the parser.
    pub(crate) imported: Imported,
    files: Vec<String>,
    samples: u64,
    text_tokens: HistogramColumns,
    images: Option<HistogramColumns>,
    shaped: Option<ShapedColumns>,
}

impl Prepared {
    /// Computes the statistics. Takes about a second for large datasets.
    pub(crate) fn new(name: String, files: Vec<String>, imported: Imported) -> Result<Self, ImportError> {
        let (samples, text_tokens, images) = match &imported.dataset {
            Dataset::Rows { text_tokens, images, .. } => (
                text_tokens.len() as u64,
                HistogramColumns::from_values(text_tokens),
                HistogramColumns::from_values(images),
            ),
            Dataset::Histogram { edges, counts } => {
                (counts.iter().sum::<f64>().round() as u64, HistogramColumns::from_bins(edges, counts), None)
            }
        };
        // A histogram with less than one sample in total counts as one sample.
        let samples = samples.max(1);
        let text_tokens = text_tokens.ok_or(ImportError::Empty)?;
        let shaped = shaped_columns(&imported.dataset);
        Ok(Self { name, imported, files, samples, text_tokens, images, shaped })
    }

    /// Returns a renamed copy.
    pub(crate) fn renamed(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }

    /// Names of the parsed files.
    pub(crate) fn files(&self) -> &[String] {
        &self.files
    }

    /// Approximate memory size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        const WORD: usize = size_of::<f64>();
        match &self.imported.dataset {
            Dataset::Rows { text_tokens, images, shaped } => {
                let shaped = shaped.as_ref().map_or(0, |_| 4 * WORD * text_tokens.len());
                size_of::<u32>() * (text_tokens.len() + images.len()) + shaped
            }
            Dataset::Histogram { edges, counts } => WORD * (edges.len() + counts.len()),
        }
    }

    /// Returns the import report.
    pub(crate) fn report(&self) -> ImportReport {
        let report = &self.imported.report;
        let media = report.media.as_ref().map(|media| MediaReport {
            columns: media.columns.clone(),
            advice: media.advice.clone(),
            shaped: self
                .shaped
                .as_ref()
                .zip(self.images.as_ref())
                .map(|(shaped, items)| self.shaped(media, shaped, items)),
        });
        ImportReport {
            files: self.files.clone(),
            format: report.format.clone(),
            source: report.source.clone(),
            alternatives: report.candidates.iter().map(|candidate| candidate.name.clone()).collect(),
            parsed: report.parsed,
            repaired: report.repaired,
            skipped: report.skipped,
            first_problem: report.first_problem.clone(),
            media,
            warnings: report.warnings.clone(),
        }
    }

    fn shaped(
        &self,
        media: &ingest::dataset::MediaReport,
        shaped: &ShapedColumns,
        items: &HistogramColumns,
    ) -> ShapedReport {
        let unread = [
            (media.unread_images, "image", "images"),
            (media.unread_frames, "frame of video", "frames of video"),
            (media.unread_clips, "clip of sound", "clips of sound"),
        ];
        ShapedReport {
            preprocessing: shaped.preprocessing,
            with_items: self.samples.saturating_sub(media.without_items),
            without_items: media.without_items,
            mean_batch: items.mean,
            largest_batch: items.max,
            mean_backbone_tokens: shaped.backbone_tokens.mean,
            largest_backbone_tokens: shaped.backbone_tokens.max,
            unread: unread
                .into_iter()
                .filter(|(count, ..)| *count > 0)
                .map(|(count, singular, many)| format!("{count} {}", if count == 1 { singular } else { many }))
                .collect(),
        }
    }

    /// Returns the preview for the web page.
    pub(crate) fn preview(&self, id: String, expires_at: String) -> DatasetPreview {
        DatasetPreview {
            id,
            name: self.name.clone(),
            samples: self.samples,
            text_tokens: self.text_tokens.clone(),
            images: self.images.clone(),
            shaped: self.shaped.clone(),
            report: self.report(),
            candidates: self.imported.report.candidates.iter().map(candidate_column).collect(),
            expires_at,
        }
    }

    /// Returns the stored form. Takes about a second for large datasets.
    pub(crate) fn to_stored(&self) -> NewDataset {
        let content = dataset_id::canonical(&self.imported.dataset);
        NewDataset {
            id: dataset_id::from_content(&content),
            name: self.name.clone(),
            samples: self.samples,
            text_tokens: self.text_tokens.clone(),
            images: self.images.clone(),
            shaped: self.shaped.clone(),
            report: self.report(),
            content,
        }
    }
}

/// Returns the backbone's sequence lengths s(d), if a rule converted media.
fn shaped_columns(dataset: &Dataset) -> Option<ShapedColumns> {
    let Dataset::Rows { text_tokens, shaped: Some(shaped), .. } = dataset else { return None };
    let lengths: Vec<u32> =
        text_tokens.iter().zip(&shaped.backbone_tokens).map(|(text, items)| text.saturating_add(*items)).collect();
    Some(ShapedColumns {
        preprocessing: shaped.preprocessing,
        backbone_tokens: HistogramColumns::from_values(&lengths)?,
    })
}

/// Converts a candidate column to the API type.
pub(crate) fn candidate_column(candidate: &Candidate) -> ColumnCandidate {
    ColumnCandidate {
        name: candidate.name.clone(),
        kind: candidate.kind.title().to_owned(),
        meaning: candidate.meaning.title().to_owned(),
        samples: candidate.samples.clone(),
        preview: candidate.preview.clone(),
        note: candidate.note.clone(),
    }
}
