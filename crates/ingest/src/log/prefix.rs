//! Finds the text that launchers, log collectors and loggers print before the line of a program:
//! times, ranks, hosts, pods, levels and logger names.

use super::text::rank_tag;

/// Maximum number of parts in a prefix.
const MAX_PARTS: usize = 16;
/// Maximum length of a part in bytes.
const MAX_PART: usize = 200;
/// Maximum number of blanks between two parts.
const MAX_BLANKS: usize = 20;

/// Level names.
const LEVELS: [&[u8]; 11] = [
    b"WARNING",
    b"CRITICAL",
    b"SUCCESS",
    b"NOTICE",
    b"DEBUG",
    b"TRACE",
    b"ERROR",
    b"FATAL",
    b"INFO",
    b"WARN",
    b"EXCEPTION",
];
/// Date forms. Zeros match any digit.
const DATES: [&[u8]; 6] = [b"0000-00-00", b"0000/00/00", b"00/00/0000", b"00-00-0000", b"00.00.0000", b"00000000"];
const CLOCK: &[u8] = b"00:00:00";

/// A line without its known prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stripped<'a> {
    /// Rank in the prefix.
    pub(super) rank: Option<u32>,
    /// Removed text.
    pub(super) prefix: &'a str,
    /// Text of the program, with its indentation.
    pub(super) text: &'a str,
}

/// Part of a prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    None,
    Time,
    /// `Mar 01 10:00:01`, which a host and a program follow.
    SyslogTime,
    /// `<14>1 ` of RFC 5424.
    Priority,
    Level,
    /// `INFO:root:` and ranks, which the text follows without a blank.
    Attached,
    Other,
}

/// Parts found so far.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    last: Part,
    /// True if a time or a level was found, so that names and separators can follow.
    is_logger: bool,
    /// True if the line has the form of RFC 5424.
    is_structured: bool,
}

/// Removes the known parts before the text of a program. Each part is found in a bounded number of
/// bytes, so that the cost does not depend on the line length.
pub(super) fn strip(line: &str) -> Stripped<'_> {
    let (mut rest, mut rank, mut found) = (line, None, Found::default());
    for at in 0..MAX_PARTS {
        let blanks = rest.bytes().take(MAX_BLANKS + 1).take_while(|&byte| byte == b' ').count();
        let Some(start) = rest.get(blanks..).filter(|start| !start.is_empty() && blanks <= MAX_BLANKS) else { break };
        let bytes = &start.as_bytes()[..start.len().min(MAX_PART)];
        let part = launcher(start, at == 0 && blanks == 0).or_else(|| {
            let (length, part) = logger(bytes, found, blanks)?;
            Some((length, part, None))
        });
        let Some((length, part, part_rank)) = part else { break };
        let Some(after) = start.get(length..) else { break };
        rank = part_rank.or(rank);
        found.is_logger |= matches!(part, Part::Time | Part::SyslogTime | Part::Level);
        found.is_structured |= part == Part::Priority;
        found.last = part;
        // The text keeps further blanks: they are its indentation.
        let has_blank = part != Part::Attached;
        rest = after.strip_prefix([' ', '\t']).filter(|_| has_blank).unwrap_or(after);
    }
    Stripped { rank, prefix: &line[..line.len() - rest.len()], text: rest }
}

/// Parses a part of a launcher or collector and returns its length. `is_first` is true at the start
/// of the line.
fn launcher(text: &str, is_first: bool) -> Option<(usize, Part, Option<u32>)> {
    let bytes = &text.as_bytes()[..text.len().min(MAX_PART)];
    if let Some((rank, rest)) = rank_tag(text) {
        return Some((text.len() - rest.len(), Part::Attached, rank));
    }
    if let Some((length, rank)) = mpi(bytes).or_else(|| process(bytes)) {
        return Some((length, Part::Other, rank));
    }
    let length = address(bytes).or_else(|| is_first.then(|| compose(bytes).or_else(|| stern(bytes))).flatten())?;
    Some((length, Part::Other, None))
}

