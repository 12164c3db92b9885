//! Hashed file names and all references to them.
//!
//! The name of a file in /assets contains its content hash, so browsers cache it permanently and a
//! new build has new names. References are rewritten from the leaves upwards, because the hash of a
//! file covers the names that it contains.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::parts::PageFiles;
use super::{StaticFile, content_hash};

/// References required in index.html. Without them the page is empty.
const NEEDED: [&str; 3] = ["app.css", "start.js", "plotly.js"];

/// Files of the built site.
#[derive(Debug)]
pub(super) struct Site {
    page: String,
    start: String,
    /// Logical name ("app.css") to hashed name ("app.0123456789abcdef.css").
    names: BTreeMap<String, String>,
    /// Path in the site folder to content.
    files: BTreeMap<String, Vec<u8>>,
}

impl Site {
    /// Sorts static/ into the page, the start script, a stylesheet from css/*.css in name order,
    /// and files to copy. Copied files also get a hashed name for references to /assets/.
    pub(super) fn new(static_files: Vec<StaticFile>) -> Result<Self> {
        let mut site =
            Self { page: String::new(), start: String::new(), names: BTreeMap::new(), files: BTreeMap::new() };
        let mut style = String::new();
        for StaticFile { path, content } in static_files {
            match path.as_str() {
                "index.html" => site.page = text(&path, content)?,
                "start.js" => site.start = text(&path, content)?,
                _ if Path::new(&path).parent() == Some(Path::new("css")) => {
                    style.push_str(text(&path, content)?.trim_end());
                    style.push('\n');
                }
                _ => {
                    site.add(&path, content.clone());
                    site.files.insert(path, content);
                }
            }
        }
        for (name, content) in [("index.html", &site.page), ("start.js", &site.start), ("css/*.css", &style)] {
            if content.is_empty() {
                bail!("static/{name} is missing or empty");
            }
        }
        let style = site.rewritten(&style);
        site.add("app.css", style.into_bytes());
        Ok(site)
    }

    /// Adds the chart library. Pages load it with the first chart.
    pub(super) fn add_plotly(&mut self, content: Vec<u8>) {
        self.add("plotly.js", content);
    }

    /// Adds the wasm modules, their loader, and the start script that loads the initial module.
    pub(super) fn add_program(&mut self, generated: &Path, page_files: &PageFiles) -> Result<()> {
        let mut parts = BTreeMap::new();
        let mut snippets = Vec::new();
        for file in super::files_under(generated)? {
            // Inline JavaScript from dependencies. The folder name from wasm-bindgen already
            // contains a hash.
            if file.path.starts_with("snippets/") {
                snippets.push(file);
            } else {
                parts.insert(file.path, file.content);
            }
        }
        for StaticFile { path, content } in snippets {
            self.files.insert(format!("assets/{path}"), content);
        }
        let mut script = |name: &str| {
            let content = parts.remove(name).with_context(|| format!("there is no {name}"))?;
            text(name, content)
        };
        let (module, split) = (script("planscope.js")?, script("split.js")?);
        if !module.contains("planscope_bg.wasm") {
            bail!("planscope.js does not name its wasm module");
        }
        for (name, content) in parts {
            self.add(&name, content);
        }
        let page_files = self.page_files(page_files)?;
        self.add("page_files.js", page_files.into_bytes());
        // wasm-bindgen writes this name without "./".
        let module = module.replace("planscope_bg.wasm", self.hashed("planscope_bg.wasm")?);
        let split = self.rewritten(&split);
        // These two files refer to each other, so their hash covers both contents.
        let hash = content_hash(format!("{module}{split}").as_bytes());
        for name in ["planscope", "split"] {
            self.names.insert(format!("{name}.js"), format!("{name}.{hash}.js"));
        }
        // The wasm module imports the script by its plain name, so this name stays unchanged.
        let module = module.replace("from \"./split.js\"", &format!("from \"./split.{hash}.js\""));
        let split = self.rewritten(&split);
        for (name, content) in [("planscope", module), ("split", split)] {
            self.files.insert(format!("assets/{name}.{hash}.js"), content.into_bytes());
        }
        let start = self.rewritten(&self.start);
        self.add("start.js", start.into_bytes());
        Ok(())
    }

    /// Generates a script with the files of each page, for prefetching.
    fn page_files(&self, page_files: &PageFiles) -> Result<String> {
        let mut lines = String::from("export const pageFiles = {\n");
        for (page, parts) in page_files {
            let parts = parts.iter().map(|part| Ok(format!("\"./{}\"", self.hashed(&format!("{part}.wasm"))?)));
            writeln!(lines, "  {page}: [{}],", parts.collect::<Result<Vec<_>>>()?.join(", "))?;
        }
        lines.push_str("};\n");
        Ok(lines)
    }

    fn hashed(&self, name: &str) -> Result<&str> {
        self.names.get(name).map(String::as_str).with_context(|| format!("there is no {name}"))
    }

    /// Writes all files to `folder`.
    pub(super) fn write(mut self, folder: &Path) -> Result<()> {
        for name in NEEDED {
            if !self.page.contains(&format!("/assets/{name}")) {
                bail!("static/index.html does not refer to /assets/{name}");
            }
        }
        let page = self.rewritten(&self.page);
        self.files.insert("index.html".to_owned(), page.into_bytes());
        for (path, content) in self.files {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
            }
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }

    /// Adds a file to /assets and returns its hashed name.
    fn add(&mut self, name: &str, content: Vec<u8>) -> String {
        let hash = content_hash(&content);
        let name = name.strip_prefix("assets/").unwrap_or(name);
        let hashed = match name.rsplit_once('.') {
            Some((stem, kind)) if !kind.contains('/') => format!("{stem}.{hash}.{kind}"),
            _ => format!("{name}.{hash}"),
        };
        self.files.insert(format!("assets/{hashed}"), content);
        self.names.insert(name.to_owned(), hashed.clone());
        hashed
    }

