//! Moves the keyboard focus to a nearby element when the focused element is removed or disabled.
//!
//! By default, browsers move the focus to the body, and the next Tab starts at the top of the page.
//! This module moves the focus to the next focusable element in document order, or else to the
//! previous one, or else to the main content.

use std::cell::RefCell;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, HtmlElement, MutationObserver, MutationObserverInit};

/// Focusable elements. Delete buttons are excluded, because a second Enter would delete the next
/// item.
const FOCUSABLE: &str = "#main :is(a[href], button, input, select, textarea, summary, [tabindex]):not(:disabled, [tabindex=\"-1\"], [aria-label^=\"Delete \"])";

/// Maximum stored elements per direction.
const MAX_NEIGHBOURS: usize = 60;

/// Focused element and candidate elements for the next focus.
#[derive(Default)]
struct FocusState {
    element: Option<HtmlElement>,
    neighbours: Vec<HtmlElement>,
}

thread_local! {
    static FOCUS: RefCell<FocusState> = RefCell::default();
}

/// Observes the focus for the lifetime of the page.
pub(crate) fn observe() {
    let remember = Closure::<dyn FnMut()>::new(remember);
    // The capturing phase records the neighbours before any handler changes the page.
    for event in ["focusin", "click"] {
        let listener = remember.as_ref().unchecked_ref();
        // If the listener cannot be added, the browser default applies.
        drop(document().add_event_listener_with_callback_and_bool(event, listener, true));
    }
    remember.forget();
    let callback = Closure::<dyn FnMut()>::new(restore);
    let init = MutationObserverInit::new();
    init.set_child_list(true);
    init.set_subtree(true);
    init.set_attributes(true);
    init.set_attribute_filter(&js_sys::Array::of1(&"disabled".into()));
    let is_registered = document().body().is_some_and(|body| {
        MutationObserver::new(callback.as_ref().unchecked_ref())
            .and_then(|observer| observer.observe_with_options(&body, &init))
            .is_ok()
    });
    if is_registered {
        // The closure lives as long as the page.
        callback.forget();
    }
}

/// Returns true if the focused element matches the selector or is inside a matching element.
pub(crate) fn is_in(selector: &str) -> bool {
    document().active_element().is_some_and(|active| active.closest(selector).ok().flatten().is_some())
}

/// True if no element has the focus.
pub(crate) fn is_lost() -> bool {
    let active = document().active_element();
    active.is_none_or(|element| element.tag_name().eq_ignore_ascii_case("body"))
}

/// Moves the focus to the first matching element after pending DOM updates.
pub(crate) fn move_to(selector: String) {
    set_timeout(
        move || {
            let element = document().query_selector(&selector).ok().flatten();
            if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
                // If the element rejects the focus, the focus does not move.
                drop(element.focus());
            }
        },
        std::time::Duration::ZERO,
    );
}

fn remember() {
    // A click outside the content clears the stored element, because the user removed the focus on
    // purpose.
    let current = current_focus().unwrap_or_default();
    FOCUS.with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            *known = current;
        }
    });
}

/// Focused element in the content, and the focusable elements around it.
fn current_focus() -> Option<FocusState> {
    let element = document().active_element()?.dyn_into::<HtmlElement>().ok()?;
    let main = element.closest("#main").ok().flatten()?;
    let list = document().query_selector_all(FOCUSABLE).ok()?;
    let all: Vec<HtmlElement> = (0..list.length()).filter_map(|at| list.get(at)?.dyn_into().ok()).collect();
    let is_after = |other: &HtmlElement| {
        element.compare_document_position(other) & web_sys::Node::DOCUMENT_POSITION_FOLLOWING != 0
    };
    let (after, before): (Vec<HtmlElement>, Vec<HtmlElement>) =
        all.into_iter().filter(|other| *other != element).partition(is_after);
    let neighbours = after.into_iter().take(MAX_NEIGHBOURS).chain(before.into_iter().rev().take(MAX_NEIGHBOURS));
    let neighbours = neighbours.chain(main.dyn_into::<HtmlElement>().ok()).collect();
    Some(FocusState { element: Some(element), neighbours })
}

/// Moves the focus if the focused element is removed or disabled.
fn restore() {
    let is_lost = FOCUS.with(|cell| {
        cell.try_borrow().is_ok_and(|state| {
            let Some(element) = &state.element else { return false };
            let active = document().active_element();
            let is_elsewhere = active.is_some_and(|active| active.tag_name() != "BODY" && active != **element);
            !is_elsewhere && !takes_focus(element)
        })
    });
    if !is_lost {
        return;
    }
    let neighbours = FOCUS.with(|focus_cell| {
        focus_cell.try_borrow_mut().map(|mut last_state| std::mem::take(&mut *last_state).neighbours)
    });
    for next in neighbours.unwrap_or_default() {
        if takes_focus(&next) && next.focus().is_ok() && document().active_element().as_ref() == Some(&*next) {
            return;
        }
    }
}

fn takes_focus(element: &Element) -> bool {
    element.is_connected() && !element.matches(":disabled").unwrap_or(false)
}
