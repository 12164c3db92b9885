//! Input and view in the URL fragment: `#p=4&m=8&k=1f1b,zbv&f=1&i=1&w=1&base=1f1b`.
//!
//! All keys are optional. An invalid value is ignored and does not affect the other keys, so links
//! from older and newer versions open. Tables are included until the link becomes too long.

use api::planner::schedule::ScheduleKind;
use serde_json::{Value, json};

use super::figures::{Column, Order};
use super::input;
use super::values::{self, Spread, joined};
use crate::{fragment, pointer};

/// Maximum fragment length in characters that browsers, chat programs and proxies preserve.
const MAX: usize = 8_192;

/// View settings.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct View {
    /// Key of the baseline schedule for speedups.
    pub(crate) baseline: Option<String>,
    /// Sort order. `None`: order of the input.
    pub(crate) order: Option<Order>,
    /// Visible time range in ns. `None`: full range.
    pub(crate) window_ns: Option<(u64, u64)>,
}

/// Link keys and pointers of integers.
const COUNTS: [(&str, &str); 4] = [("p", "/ranks"), ("m", "/microbatches"), ("v", "/chunks"), ("g", "/group")];
/// Link keys and pointers of numbers.
const NUMBERS: [(&str, &str); 3] = [("c", "/times/communication"), ("o", "/times/overlapped"), ("cap", "/memory_cap")];
/// Link keys and pointers of values that may differ by stage or microbatch.
const VALUES: [(&str, &str); 5] = [
    ("f", "/times/forward"),
    ("i", "/times/input_grad"),
    ("w", "/times/weight_grad"),
    ("a", "/activations/forward"),
    ("aw", "/activations/weight_grad"),
];