    /// Replaces all references to known assets by hashed names.
    fn rewritten(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, hashed)| {
            text.replace(&format!("/assets/{name}"), &format!("/assets/{hashed}"))
                .replace(&format!("\"./{name}\""), &format!("\"./{hashed}\""))
                .replace(&format!("'./{name}'"), &format!("'./{hashed}'"))
        })
    }
}

fn text(name: &str, content: Vec<u8>) -> Result<String> {
    String::from_utf8(content).with_context(|| format!("{name} is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, content: &str) -> StaticFile {
        StaticFile { path: path.to_owned(), content: content.as_bytes().to_vec() }
    }

    fn page() -> StaticFile {
        file("index.html", r#"<a href="/assets/app.css"><a src="/assets/start.js"><meta content="/assets/plotly.js">"#)
    }

    fn built(style: &str) -> BTreeMap<String, Vec<u8>> {
        let mut site = Site::new(vec![
            file("css/10-a.css", style),
            file("css/20-b.css", "b{background:url(/assets/icon.svg)}"),
            file("icon.svg", "<svg/>"),
            page(),
            file(
                "start.js",
                r#"import init from "./planscope.js"; import { pageFiles } from "./page_files.js"; init();"#,
            ),
        ])
        .expect("a whole site");
        site.add_plotly(b"plotly".to_vec());
        let generated = tempfile::tempdir().expect("a folder");
        let files = [
            (
                "planscope.js",
                r#"import * as split from "./split.js"; ({"./split.js": split}); new URL('planscope_bg.wasm', import.meta.url)"#,
            ),
            ("split.js", r#"import { initSync } from "./planscope.js"; import { pageFiles } from "./page_files.js";"#),
            ("planscope_bg.wasm", "wasm"),
            ("page_runs.wasm", "runs"),
        ];
        for (name, content) in files {
            fs::write(generated.path().join(name), content).expect("written");
        }
        let page_files = PageFiles::from([("runs".to_owned(), vec!["page_runs".to_owned()])]);
        site.add_program(generated.path(), &page_files).expect("a program");
        let folder = tempfile::tempdir().expect("a folder");
        site.write(folder.path()).expect("written");
        super::super::files_under(folder.path())
            .expect("listed")
            .into_iter()
            .map(|file| (file.path, file.content))
            .collect()
    }

    fn file_name<'a>(files: &'a BTreeMap<String, Vec<u8>>, start: &str, end: &str) -> &'a str {
        let found = files.keys().find(|path| path.starts_with(start) && path.ends_with(end));
        found.unwrap_or_else(|| panic!("no {start}*{end} among {:?}", files.keys()))
    }

    fn content(files: &BTreeMap<String, Vec<u8>>, path: &str) -> String {
        String::from_utf8(files[path].clone()).expect("text")
    }

    #[test]
    fn every_reference_leads_to_a_file() {
        let files = built("a{}");
        let index = content(&files, "index.html");
        for (start, end) in [("assets/app.", ".css"), ("assets/start.", ".js"), ("assets/plotly.", ".js")] {
            assert!(index.contains(&format!("/{}", file_name(&files, start, end))), "{index}");
        }
        let style = content(&files, file_name(&files, "assets/app.", ".css"));
        assert!(style.contains(&format!("url(/{})", file_name(&files, "assets/icon.", ".svg"))), "{style}");
        let start = content(&files, file_name(&files, "assets/start.", ".js"));
        let module = file_name(&files, "assets/planscope.", ".js");
        assert!(start.contains(&module.replace("assets/", "./")), "{start}");
        let wasm = file_name(&files, "assets/planscope_bg.", ".wasm");
        assert!(content(&files, module).contains(&wasm.replace("assets/", "")), "{module}");
        let split = file_name(&files, "assets/split.", ".js");
        assert!(content(&files, module).contains(&split.replace("assets/", "./")), "{split}");
        assert!(content(&files, split).contains(&module.replace("assets/", "./")), "{module}");
        // The import name in the wasm module stays unchanged.
        assert!(content(&files, module).contains(r#"{"./split.js": split}"#));
        let runs = file_name(&files, "assets/page_runs.", ".wasm").replace("assets/", "./");
        let page_files = file_name(&files, "assets/page_files.", ".js");
        assert!(content(&files, page_files).contains(&runs), "{runs}");
        for script in [content(&files, split), start] {
            assert!(script.contains(&page_files.replace("assets/", "./")), "{script}");
        }
        // Pages may also refer to these files without /assets/.
        assert!(files.contains_key("icon.svg"));
    }

    #[test]
    fn style_sheets_are_joined_in_name_order() {
        let files = built("a{}");
        assert!(content(&files, file_name(&files, "assets/app.", ".css")).starts_with("a{}\nb{"));
    }

    #[test]
    fn another_content_is_another_name() {
        let (first, two) = (built("a{}"), built("a{color:red}"));
        assert_ne!(file_name(&first, "assets/app.", ".css"), file_name(&two, "assets/app.", ".css"));
        assert_eq!(file_name(&first, "assets/start.", ".js"), file_name(&two, "assets/start.", ".js"));
    }

    #[test]
    fn page_without_its_style_is_rejected() {
        let bare = file("index.html", "<html>");
        let mut site = Site::new(vec![file("css/a.css", "a{}"), bare, file("start.js", "x")]).expect("sorted");
        site.add_plotly(Vec::new());
        let folder = tempfile::tempdir().expect("a folder");
        let error = site.write(folder.path()).expect_err("refused").to_string();
        assert!(error.contains("app.css"), "{error}");
    }
}
