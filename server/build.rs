//! Embeds the migrations, and the pages where they are asked for: a new file there must rebuild the server.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
    if std::env::var_os("CARGO_FEATURE_EMBEDDED_WEB").is_some() {
        println!("cargo:rerun-if-changed=../target/web");
    }
}
