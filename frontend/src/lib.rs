//! The dashboard: pages in the browser over the API.
//!
//! The pages do no domain arithmetic: they draw what the API says. Everything that can be decided without a browser
//! (number formats, the view in the fragment, undo, places in the scenario) stands in files that are tested natively. The pages
//! themselves are checked natively but made into code for browsers only: nothing native mounts them.

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
mod answered;
mod app;
mod catalogue;
mod charts;
mod client;
mod clipboard;
mod copy_link;
mod deletion;
mod drop;
mod editor;
mod explore;
mod export_menu;
mod field_errors;
mod focus;
mod form;
mod format;
mod fragment;
mod gantt;
mod header;
mod help;
mod links;
mod mixture;
mod notice;
mod opened;
mod pages;
mod pointer;
mod profiles;
mod published;
mod recent;
mod results;
mod rooms;
mod runs;
mod saving;
mod schedules;
mod sending;
mod shelf;
mod storage;
mod sweeps;
mod theme;
mod traces;
mod undo;
mod upload;
mod why;

/// Mounts the dashboard; called once by `start.js`.
#[cfg(target_arch = "wasm32")]
#[wasm_bindgen::prelude::wasm_bindgen(start)]
pub fn start() {
    console_error_panic_hook::set_once();
    focus::watch();
    leptos::mount::mount_to_body(app::App);
}
