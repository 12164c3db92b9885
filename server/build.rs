//! Embeds the migrations: a new file there must rebuild the server.

fn main() {
    println!("cargo:rerun-if-changed=../migrations");
}
