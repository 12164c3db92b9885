//! Which runs are listed: words, state, tag, order.

use api::run::RunState;
use leptos::prelude::*;

use super::question::{Order, Question};

/// The fields above the list.
#[component]
pub(super) fn Filters(
    question: RwSignal<Question>,
    order: RwSignal<Order>,
    #[prop(into)] tags: Signal<Vec<String>>,
) -> impl IntoView {
    let set_state = move |event| {
        let state = RunState::from_id(&event_target_value(&event));
        question.update(|question| question.state = state);
    };
    let states = RunState::ALL.map(|state| {
        view! { <option value=state.id() prop:selected=move || question.with(|question| question.state == Some(state))>{state.id()}</option> }
    });
    let orders = Order::ALL.map(|known| {
        view! { <option value=known.id() prop:selected=move || order.get() == known>{known.title()}</option> }
    });
    let tag_options = move || {
        let option = |tag: String| {
            let (key, value) = (tag.clone(), tag.clone());
            view! { <option value=value prop:selected=move || question.with(|question| question.tag.as_ref() == Some(&key))>{tag}</option> }
        };
        tags.get().into_iter().map(option).collect_view()
    };
    let set_tag = move |event| {
        let tag = event_target_value(&event);
        question.update(|question| question.tag = (!tag.is_empty()).then_some(tag));
    };
    view! {
        <div class="filters" role="search">
            <input
                type="search"
                placeholder="Search names, notes, tags"
                aria-label="Search runs"
                data-testid="runs-search"
                prop:value=move || question.with(|question| question.search.clone())
                on:input=move |event| question.update(|question| question.search = event_target_value(&event))
            />
            <select aria-label="State" data-testid="runs-state" on:change=set_state>
                <option value="">"any state"</option>
                {states}
            </select>
            <select aria-label="Tag" data-testid="runs-tag" on:change=set_tag>
                <option value="">"any tag"</option>
                {tag_options}
            </select>
            <select aria-label="Order" data-testid="runs-order" on:change=move |event| order.set(Order::of(&event_target_value(&event)))>{orders}</select>
        </div>
    }
}
