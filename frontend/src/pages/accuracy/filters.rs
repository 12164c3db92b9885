//! Filters of the rows of a set by the properties of their configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::accuracy::{AccuracyErrors, AccuracyPoint, AccuracySet};
use leptos::prelude::*;

use crate::format;

/// Chosen values by index of the property.
pub(super) type Chosen = BTreeMap<usize, String>;

/// Returns the filters of an address. `value` returns the value of a name in the address.
pub(super) fn from_address(names: &[String], value: impl Fn(&str) -> Option<String>) -> Chosen {
    names.iter().enumerate().filter_map(|(index, name)| Some((index, value(name)?))).collect()
}

/// Returns the set with the rows that have the chosen values, and their errors. `None` if no row has them.
pub(super) fn filtered(set: &Arc<AccuracySet>, chosen: &Chosen) -> Option<Arc<AccuracySet>> {
    if chosen.is_empty() {
        return Some(Arc::clone(set));
    }
    let has = |point: &&AccuracyPoint| chosen.iter().all(|(index, value)| point.properties.get(*index) == Some(value));
    let points: Vec<AccuracyPoint> = set.points.iter().filter(has).cloned().collect();
    let statistics = AccuracyErrors::of(&points)?;
    Some(Arc::new(AccuracySet { statistics, points, ..(**set).clone() }))
}

/// Returns the values of a property in the rows that the other filters select, in ascending order.
fn values(set: &Arc<AccuracySet>, chosen: &Chosen, index: usize) -> Vec<String> {
    let others: Chosen =
        chosen.iter().filter(|(other, _)| **other != index).map(|(at, it)| (*at, it.clone())).collect();
    let rows = filtered(set, &others);
    let rows = rows.iter().flat_map(|set| &set.points);
    let found: BTreeSet<&String> = rows.filter_map(|point| point.properties.get(index)).collect();
    sorted(found.into_iter().cloned().collect())
}

/// Sorts numbers by value, and other texts after them by letters.
pub(super) fn sorted(mut values: Vec<String>) -> Vec<String> {
    values.sort_by(|a, b| format::numbers_first(a, b));
    values
}

/// A select for each property, and the errors of the selected rows.
#[component]
pub(super) fn Filters(set: Arc<AccuracySet>, chosen: RwSignal<Chosen>) -> impl IntoView {
    let all = Arc::clone(&set);
    let filter_names = set.properties.clone();
    let filters = move || {
        let named = |(index, value): (&usize, &String)| {
            let name = filter_names.get(*index).map(String::as_str).unwrap_or_default();
            format!("{name} is {value}")
        };
        chosen.with(|chosen| chosen.iter().map(named).collect::<Vec<_>>().join(" and "))
    };
    let summary = move || {
        let total = format::count(all.points.len() as u64);
        match chosen.with(|chosen| filtered(&all, chosen)) {
            None => format!("In none of {total} rows {}. Choose another value, or \"All rows\".", filters()),
            Some(selected) => {
                let errors = selected.statistics;
                let percent = |value: f64| format::percent(value / 100.0);
                format!(
                    "{} of {total} rows: mean error {}, median {}, p90 {}, largest {}, bias {}",
                    format::count(errors.count.into()),
                    percent(errors.mean_abs_pct),
                    percent(errors.median_abs_pct),
                    percent(errors.p90_abs_pct),
                    percent(errors.max_abs_pct),
                    format::signed_percent(errors.bias_pct / 100.0)
                )
            }
        }
    };
    let names = set.properties.clone();
    (!names.is_empty()).then(|| {
        let selects = names
            .into_iter()
            .enumerate()
            .map(|(index, name)| view! { <Filter set=Arc::clone(&set) chosen=chosen index=index name=name /> })
            .collect_view();
        view! {
            <div class="accuracy-filters" role="group" aria-label="Filter the rows" data-testid="accuracy-filters">
                {selects}
                <button class="quiet" disabled=move || chosen.with(Chosen::is_empty) on:click=move |_| chosen.update(Chosen::clear)>
                    "All rows"
                </button>
            </div>
            <p class="hint" aria-live="polite" data-testid="accuracy-filtered">{summary}</p>
        }
    })
}

#[component]
fn Filter(set: Arc<AccuracySet>, chosen: RwSignal<Chosen>, index: usize, name: String) -> impl IntoView {
    let current = move || chosen.with(|chosen| chosen.get(&index).cloned());
    let options = move || {
        let values = chosen.with(|chosen| values(&set, chosen, index));
        let option = |value: String| {
            let (own, shown) = (value.clone(), if value.is_empty() { "not stated".to_owned() } else { value.clone() });
            view! { <option value=value prop:selected=move || current().as_ref() == Some(&own)>{shown}</option> }
        };
        values.into_iter().map(option).collect_view()
    };
    let choose = move |event: web_sys::Event| {
        let value = event_target_value(&event);
        chosen.update(|chosen| {
            if value == ALL {
                chosen.remove(&index);
            } else {
                chosen.insert(index, value);
            }
        });
    };
    view! {
        <label>
            {format::capitalised(&name)}
            <select data-property=name on:change=choose>
                <option value=ALL prop:selected=move || current().is_none()>"all"</option>
                {options}
            </select>
        </label>
    }
}

/// Value of the option without a filter. No property has it.
const ALL: &str = "\u{0}all";

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> Arc<AccuracySet> {
        let point = |tensor: &str, device: &str, predicted: f64| AccuracyPoint {
            label: String::new(),
            measured: 10.0,
            predicted,
            properties: vec![tensor.to_owned(), device.to_owned()],
        };
        Arc::new(AccuracySet {
            properties: vec!["TP".to_owned(), "device".to_owned()],
            points: vec![point("2", "H100", 11.0), point("16", "H100", 12.0), point("2", "A100", 9.0)],
            ..super::super::tests::set("a")
        })
    }

    #[test]
    fn filters_come_from_the_address() {
        let value = |name: &str| (name == "device").then(|| "H100".to_owned());
        assert_eq!(from_address(&set().properties, value), [(1, "H100".to_owned())].into());
    }

    #[test]
    fn filters_select_rows_with_their_errors() {
        let set = set();
        let tensor: Chosen = [(0, "2".to_owned())].into();
        let rows = filtered(&set, &tensor).unwrap();
        assert_eq!((rows.points.len(), rows.statistics.count), (2, 2));
        assert!((rows.statistics.mean_abs_pct - 10.0).abs() < 1e-9 && rows.statistics.bias_pct.abs() < 1e-9);
        assert_eq!(filtered(&set, &Chosen::new()).unwrap(), set);
        assert_eq!(filtered(&set, &[(0, "16".to_owned()), (1, "A100".to_owned())].into()), None);
        assert_eq!(values(&set, &Chosen::new(), 0), ["2", "16"], "in the order of numbers");
        assert_eq!(values(&set, &[(1, "A100".to_owned())].into(), 0), ["2"]);
    }
}
