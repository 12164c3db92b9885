//! Click handling for links that a page handles itself.

/// Returns true if a click opens the link in the current tab and no other handler has processed it.
pub(crate) fn is_plain(event: &web_sys::MouseEvent) -> bool {
    let changed = event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key();
    event.button() == 0 && !changed && !event.default_prevented()
}