/// Parses a part of a logger or of syslog and returns its length.
fn logger(text: &[u8], found: Found, blanks: usize) -> Option<(usize, Part)> {
    if let Some((length, is_syslog)) = time(text).filter(|&(length, _)| ends_part(text, length)) {
        let colon = usize::from(text.get(length) == Some(&b':'));
        return Some((length + colon, if is_syslog { Part::SyslogTime } else { Part::Time }));
    }
    if let Some(length) = glog(text) {
        return Some((length, Part::Time));
    }
    if let Some((length, part)) = bracket(text, found) {
        return Some((length, part));
    }
    if let Some(length) = priority(text) {
        // The version is that of RFC 5424.
        return Some((length, if text[length - 1] == b'1' { Part::Priority } else { Part::Other }));
    }
    if let Some(length) = level(text) {
        let is_attached = text[..length].ends_with(b":") && text[..length - 1].contains(&b':');
        return Some((length, if is_attached { Part::Attached } else { Part::Level }));
    }
    if !found.is_logger {
        return None;
    }
    let separator =
        [&b"- "[..], b"| ", b": ", b":: ", b">> "].into_iter().find(|separator| text.starts_with(separator));
    if let Some(separator) = separator {
        return Some((separator.len() - 1, Part::Other));
    }
    let after_time = matches!(found.last, Part::Time | Part::SyslogTime);
    let by_time = || stream(text).or_else(|| syslog(text, found)).or_else(|| log_stream(text));
    let named = || name(text, found.last);
    let length =
        if blanks > 0 { named_after_level(text, found) } else { (after_time.then(by_time).flatten()).or_else(named) };
    Some((length?, Part::Other))
}

/// Returns true if bytes have a form, where zeros match any digit.
fn has_form(text: &[u8], form: &[u8]) -> bool {
    text.len() >= form.len()
        && text.iter().zip(form).all(|(&byte, &form)| if form == b'0' { byte.is_ascii_digit() } else { byte == form })
}

fn count(text: &[u8], is_part: impl Fn(u8) -> bool) -> usize {
    text.iter().take_while(|&&byte| is_part(byte)).count()
}

fn digits(text: &[u8]) -> usize {
    count(text, |byte| byte.is_ascii_digit())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// True if a part ends at a position.
fn ends_part(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| b" \t]:|-,;<>".contains(byte))
}

/// Parses a time and returns its length, and whether it has the form of syslog: a date with a clock,
/// a clock, `Mar 01 10:00:01`, or seconds or milliseconds since 1970.
fn time(text: &[u8]) -> Option<(usize, bool)> {
    let is_gap = |at: usize| text.get(at).is_some_and(|byte| b" T,_".contains(byte));
    let date = DATES.iter().find(|date| has_form(text, date) && is_gap(date.len()));
    let (clock, is_syslog) = if let Some(date) = date {
        (date.len() + 1, false)
    } else if has_form(text, CLOCK) {
        (0, false)
    } else if let Some(clock) = month(text) {
        (clock, true)
    } else {
        return since_1970(text).map(|length| (length, false));
    };
    let mut at = clock + CLOCK.len();
    if !has_form(text.get(clock..)?, CLOCK) {
        return None;
    }
    let fraction = text.get(at).filter(|byte| b".,".contains(byte)).map_or(0, |_| digits(&text[at + 1..]));
    at += if fraction > 0 { fraction + 1 } else { 0 };
    let rest = &text[at..];
    let half = [&b" AM"[..], b" PM"].into_iter().find(|half| rest.starts_with(half)).map_or(0, <[u8]>::len);
    at += half;
    at += zone(&text[at..]);
    // `Sat Mar 01 10:00:00 2025`.
    at += if is_syslog && has_form(&text[at..], b" 2000") && ends_part(text, at + 5) { 5 } else { 0 };
    Some((at, is_syslog))
}

