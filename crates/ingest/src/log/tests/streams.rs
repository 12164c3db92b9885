//! Tests for streams of files that are read only as a whole.

use super::*;

const NOTE: &str = "this looks like a table, a JSON document or a packed file, from which a stream reads no steps";

/// Returns the points and whether the report names the import, while the stream grows and at its end.
fn streamed(text: &str, piece: usize) -> (usize, bool, bool) {
    let mut parser = LogParser::new();
    let mut count = 0;
    for piece in text.as_bytes().chunks(piece) {
        count += parser.push(piece).len();
    }
    let has_note = |report: &Report| report.assumptions.iter().any(|note| note.starts_with(NOTE));
    let grows = has_note(parser.report());
    let (points, report) = parser.finish();
    (count + points.len(), grows, has_note(&report))
}

#[test]
fn a_stream_of_a_whole_file_says_that_it_must_be_imported() {
    let table = "step,loss,lr\n1,2.5,0.5\n2,2.25,0.5\n3,2.0,0.5\n";
    let panel = "\"Step\",\"a - loss\"\n\"1\",\"2.5\"\n\"2\",\"2.25\"\n";
    let scalar = "Wall time,Step,Value\n1700000000,1,2.5\n1700000001,2,2.25\n";
    let history = "\"log_history\": [{\"loss\": 2.5, \"step\": 10}, {\"loss\": 2.25, \"step\": 20}]";
    let state = format!("{{\n \"max_steps\": 20,\n {history}\n}}\n");
    let short_state = format!("{{\"global_step\": 20, \"max_steps\": 20, {history}}}");
    let array = "[\n {\n  \"textPayload\": \"iter 10: loss 2.5000, time 150.00ms\",\n  \"timestamp\": \"2025-03-01T10:00:00Z\"\n }\n]\n";
    let long = format!("[{}]", vec!["{\"step\": 1, \"loss\": 2.5}"; 9000].join(", "));
    let lines = "Time,Line\n2025-03-01T10:00:00Z,nothing\n";
    for text in [table, panel, scalar, &state, &short_state, array, &long, lines] {
        for piece in [1, 7, 1 << 20] {
            let (points, _, is_reported) = streamed(text, piece);
            assert_eq!((points, is_reported), (0, true), "{}", &text[..text.len().min(300)]);
        }
        let is_in_import = |report: &Report| report.assumptions.iter().any(|note| note.starts_with(NOTE));
        match import(text.as_bytes(), &Limits::default()) {
            Ok(log) => assert!(!is_in_import(&log.report)),
            Err(LogError::NoSteps { report }) => assert!(!is_in_import(&report)),
            Err(error) => panic!("{error}"),
        }
    }
    assert!(streamed(table, 7).1, "the note is there while the stream grows");
}

/// Lines of another format are not torn.
#[test]
fn a_whole_file_has_no_torn_lines() {
    let entry = |step: u32| format!("{{\"log\": \" iteration {step}/ 9 | lm loss: 9.5 |\\n\"}}");
    let mut parser = LogParser::new();
    parser.push(format!("[{}, {}]\n", entry(1), entry(2)).as_bytes());
    let (points, report) = parser.finish();
    assert_eq!((points.len(), report.torn, report.ignored, report.lines), (0, 0, 1, 1));
    assert!(report.problems.is_empty() && report.torn_lines.is_empty());
    assert!(report.assumptions[0].starts_with(NOTE));
    let mut parser = LogParser::new();
    parser.push(b"\x1f\x8b\x08\x00\x00");
    assert!(parser.finish().1.assumptions[0].starts_with(NOTE));
}

#[test]
fn logs_have_no_such_note() {
    for text in [V2, BLOOM, "{\"step\": 1, \"loss\": 2.5}\n", "{'loss': 2.5, 'epoch': 0.5}\n", "nothing\n", ""] {
        assert!(!streamed(text, 5).2, "{text}");
    }
    // A document at the start of a log that has steps.
    let (points, _, is_reported) = streamed(&format!("{{\n \"lr\": 1,\n \"a\": 2\n}}\n{V2}"), 5);
    assert_eq!((points, is_reported), (1, false));
}
