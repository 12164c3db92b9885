//! Rebuilds the server when a migration is added, or a page if pages are embedded.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
    if std::env::var_os("CARGO_FEATURE_EMBEDDED_WEB").is_some() {
        println!("cargo:rerun-if-changed=../target/web");
    }
}