/// Returns the length of a time zone.
fn zone(text: &[u8]) -> usize {
    let blank = usize::from(text.first() == Some(&b' '));
    let rest = &text[blank..];
    let names = [&b"UTC"[..], b"GMT"].into_iter().find(|name| rest.starts_with(name)).map(<[u8]>::len);
    let offset = || {
        let digits = rest.get(1..).filter(|_| matches!(rest.first(), Some(b'+' | b'-')))?;
        [&b"00:00"[..], b"0000"].into_iter().find(|form| has_form(digits, form)).map(|form| form.len() + 1)
    };
    if rest.first() == Some(&b'Z') && blank == 0 { 1 } else { names.or_else(offset).map_or(0, |length| length + blank) }
}

/// Returns the length of `Mar 01 ` or `Sat Mar  1 ` before a clock.
fn month(text: &[u8]) -> Option<usize> {
    const MONTHS: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    const DAYS: [&[u8]; 7] = [b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun"];
    let weekday = if DAYS.iter().any(|day| text.starts_with(day)) && text.get(3) == Some(&b' ') { 4 } else { 0 };
    let text = &text[weekday..];
    let is_date = MONTHS.iter().any(|month| text.starts_with(month))
        && text.get(3..).is_some_and(|day| has_form(day, b" 00 ") || has_form(day, b"  0 "));
    (is_date && has_form(&text[7..], CLOCK)).then_some(weekday + 7)
}

/// Returns the length of seconds with a fraction, or of milliseconds, since 1970.
fn since_1970(text: &[u8]) -> Option<usize> {
    let length = digits(text);
    let fraction = text.get(length).filter(|byte| **byte == b'.').map_or(0, |_| digits(&text[length + 1..]));
    match (length, fraction) {
        (10, 1..) => Some(length + 1 + fraction),
        (13, 0) => Some(length),
        _ => None,
    }
}

/// Returns the length of `I0301 10:00:02.123456 140123 train.py:12]`.
fn glog(text: &[u8]) -> Option<usize> {
    let is_level = matches!(text.first(), Some(b'I' | b'W' | b'E' | b'F'));
    let clock = text.get(6..).filter(|clock| is_level && has_form(&text[1..], b"0000 ") && has_form(clock, CLOCK))?;
    let end = clock.iter().position(|&byte| byte == b']')?;
    let is_place = clock[..end].iter().all(|&byte| is_word(byte) || matches!(byte, b' ' | b':' | b'/'));
    is_place.then_some(6 + end + 1)
}

/// Parses a time, a level, a rank or the name of a logger in brackets.
fn bracket(text: &[u8], found: Found) -> Option<(usize, Part)> {
    let inside = text.strip_prefix(b"[")?;
    let end = inside.iter().position(|&byte| byte == b']')?;
    let (inside, length) = (&inside[..end], end + 2);
    if inside.is_empty() || inside.iter().any(|byte| b"[{=\"'".contains(byte)) {
        return None;
    }
    let starts = |at: usize| at == 0 || matches!(inside[at - 1], b' ' | b'|');
    let has_time = (0..inside.len()).any(|at| starts(at) && time(&inside[at..]).is_some());
    if has_time {
        return Some((length, Part::Time));
    }
    let word = count(inside, |byte| byte.is_ascii_alphabetic());
    if LEVELS.iter().any(|level| level.eq_ignore_ascii_case(&inside[..word])) {
        return Some((length, Part::Level));
    }
    let is_rank = inside.strip_prefix(b"rank").is_some_and(|rest| digits(rest.strip_prefix(b"-").unwrap_or(rest)) > 0);
    let is_name = inside.iter().all(|&byte| is_word(byte) || matches!(byte, b':' | b'/' | b'@'))
        && inside.iter().any(u8::is_ascii_alphabetic);
    ((is_rank || found.is_logger) && is_name).then_some((length, Part::Other))
}

/// Returns the length of `<14>` or `<14>1 `.
fn priority(text: &[u8]) -> Option<usize> {
    let length = digits(text.strip_prefix(b"<")?);
    let after = text.get(length + 1..).filter(|after| (1..=3).contains(&length) && after.starts_with(b">"))?;
    Some(length + 2 + usize::from(after.starts_with(b">1 ")))
}

/// Returns the length of a level, and of the logger name in `INFO:root:`.
fn level(text: &[u8]) -> Option<usize> {
    let length = LEVELS.iter().find(|level| text.starts_with(level))?.len();
    let rest = &text[length..];
    if let Some(rest) = rest.strip_prefix(b":") {
        let name = count(rest, is_word);
        let is_name = name > 0 && rest.get(name) == Some(&b':');
        return Some(length + 1 + if is_name { name + 1 } else { 0 });
    }
    matches!(rest.first(), None | Some(b' ' | b'\t' | b'|')).then_some(length)
}

/// Returns the length of the stream of a container runtime: `stdout F`, or of GitLab: `01O`.
fn stream(text: &[u8]) -> Option<usize> {
    let is_runtime = (text.starts_with(b"stdout ") || text.starts_with(b"stderr "))
        && text
            .get(7..)
            .is_some_and(|tag| tag.starts_with(b"F ") || tag.starts_with(b"P ") || tag == b"F" || tag == b"P");
    let is_gitlab = has_form(text, b"00")
        && matches!(text.get(2), Some(b'O' | b'E'))
        && matches!(text.get(3), None | Some(b' ' | b'+'));
    if is_runtime { Some(8) } else { is_gitlab.then_some(if text.get(3) == Some(&b'+') { 4 } else { 3 }) }
}

/// Returns the length of host and program: `gpu-01 train[123]:`, or the five fields of RFC 5424.
fn syslog(text: &[u8], found: Found) -> Option<usize> {
    let host = count(text, is_word);
    let program = text.get(host + 1..).filter(|_| host > 0 && text[host] == b' ')?;
    let is_field = |byte: u8| is_word(byte) || matches!(byte, b'/' | b'@');
    if found.is_structured {
        let mut at = host + 1;
        for _ in 0..3 {
            at += count(&text[at..], is_field);
            at += text.get(at).filter(|byte| **byte == b' ').map(|_| 1)?;
        }
        let data = if text.get(at) == Some(&b'[') { text[at..].iter().position(|&byte| byte == b']')? } else { 0 };
        return Some(at + data + 1);
    }
    let name = count(program, is_field);
    let process = program.get(name..).and_then(|rest| {
        let length = digits(rest.strip_prefix(b"[")?);
        (length > 0 && rest[length + 1..].starts_with(b"]")).then_some(length + 2)
    });
    let is_host = text[..host].iter().any(|&byte| byte.is_ascii_digit() || byte == b'-');
    let is_known = process.is_some() || found.last == Part::SyslogTime || is_host;
    let end = host + 1 + name + process.unwrap_or(0);
    (is_known && name > 0 && text[end..].starts_with(b":")).then_some(end + 1)
}

/// Returns the length of the stream name of CloudWatch: `train/default/0a1b`.
fn log_stream(text: &[u8]) -> Option<usize> {
    let length = count(text, |byte| is_word(byte) || byte == b'/');
    (text[..length].contains(&b'/') && text.get(length) == Some(&b' ')).then_some(length)
}

/// Returns the length of a logger name before a dash: `root - `, `trainer:run:88 - `.
fn name(text: &[u8], last: Part) -> Option<usize> {
    let length = count(text, |byte| is_word(byte) || matches!(byte, b':' | b'/' | b'<' | b'>'));
    let is_name = length > 0 && text[length..].starts_with(b" - ");
    if is_name { Some(length) } else { (last == Part::Level).then(|| place(text)).flatten() }
}

/// After a level with padding, parses a logger name.
fn named_after_level(text: &[u8], found: Found) -> Option<usize> {
    (found.last == Part::Level).then(|| place(text)).flatten()
}

/// Returns the length of a place in a program: `MainThread:123`, `train.py:12]`.
fn place(text: &[u8]) -> Option<usize> {
    let name = count(text, |byte| is_word(byte) || byte == b'/');
    let line =
        text.get(name..).and_then(|rest| rest.strip_prefix(b":")).map(digits).filter(|&line| name > 0 && line > 0)?;
    let end = name + 1 + line;
    match text.get(end) {
        Some(b']') => Some(end + 1),
        Some(b' ') => Some(end),
        _ => None,
    }
}

/// Parses `[1,3]<stdout>:` and returns its length and rank.
fn mpi(text: &[u8]) -> Option<(usize, Option<u32>)> {
    let job = digits(text.strip_prefix(b"[")?);
    let rest = text.get(1 + job..).filter(|_| job > 0)?.strip_prefix(b",")?;
    let length = digits(rest);
    let after = rest.get(length..).filter(|_| length > 0)?.strip_prefix(b"]<std")?;
    let end = [&b"out>:"[..], b"err>:"].into_iter().find(|end| after.starts_with(end))?.len();
    Some((1 + job + 1 + length + 5 + end, number(&rest[..length])))
}

/// Parses the process of Ray or SkyPilot in parentheses, `(Worker pid=12, ip=10.0.0.1)`, and returns
/// its length and rank.
fn process(text: &[u8]) -> Option<(usize, Option<u32>)> {
    let inside = text.strip_prefix(b"(")?;
    let end = inside.iter().position(|&byte| byte == b')')?;
    let inside = &inside[..end];
    let has = |word: &[u8]| inside.windows(word.len()).position(|window| window == word).map(|at| at + word.len());
    has(b"pid=")?;
    let rank = has(b"rank=").and_then(|at| number(&inside[at..at + digits(&inside[at..])]));
    Some((end + 2, rank))
}

fn number(digits: &[u8]) -> Option<u32> {
    str::from_utf8(digits).ok()?.parse().ok()
}

/// Returns the length of an IP address with a colon: `10.0.0.1:`.
fn address(text: &[u8]) -> Option<usize> {
    let length = count(text, |byte| byte.is_ascii_digit() || byte == b'.');
    let is_address = text[..length].split(|&byte| byte == b'.').filter(|part| !part.is_empty()).count() == 4;
    (is_address && text[length..].starts_with(b": ")).then_some(length + 1)
}

/// Returns the length of a service name of Docker Compose: `trainer-0  |`.
fn compose(text: &[u8]) -> Option<usize> {
    let name = count(text, is_word);
    let blanks = count(&text[name..], |byte| byte == b' ');
    let end = name + blanks;
    (name > 0 && blanks > 0 && text[end..].starts_with(b"| ")).then_some(end + 1)
}

/// Returns the length of pod and container as stern prints them: `job-0 trainer`.
fn stern(text: &[u8]) -> Option<usize> {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let pod = count(text, is_name);
    let rest = text.get(pod + 1..).filter(|_| text.get(pod) == Some(&b' ') && text[..pod].contains(&b'-'))?;
    let container = count(rest, is_name);
    (container > 0 && rest.get(container) == Some(&b' ')).then_some(pod + 1 + container)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes of launchers, collectors and loggers. The text keeps its indentation.
    #[test]
    fn known_prefixes_are_removed() {
        for prefix in [
            "2025-03-01T10:00:00.123456789Z ",
            "2025-03-01T10:00:00.123456789Z stdout F ",
            "2025-03-01T10:00:00.123+01:00 stderr F ",
            "2025-03-01 10:00:01.123 | INFO     | trainer:run:88 - ",
            "2025-03-01 10:00:01,123 - root - INFO - ",
            "03/01/2025 10:00:01 - INFO - train.main - ",
            "2025-03-01 10:00:01,123 INFO    MainThread:123 [x.py:1] ",
            "[INFO|trainer.py:2409] 2025-03-01 10:00:00,123 >> ",
            "[2025-03-01 10:00:00,123][INFO][train] ",
            "[2025-03-01 10:00:00,123] [INFO] [engine.py:12:step] ",
            "[20250301 10:00:02][rank-7/8][INFO ] [---trainer.py:12] : ",
            "[NeMo I 2025-03-01 10:00:02 logging:381] ",
            "INFO:root:",
            "I0301 10:00:02.123456 140123 train.py:12] ",
            "Mar 01 10:00:01 gpu-01 train[123]: ",
            "Mar  1 10:00:01 host train: ",
            "Mar 01 10:00:01 ",
            "2025-03-01T10:00:01+0000 host train[123]: ",
            "<14>1 2025-03-01T10:00:00Z host app 12 - - ",
            "<14>Mar 01 10:00:01 host train[9]: ",
            "(TrainWorker pid=12, ip=10.0.0.1) ",
            "(pid=12) ",
            "trainer-0  | ",
            "job-0 trainer ",
            "10.0.0.7: ",
            "1740823200.25 ",
            "2025-03-01T10:00:00.1Z 01O ",
            "2025-03-01T10:00:00.1Z train/default/0a1b ",
        ] {
            for text in ["time (ms) | forward: 2.0", "    forward ....: 2.0", "\t Train loss: 2.0", "step: 100"] {
                let line = format!("{prefix}{text}");
                let stripped = strip(&line);
                assert_eq!((stripped.prefix, stripped.text), (prefix, text), "{line}");
            }
        }
    }

    #[test]
    fn ranks_in_prefixes_are_read() {
        for (line, rank) in [
            ("(head, rank=0, pid=1) x", Some(0)),
            ("(worker1, rank=12, pid=1, ip=10.0.0.2) x", Some(12)),
            ("[1,3]<stdout>: x", Some(3)),
            ("2025-03-01T10:00:00Z [rank5]: x", Some(5)),
            ("2025-03-01T10:00:00Z stdout F 7: x", Some(7)),
            ("(TrainWorker pid=12) x", None),
        ] {
            let stripped = strip(line);
            assert_eq!((stripped.rank, stripped.text.trim_start()), (rank, "x"), "{line}");
        }
    }

    /// Text of programs that resembles a prefix.
    #[test]
    fn other_text_is_unchanged() {
        for line in [
            "time (ms) | forward: 2.0",
            "    optim/LR (group 0)=3.00E-04",
            "[step=1/1000,epoch=1,eta=1 day, 12:03:04]",
            "[Rank 0] (after 1 iterations) memory (MB) | allocated: 1.0",
            "Step 1 | loss:2.5",
            "1|2|Loss: 2.5",
            "iter 10: loss 2.5, time 100.00ms",
            "step    1/100 | train loss 2.5",
            "(min, max) time across ranks (ms):",
            "{\"step\": 1}",
            "[]",
            "",
        ] {
            let stripped = strip(line);
            assert_eq!((stripped.prefix, stripped.text), ("", line));
        }
    }

    #[test]
    fn long_lines_and_characters_beyond_ascii() {
        for piece in ["[", "(", "a", " ", "2025-03-01 10:00:00 ", "INFO ", "- ", "ü", "1", "<1>"] {
            let line = piece.repeat(20_000);
            let stripped = strip(&line);
            assert!(stripped.prefix.len() <= MAX_PARTS * (MAX_PART + MAX_BLANKS + 1), "{piece}");
            assert_eq!([stripped.prefix, stripped.text].concat(), line);
        }
    }
}
