//! Merges the modules from the splitter into a small number of files, and generates their loader.
//!
//! The splitter creates a module for every set of pages that share code. The modules import only
//! the memory, the stack pointer and the function table, which they use for calls between modules.
//! Therefore several modules can be merged.

mod merge;
mod packing;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use packing::{Bundle, packed};

/// Module names by page, without file extension.
pub(super) type PageFiles = BTreeMap<String, Vec<String>>;

/// Loader script without its last lines, which contain an entry per page.
const LOADER: &str = include_str!("parts/loader.js");

/// Replaces the modules in a folder by merged modules, and the generated loader by this loader.
pub(super) fn gather(folder: &Path, cut: &PageFiles) -> Result<PageFiles> {
    let numbers: BTreeMap<&str, u32> = cut.keys().map(String::as_str).zip(0..).collect();
    let mut needed: BTreeMap<&str, u32> = BTreeMap::new();
    for (page, modules) in cut {
        for module in modules {
            *needed.entry(module).or_default() |= 1 << numbers[page.as_str()];
        }
    }
    let mut bundles = Vec::new();
    let mut contents = BTreeMap::new();
    for (module, pages) in needed {
        let path = folder.join(format!("{module}.wasm"));
        let content = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        bundles.push(Bundle { pages, bytes: content.len() as u64, modules: vec![module.to_owned()] });
        contents.insert(module, content);
    }
    let mut page_files: PageFiles = cut.keys().map(|page| (page.clone(), Vec::new())).collect();
    let mut shared = 0;
    for bundle in packed(bundles) {
        let within: Vec<&str> =
            numbers.iter().filter(|(_, number)| bundle.pages >> **number & 1 == 1).map(|(page, _)| *page).collect();
        let name = if let [single] = within.as_slice() {
            format!("page_{single}")
        } else {
            shared += 1;
            format!("shared_{shared}")
        };
        for page in within {
            page_files.entry(page.to_owned()).or_default().push(name.clone());
        }
        let modules: Vec<&[u8]> = bundle.modules.iter().map(|module| contents[module.as_str()].as_slice()).collect();
        let merged = merge::merged(&modules).with_context(|| format!("merging {name}"))?;
        fs::write(folder.join(format!("{name}.wasm")), merged).with_context(|| format!("cannot write {name}.wasm"))?;
    }
    let names: BTreeSet<&String> = cut.keys().collect();
    let mut loader = LOADER.to_owned();
    for page in names {
        writeln!(loader, "export const __wasm_split_load_{page} = loadPage(\"{page}\");")?;
    }
    fs::write(folder.join("split.js"), loader).context("cannot write split.js")?;
    Ok(page_files)
}
