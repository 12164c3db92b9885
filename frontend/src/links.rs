//! Clicks on links that a page answers itself.

/// Whether a click opens the link here: not in another tab or window, and not something that was answered already.
pub(crate) fn is_plain(event: &web_sys::MouseEvent) -> bool {
    let changed = event.ctrl_key() || event.meta_key() || event.shift_key() || event.alt_key();
    event.button() == 0 && !changed && !event.default_prevented()
}
