//! Links that contain a scenario: as text, and as correctly packed bytes and JSON.

use api::contained::{self, FIRST_FORM};
use data_encoding::BASE64URL_NOPAD;
use miniz_oxide::deflate::compress_to_vec;

/// Runs the target on an input.
pub fn read(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(contained::read(text));
        drop(contained::read(&format!("{FIRST_FORM}{text}")));
    }
    drop(contained::read(&format!("{FIRST_FORM}{}", BASE64URL_NOPAD.encode(bytes))));
    let packed = compress_to_vec(bytes, 1);
    if let Ok(scenario) = contained::read(&format!("{FIRST_FORM}{}", BASE64URL_NOPAD.encode(&packed))) {
        // A valid link is written and read again.
        if let Ok(link) = contained::write(&scenario.to_string()) {
            assert_eq!(contained::read(&link), Ok(scenario));
        }
    }
}
