//! Embedded pages, for a program that is a single file.

use std::future::{Ready, ready};
use std::io::{self, Cursor, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use include_dir::{Dir, DirEntry, include_dir};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tower_http::services::fs::{Backend, File, Metadata};

/// Output of `cargo xtask build`, including compressed variants.
static PAGES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../target/web");

/// The pages as a read-only file system, so the same code serves embedded pages and folders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages;

impl Pages {
    /// Returns the content of a file.
    pub(super) fn read(self, name: &str) -> Option<&'static [u8]> {
        PAGES.get_file(name).map(include_dir::File::contents)
    }
}

/// Metadata of a file or folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    is_dir: bool,
    bytes: u64,
    modified: SystemTime,
}

/// An open file.
#[derive(Debug)]
pub(super) struct Open {
    facts: Facts,
    content: Cursor<&'static [u8]>,
}

fn find(path: &Path) -> io::Result<Facts> {
    // Paths that lead outside the folder are refused earlier.
    let below: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    if below.as_os_str().is_empty() {
        return Ok(Facts { is_dir: true, bytes: 0, modified: SystemTime::UNIX_EPOCH });
    }
    match PAGES.get_entry(&below) {
        Some(DirEntry::Dir(_)) => Ok(Facts { is_dir: true, bytes: 0, modified: SystemTime::UNIX_EPOCH }),
        Some(DirEntry::File(file)) => Ok(Facts {
            is_dir: false,
            bytes: file.contents().len() as u64,
            // The build time distinguishes files with the same length from different builds.
            modified: file.metadata().map_or(SystemTime::UNIX_EPOCH, |facts| facts.modified()),
        }),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

impl Backend for Pages {
    type File = Open;
    type Metadata = Facts;
    type OpenFuture = Ready<io::Result<Open>>;
    type MetadataFuture = Ready<io::Result<Facts>>;

    fn open(&self, path: PathBuf) -> Self::OpenFuture {
        ready(find(&path).and_then(|facts| {
            let below: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
            let file = PAGES.get_file(below).ok_or(io::ErrorKind::IsADirectory)?;
            Ok(Open { facts, content: Cursor::new(file.contents()) })
        }))
    }

    fn metadata(&self, path: PathBuf) -> Self::MetadataFuture {
        ready(find(&path))
    }
}

impl Metadata for Facts {
    fn is_dir(&self) -> bool {
        self.is_dir
    }

    fn modified(&self) -> io::Result<SystemTime> {
        Ok(self.modified)
    }

    fn len(&self) -> u64 {
        self.bytes
    }
}

impl File for Open {
    type Metadata = Facts;
    type MetadataFuture<'a> = Ready<io::Result<Facts>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.facts))
    }
}

impl AsyncRead for Open {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.content).poll_read(context, buffer)
    }
}

impl AsyncSeek for Open {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        Pin::new(&mut self.content).start_seek(position)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Pin::new(&mut self.content).poll_complete(context)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use axum::body::Body;
    use axum::http::Request;
    use axum::response::Response;

    use crate::web::Web;

    /// Returns headers by name, and the body.
    async fn parts(response: Response) -> (BTreeMap<String, String>, Vec<u8>) {
        let headers = response.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        (headers, axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec())
    }

    #[tokio::test]
    async fn embedded_pages_match_the_folder() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/web");
        let (inside, outside) = (Web::embedded(), Web::new(&folder));
        assert_eq!(parts(inside.page().await).await, parts(outside.page().await).await);
        let mut files = vec!["/favicon.svg".to_owned(), "/nothing".to_owned(), "/assets/nothing.js".to_owned()];
        for file in std::fs::read_dir(folder.join("assets")).unwrap() {
            files.push(format!("/assets/{}", file.unwrap().file_name().into_string().unwrap()));
        }
        assert!(files.iter().any(|file| file.ends_with(".wasm")), "{files:?}");
        for file in &files {
            for encoding in ["identity", "gzip", "br, gzip"] {
                let request = || Request::get(file).header("accept-encoding", encoding).body(Body::empty()).unwrap();
                let (mut mine, content) = parts(inside.file(request()).await).await;
                let (mut theirs, expected) = parts(outside.file(request()).await).await;
                // Both headers depend on the modification time, which has a higher resolution in a
                // file system.
                let tag = mine.remove("etag");
                assert_eq!((mine.remove("last-modified").is_some(), tag.is_some()), {
                    (theirs.remove("last-modified").is_some(), theirs.remove("etag").is_some())
                });
                assert_eq!(mine, theirs, "{file}, {encoding}");
                assert!(content == expected, "{file}, {encoding}");
                if let Some(tag) = tag {
                    let again = Request::get(file).header("accept-encoding", encoding).header("if-none-match", tag);
                    let (_, body) = parts(inside.file(again.body(Body::empty()).unwrap()).await).await;
                    assert!(body.is_empty(), "{file} is sent although it is known");
                }
            }
        }
    }
}
