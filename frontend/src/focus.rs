//! Keeps the keyboard focus near its place when the element that has it is removed or disabled.
//!
//! Browsers then move the focus to the body, and the next Tab starts at the top of the page. Here it moves to the nearest element
//! that follows in the document, otherwise to the nearest one before, otherwise to the content of the page.

use std::cell::RefCell;

use leptos::prelude::*;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, HtmlElement, MutationObserver, MutationObserverInit};

/// What takes the focus. Buttons that delete are left out: a second press of Enter must not delete the next thing.
const FOCUSABLE: &str = "#main :is(a[href], button, input, select, textarea, summary, [tabindex]):not(:disabled, [tabindex=\"-1\"], [aria-label^=\"Delete \"])";

/// Elements on each side that are remembered.
const MOST: usize = 60;

/// The element that has the focus, and where the focus may move.
#[derive(Default)]
struct Held {
    element: Option<HtmlElement>,
    neighbours: Vec<HtmlElement>,
}

thread_local! {
    static HELD: RefCell<Held> = RefCell::default();
}

/// Watches the focus for as long as the page is open.
pub(crate) fn watch() {
    let remember = Closure::<dyn FnMut()>::new(remember);
    // In the capturing phase, so that the neighbours are those before any handler changes the page.
    for event in ["focusin", "click"] {
        let listener = remember.as_ref().unchecked_ref();
        // Without the listener the focus is lost as browsers lose it.
        drop(document().add_event_listener_with_callback_and_bool(event, listener, true));
    }
    remember.forget();
    let callback = Closure::<dyn FnMut()>::new(restore);
    let init = MutationObserverInit::new();
    init.set_child_list(true);
    init.set_subtree(true);
    init.set_attributes(true);
    init.set_attribute_filter(&js_sys::Array::of1(&"disabled".into()));
    let is_observed = document().body().is_some_and(|body| {
        MutationObserver::new(callback.as_ref().unchecked_ref())
            .and_then(|observer| observer.observe_with_options(&body, &init))
            .is_ok()
    });
    if is_observed {
        // Lives as long as the page does.
        callback.forget();
    }
}

/// Whether the focus is on an element that matches or inside of one.
pub(crate) fn is_in(selector: &str) -> bool {
    document().active_element().is_some_and(|active| active.closest(selector).ok().flatten().is_some())
}

/// Moves the focus, once the page shows the last changes, to the first element that matches.
pub(crate) fn move_to(selector: String) {
    set_timeout(
        move || {
            let element = document().query_selector(&selector).ok().flatten();
            if let Some(element) = element.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
                // An element that refuses the focus leaves it where it is.
                drop(element.focus());
            }
        },
        std::time::Duration::ZERO,
    );
}

fn remember() {
    // Nothing is held after a click outside of the content: that focus was given up by intention.
    let held = held_now().unwrap_or_default();
    HELD.with(|known| {
        if let Ok(mut known) = known.try_borrow_mut() {
            *known = held;
        }
    });
}

/// The focused element of the content and the elements around it.
fn held_now() -> Option<Held> {
    let element = document().active_element()?.dyn_into::<HtmlElement>().ok()?;
    let main = element.closest("#main").ok().flatten()?;
    let list = document().query_selector_all(FOCUSABLE).ok()?;
    let all: Vec<HtmlElement> = (0..list.length()).filter_map(|at| list.get(at)?.dyn_into().ok()).collect();
    let is_after = |other: &HtmlElement| {
        element.compare_document_position(other) & web_sys::Node::DOCUMENT_POSITION_FOLLOWING != 0
    };
    let (after, before): (Vec<HtmlElement>, Vec<HtmlElement>) =
        all.into_iter().filter(|other| *other != element).partition(is_after);
    let neighbours = after.into_iter().take(MOST).chain(before.into_iter().rev().take(MOST));
    let neighbours = neighbours.chain(main.dyn_into::<HtmlElement>().ok()).collect();
    Some(Held { element: Some(element), neighbours })
}

/// Moves the focus on where its element is gone or disabled.
fn restore() {
    let is_lost = HELD.with(|held| {
        held.try_borrow().is_ok_and(|held| {
            let Some(element) = &held.element else { return false };
            let active = document().active_element();
            let is_elsewhere = active.is_some_and(|active| active.tag_name() != "BODY" && active != **element);
            !is_elsewhere && !takes_focus(element)
        })
    });
    if !is_lost {
        return;
    }
    let neighbours = HELD.with(|held| held.try_borrow_mut().map(|mut held| std::mem::take(&mut *held).neighbours));
    for next in neighbours.unwrap_or_default() {
        if takes_focus(&next) && next.focus().is_ok() && document().active_element().as_ref() == Some(&*next) {
            return;
        }
    }
}

fn takes_focus(element: &Element) -> bool {
    element.is_connected() && !element.matches(":disabled").unwrap_or(false)
}
