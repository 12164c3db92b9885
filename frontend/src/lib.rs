//! Browser dashboard for the API.
//!
//! The pages contain no domain arithmetic and display the API responses. Code that does not need a
//! browser (number formats, view state in the fragment, undo, JSON pointers) is in modules with
//! native unit tests. Native builds only type-check the pages; code generation for pages happens
//! only for WASM.

#![allow(
    clippy::needless_pass_by_value,
    clippy::large_types_passed_by_value,
    reason = "components own their properties, and states of pages are small handles whose debug form is large"
)]
#![allow(unreachable_pub, reason = "the component macro declares what it generates as pub, whatever the function says")]
#![cfg_attr(
    not(target_arch = "wasm32"),
    allow(
        dead_code,
        unused_imports,
        reason = "pages are reached from `start`, which browsers call; for them the lints are denied"
    )
)]

mod accuracy_link;
mod app;
mod catalogue;
mod charts;
mod check;
mod client;
mod clipboard;
mod copy_link;
mod deletion;
mod download;
mod drop;
mod editor;
mod explore;
mod export_menu;
mod field_errors;
mod file_uploads;
mod focus;
mod form;
mod format;
mod fragment;
mod gantt;
mod header;
mod help;
mod job_checks;
mod lazy_pages;
mod links;
mod listing;
mod mixture;
mod notice;
mod outcome_fetch;
mod pages;
mod phase_table;
mod picked_files;
mod plan_reasons;
mod pointer;
mod profiles;
mod published;
mod recent;
mod resource_page;
mod results;
mod runs;
mod schedules;
mod storage;
mod sweeps;
mod theme;
mod traces;
mod undo;
mod upload;

/// Mounts the dashboard. Called once by `start.js`.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
    focus::observe();
    leptos::mount::mount_to_body(app::App);
}
