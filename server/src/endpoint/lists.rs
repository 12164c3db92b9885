//! Validation of parameters shared by all lists.

use api::listing::{Annotations, ListQuery, MAX_PAGE, MAX_SEARCH};
use planner::scenario::FieldError;

use crate::error::ApiError;
use crate::label;
use crate::store::{ListDefinition, Wanted};

/// Validates a list query. `limit` is the default page size.
pub(super) fn wanted(query: ListQuery, definition: &ListDefinition, limit: u32) -> Result<Wanted, ApiError> {
    let given = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let search = given(query.q).or(given(query.search)).unwrap_or_default();
    if search.chars().count() > MAX_SEARCH {
        return Err(ApiError::Malformed(format!("q: a search has at most {MAX_SEARCH} characters")));
    }
    let sort = given(query.sort).unwrap_or_else(|| format!("-{}", definition.orders[0].name));
    let (is_descending, order) = sort.strip_prefix('-').map_or((false, sort.as_str()), |order| (true, order));
    if definition.order(order).is_none() {
        let known: Vec<&str> = definition.orders.iter().map(|order| order.name).collect();
        return Err(ApiError::Malformed(format!("sort is one of {}, with or without a minus", known.join(", "))));
    }
    Ok(Wanted {
        terms: search.split_whitespace().map(str::to_owned).collect(),
        tag: given(query.tag),
        order: order.to_owned(),
        is_descending,
        after: given(query.after),
        limit: query.limit.unwrap_or(limit).clamp(1, MAX_PAGE),
        is_deleted: query.deleted.unwrap_or(false),
        filters: Vec::new(),
    })
}

/// Sanitizes name, note and tags. The error lists all invalid fields.
pub(super) fn checked(annotations: Annotations) -> Result<Annotations, ApiError> {
    let mut errors = Vec::new();
    let name = annotations.name.as_deref().and_then(|name| label::named(name, &mut errors));
    let tags = annotations.tags.map(|tags| label::tags(&tags, &mut errors));
    let note = annotations.note.map(|note| label::note(&note));
    if errors.is_empty() {
        Ok(Annotations { name, note, tags, pinned: annotations.pinned })
    } else {
        Err(invalid(errors))
    }
}

fn invalid(errors: Vec<FieldError>) -> ApiError {
    ApiError::InvalidAnnotations(errors)
}
