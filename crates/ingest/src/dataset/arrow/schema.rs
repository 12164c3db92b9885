//! Kinds of Arrow types, and the types that allow reading columns with bounded memory.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::super::{Kind, text};

pub(in super::super) fn kind(data_type: &DataType) -> Kind {
    match data_type {
        DataType::Boolean => Kind::Boolean,
        DataType::Date32 | DataType::Date64 => Kind::Date,
        DataType::Timestamp(..) => Kind::Timestamp,
        DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) | DataType::Interval(_) => Kind::Duration,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Kind::Text,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Kind::Binary,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => list(field.data_type()),
        DataType::Dictionary(_, values) => kind(values),
        DataType::RunEndEncoded(_, values) => kind(values.data_type()),
        DataType::Null => Kind::Empty,
        numeric if numeric.is_numeric() => Kind::Number,
        _ => Kind::Object,
    }
}

fn list(element: &DataType) -> Kind {
    match kind(element) {
        Kind::Text => Kind::TextList,
        Kind::Object => match element {
            DataType::Struct(fields) if is_message(fields) => Kind::Chat,
            _ => Kind::ObjectList,
        },
        Kind::NumberList | Kind::TextList | Kind::ObjectList | Kind::NestedList | Kind::Chat => Kind::NestedList,
        _ => Kind::NumberList,
    }
}

fn is_message(fields: &Fields) -> bool {
    let texts = fields.iter().filter(|field| !field.data_type().is_numeric());
    text::is_message(&texts.map(|field| field.name().as_str()))
}

/// Replaces text and bytes by views, so that a value of a dictionary page is not copied for each
/// row.
pub(in super::super) fn with_views(fields: &Fields) -> Fields {
    fields.iter().map(with_view).collect()
}

fn with_view(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(element) => DataType::List(with_view(element)),
        DataType::LargeList(element) => DataType::LargeList(with_view(element)),
        DataType::FixedSizeList(element, length) => DataType::FixedSizeList(with_view(element), *length),
        DataType::Map(entries, sorted) => DataType::Map(with_view(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(with_views(fields)),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}

/// Replaces integer fields by the durations and timestamps of the writer's schema.
pub(in super::super) fn with_times(fields: &Fields, written: &Fields) -> Fields {
    let find_written = |field: &FieldRef| written.iter().find(|written| written.name() == field.name());
    fields
        .iter()
        .map(|field| find_written(field).map_or_else(|| Arc::clone(field), |counterpart| with_time(field, counterpart)))
        .collect()
}

fn with_time(field: &FieldRef, written: &FieldRef) -> FieldRef {
    let data_type = match (field.data_type(), written.data_type()) {
        (
            DataType::Int64,
            time @ (DataType::Duration(_) | DataType::Timestamp(..) | DataType::Time64(_) | DataType::Date64),
        )
        | (DataType::Int32, time @ DataType::Time32(_)) => time.clone(),
        (DataType::Struct(fields), DataType::Struct(written)) => DataType::Struct(with_times(fields, written)),
        (DataType::List(element), DataType::List(written)) => DataType::List(with_time(element, written)),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}
