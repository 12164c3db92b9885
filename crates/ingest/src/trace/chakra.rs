//! Chakra execution traces: consecutive length-prefixed metadata and node messages, or JSON with
//! `workload_graph`.
//!
//! `Node {1 id, 2 name, 3 type, 4 ctrl_deps, 5 data_deps, 6 start_time_micros, 7 duration_micros,
//! 10 attr}`; types are 4 compute, 5 send, 6 receive, 7 collective. If no node has a start time,
//! each node starts when its dependencies are complete, and the report contains this assumption.
//! Control dependencies on a cycle are ignored. A cycle of data dependencies is an error.

mod graph;

use std::borrow::Cow;
use std::io::Read;

use super::build::Builder;
use super::decimal::nanos;
use super::messages::Messages;
use super::scanned::finish_scan;
use super::table::Format;
use super::{Limits, Trace, TraceError};
use crate::json::{Scanner, Token};
use crate::protobuf::{Broken, Value, fields, varint, varints};
use graph::{Graph, Node};

/// Maximum dependencies per node. Further ones are counted.
const MAX_DEPENDENCIES: usize = 100_000;

/// True if the data starts like a Chakra trace: a short message with small field numbers.
pub(super) fn starts(head: &[u8]) -> bool {
    let Some((length, used)) = varint(head) else { return false };
    let rest = &head[used..];
    let message = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    length > 0
        && length < 1 << 20
        && fields(message).next().is_some_and(|field| field.is_ok_and(|(number, _)| number <= 10))
        && (message.len() < length as usize || fields(message).all(|field| field.is_ok()))
}

/// Parses the binary format.
pub(super) fn read(source: impl Read, limits: &Limits) -> Result<Trace, TraceError> {
    let mut builder = Builder::new(limits);
    let mut graph = Graph::default();
    let mut messages = Messages::new(source, limits);
    // The first message contains the metadata.
    let mut first = true;
    while let Some(message) = messages.next(None)? {
        if std::mem::take(&mut first) {
            continue;
        }
        builder.report.events += 1;
        let node = if message.is_empty() { Ok(None) } else { node(message).map(Some) };
        builder.report.bytes = messages.offset;
        match node {
            Ok(Some(node)) => graph.push(node, &mut builder, limits),
            Ok(None) => builder.report.skip("an empty message, at which other readers stop"),
            Err(Broken { offset }) => return Err(messages.broken(format!("byte {offset} of it is no field"))),
        }
    }
    builder.report.cut = messages.cut;
    builder.report.bytes = messages.offset;
    graph.lay(&mut builder)?;
    builder.finish(Format::Chakra)
}

fn node(message: &[u8]) -> Result<Node, Broken> {
    let mut node = Node::default();
    for field in fields(message) {
        match field? {
            (1, value) => node.id = value.varint(),
            (2, value) => node.name = value.text().map(Cow::into_owned).unwrap_or_default(),
            (3, value) => node.kind = value.varint().unwrap_or_default(),
            (number @ (4 | 5), value) => {
                let capacity = MAX_DEPENDENCIES.saturating_sub(node.dependencies());
                let list = if number == 4 { &mut node.control } else { &mut node.data };
                list.extend(varints(value).take(capacity));
            }
            (6, value) => node.start_ns = value.varint().and_then(nanoseconds),
            (7, value) => node.duration_ns = value.varint().and_then(nanoseconds),
            (10, Value::Bytes(attribute)) => {
                let (mut name, mut flag) = (None, None);
                for field in fields(attribute) {
                    match field? {
                        (1, value) => name = value.text(),
                        (27, value) => flag = value.varint(),
                        _ => {}
                    }
                }
                if name.as_deref() == Some("is_cpu_op") {
                    node.on_host = flag.unwrap_or_default() != 0;
                }
            }
            _ => {}
        }
    }
    Ok(node)
}

/// Parses the node list of a JSON document.
pub(super) fn read_json<R: Read>(mut scanner: Scanner<R>, limits: &Limits) -> Result<Trace, TraceError> {
    let mut builder = Builder::new(limits);
    let mut graph = Graph::default();
    if scanner.next()? != Token::BeginArray {
        return Err(TraceError::Shape { found: "a workload_graph that is no list".to_owned() });
    }
    while scanner.next()? == Token::BeginObject {
        let depth = scanner.depth();
        builder.report.events += 1;
        let node = json_node(&mut scanner)?;
        builder.report.bytes = scanner.offset();
        if scanner.depth() >= depth {
            builder.report.skip("the last node is cut");
            break;
        }
        graph.push(node, &mut builder, limits);
    }
    // Content after the nodes only shows that the document is complete.
    while let Token::Key(_) = scanner.next()? {
        scanner.skip()?;
    }
    finish_scan(&scanner, &mut builder);
    graph.lay(&mut builder)?;
    builder.finish(Format::Chakra)
}

/// Parses a node after its opening brace. Key styles vary.
fn json_node<R: Read>(scanner: &mut Scanner<R>) -> Result<Node, TraceError> {
    let mut node = Node::default();
    loop {
        let key = match scanner.next()? {
            Token::Key(key) => key.replace('_', "").to_ascii_lowercase(),
            _ => return Ok(node),
        };
        let depth = scanner.depth();
        match (key.as_str(), scanner.next()?) {
            ("id", Token::Number(text) | Token::String(text)) => node.id = text.parse().ok(),
            ("name", Token::String(text)) => text.clone_into(&mut node.name),
            ("nodetype" | "type", Token::Number(text)) => node.kind = text.parse().unwrap_or_default(),
            ("iscpuop", Token::Bool(host)) => node.on_host = host,
            ("runtime" | "durationmicros", Token::Number(text)) => node.duration_ns = time(text),
            ("starttimemicros" | "starttime", Token::Number(text)) => node.start_ns = time(text),
            (key @ ("ctrldeps" | "datadeps"), Token::BeginArray) => {
                let is_control = key == "ctrldeps";
                while let Token::Number(text) | Token::String(text) = scanner.next()? {
                    if let (Ok(id), true) = (text.parse(), node.dependencies() < MAX_DEPENDENCIES) {
                        let list = if is_control { &mut node.control } else { &mut node.data };
                        list.push(id);
                    }
                }
            }
            _ => {}
        }
        while scanner.depth() > depth {
            if scanner.next()? == Token::End {
                break;
            }
        }
    }
}

/// Converts integer microseconds; `None` beyond 292 years, as in all formats.
fn nanoseconds(micros: u64) -> Option<u64> {
    micros.checked_mul(1000).filter(|&nanos| i64::try_from(nanos).is_ok())
}

/// Parses decimal microseconds.
fn time(text: &str) -> Option<u64> {
    nanos(text, 3).and_then(|exact| u64::try_from(exact.nanos).ok())
}