/// Parses a fragment with or without `#`. Missing keys have default values.
pub(crate) fn parse(fragment: &str) -> (Value, View) {
    let mut request = input::first();
    let mut view = View::default();
    for pair in fragment.trim_start_matches('#').split('&') {
        let Some((key, value)) = pair.split_once('=') else { continue };
        let find_pointer = |places: &[(&str, &'static str)]| {
            places.iter().find(|(name, _)| *name == key).map(|(_, json_pointer)| *json_pointer)
        };
        if let Some(count_pointer) = find_pointer(&COUNTS) {
            if let Ok(count) = value.parse::<u32>() {
                pointer::set(&mut request, count_pointer, json!(count));
            }
        } else if let Some(number_pointer) = find_pointer(&NUMBERS) {
            if let Some(number) = pointer::parse_number(value) {
                pointer::set(&mut request, number_pointer, number);
            }
        } else if let Some(value_pointer) = find_pointer(&VALUES) {
            if let Some(value) = parse_value(value) {
                pointer::set(&mut request, value_pointer, value);
            }
        } else {
            match key {
                "per" if ["rank", "stage"].contains(&value) => pointer::set(&mut request, "/times/per", json!(value)),
                "k" => {
                    let selected: Vec<_> = value.split(',').filter_map(ScheduleKind::from_id).collect();
                    if !selected.is_empty() || value.is_empty() {
                        input::set_kinds(&mut request, |kind| selected.contains(&kind));
                    }
                }
                "table" => {
                    if let Some((name, rows)) = value.split_once(':') {
                        let csv = rows.replace('/', "\n");
                        input::add_table(&mut request, &decode(name), decode(&csv));
                    }
                }
                "base" => view.baseline = Some(decode(value)),
                "sort" => view.order = parse_order(value),
                "t" => view.window_ns = fragment::parse_window(value),
                _ => {}
            }
        }
    }
    (request, view)
}

/// Returns the fragment without `#`, and the number of tables omitted because of their length.
pub(crate) fn write(request: &Value, view: &View) -> (String, usize) {
    let mut pairs = Vec::new();
    let written = |field_pointer: &str| pointer::get(request, field_pointer).map(write_value);
    for (key, count_pointer) in COUNTS {
        pairs.extend(written(count_pointer).map(|text| format!("{key}={text}")));
    }
    let kinds: Vec<_> = input::kinds(request).into_iter().map(ScheduleKind::id).collect();
    pairs.push(format!("k={}", kinds.join(",")));
    pairs.extend(pointer::text(request, "/times/per").map(|per| format!("per={per}")));
    for (key, value_pointer) in VALUES.into_iter().chain(NUMBERS) {
        pairs.extend(written(value_pointer).map(|text| format!("{key}={text}")));
    }
    pairs.extend(view.baseline.as_ref().map(|baseline| format!("base={}", encode(baseline))));
    pairs.extend(
        view.order.map(|order| format!("sort={}{}", if order.descending { "-" } else { "" }, order.column.id())),
    );
    pairs.extend(view.window_ns.map(|window| format!("t={}", fragment::write_window(window))));
    let mut length = pairs.iter().map(|pair| pair.len() + 1).sum::<usize>();
    let mut left_out = 0;
    for (name, csv) in input::tables(request) {
        // Retain idle lines, because they determine the addresses of other lines.
        let rows: Vec<String> = csv.lines().map(encode).collect();
        let pair = format!("table={}:{}", encode(&name), rows.join("/"));
        if length + pair.len() < MAX {
            length += pair.len() + 1;
            pairs.push(pair);
        } else {
            left_out += 1;
        }
    }
    (pairs.join("&"), left_out)
}

/// Formats a value: "1", "1,2" by stage, "1,2/3,4" by microbatch. A single row ends with a slash.
fn write_value(value: &Value) -> String {
    let text = joined(value, ",", "/");
    match value {
        Value::Array(list) if Spread::from_value(value) == Spread::Microbatches && list.len() == 1 => text + "/",
        Value::Array(list) if Spread::from_value(value) == Spread::Stages && list.len() == 1 => text + ",",
        _ => text,
    }
}

fn parse_value(text: &str) -> Option<Value> {
    if text.contains('/') {
        return values::parse_lists(&text.replace('/', "\n")).ok();
    }
    if text.contains(',') { values::parse_list(text).ok() } else { pointer::parse_number(text) }
}

fn parse_order(text: &str) -> Option<Order> {
    let (descending, id) = text.strip_prefix('-').map_or((false, text), |id| (true, id));
    Some(Order { column: Column::from_id(id)?, descending })
}

/// Percent-encodes all characters except those allowed in fragments and unused by this format.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~,;()".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for digit in [byte >> 4, byte & 15] {
                encoded.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
            }
        }
    }
    encoded
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        let (byte, length) =
            digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()).map_or((bytes[at], 1), |byte| (byte, 3));
        decoded.push(byte);
        at += length;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published links must remain valid.
    #[test]
    fn old_links_are_parsed() {
        let (request, view) = parse("#p=4&m=8&k=1f1b,interleaved,zb_h1,zbv&per=rank&f=1&i=1&w=1&c=0");
        assert_eq!((request, view), (input::first(), View::default()));
        let (complete_request, view) = parse(
            "#p=2&m=2&v=2&k=dual_pipe_v&per=stage&f=1,2&i=1/0.5&w=2&o=3&cap=4&a=2&base=table%3Amy%20own&sort=-gap&t=1ms..3ms&table=my%20own:0F0,,0B0/1F0,1B0",
        );
        assert_eq!(
            complete_request,
            json!({
                "schema": "schedule/1", "ranks": 2, "microbatches": 2, "chunks": 2, "kinds": ["dual_pipe_v"],
                "times": {"per": "stage", "forward": [1, 2], "input_grad": [[1], [0.5]], "weight_grad": 2,
                          "communication": 0, "overlapped": 3},
                "memory_cap": 4, "activations": {"forward": 2},
                "imported": [{"name": "my own", "csv": "0F0,,0B0\n1F0,1B0"}],
            })
        );
        let order = Order { column: Column::Gap, descending: true };
        let baseline = Some("table:my own".to_owned());
        assert_eq!(view, View { baseline, order: Some(order), window_ns: Some((1_000_000, 3_000_000)) });
    }

    #[test]
    fn written_link_round_trips() {
        let mut request = input::first();
        pointer::set(&mut request, "/times/forward", json!([[1, 2], [3, 4.5]]));
        pointer::set(&mut request, "/times/input_grad", json!([[1]]));
        pointer::set(&mut request, "/times/weight_grad", json!([3]));
        pointer::set(&mut request, "/memory_cap", json!(2.5));
        input::add_table(&mut request, "a:b&c=ä%/1", "0F0,(1F0;0B0)OVERLAP_F_B\n\n\"x y\"".to_owned());
        let view = View { baseline: Some("1f1b".to_owned()), ..View::default() };
        let (text, left_out) = write(&request, &view);
        assert_eq!(left_out, 0);
        assert!(text.is_ascii() && !text.contains([' ', '"']), "{text}");
        assert_eq!(parse(&text), (request, view));
        let mut none = input::first();
        input::set_kinds(&mut none, |_| false);
        assert_eq!(parse(&write(&none, &View::default()).0).0, none);
    }

    #[test]
    fn invalid_link_keys_do_not_affect_others() {
        let (request, view) = parse("#p=x&m=6&k=nonsense&f=1,y&per=day&cap=&table=x&t=5&sort=zz&future=1&&=&w=%zz");
        let mut expected = input::first();
        pointer::set(&mut expected, "/microbatches", json!(6));
        assert_eq!((request, view), (expected, View::default()));
        assert_eq!(decode("%"), "%");
        assert_eq!(decode("ä%2"), "ä%2");
    }

    #[test]
    fn a_long_table_is_left_out_and_counted() {
        let mut request = input::first();
        input::add_table(&mut request, "long", "0F0,".repeat(5_000));
        input::add_table(&mut request, "short", "0F0,0B0".to_owned());
        let (text, left_out) = write(&request, &View::default());
        assert!(text.len() <= MAX);
        assert_eq!((left_out, input::tables(&parse(&text).0).len()), (1, 1));
    }
}
