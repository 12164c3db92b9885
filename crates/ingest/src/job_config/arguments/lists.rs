//! Arguments as items of a list in Python, JSON or YAML: `["--num-layers", "32"]`, or an item on each line.

const QUOTES: [char; 2] = ['"', '\''];

/// Returns a text with each option and its value on one line, if they are two items of a list on two lines.
pub(super) fn joined(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut last = "";
    for line in text.lines() {
        if is_open_option(last) && is_value(line, is_yaml(last)) {
            joined.pop();
            let item = line.trim_start();
            joined.push(' ');
            joined.push_str(item.strip_prefix("- ").unwrap_or(item));
        } else {
            joined.push_str(line);
        }
        joined.push('\n');
        last = line;
    }
    joined
}

fn is_yaml(line: &str) -> bool {
    line.trim_start().starts_with("- ")
}

/// True if the last item of a line is an option without a value.
fn is_open_option(line: &str) -> bool {
    let item = line.trim();
    let is_item = is_yaml(line) || QUOTES.iter().any(|quote| item.ends_with(&format!("{quote},")));
    let word = item.trim_end_matches(',').split([' ', ',']).next_back().unwrap_or_default().trim_matches(QUOTES);
    is_item && word.starts_with("--") && !word.contains(['=', ':'])
}

/// True if the first item of a line is no option.
fn is_value(line: &str, is_yaml_list: bool) -> bool {
    let item = line.trim();
    let item = if is_yaml_list { item.strip_prefix("- ") } else { Some(item).filter(|item| item.starts_with(QUOTES)) };
    item.is_some_and(|item| !item.trim_start_matches(QUOTES).starts_with('-') && !item.contains(": "))
}

/// Returns a line without the commas and brackets of a list. Variables of Python in it become those of a shell:
/// `str(NODES)` is `$NODES`. Other lines stay as they are.
pub(super) fn plain(line: &str) -> String {
    let is_end = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let is_list = QUOTES.iter().any(|quote| {
        let comma = format!("{quote},");
        line.match_indices(&comma).any(|(at, _)| is_end(&line[at + comma.len()..]))
    });
    if !is_list {
        return line.to_owned();
    }
    let items = line.split_whitespace().map(|item| {
        let item = item.trim_matches(['[', ']']).trim_end_matches(',').trim_end_matches(']');
        let formatted = item.strip_prefix('f').filter(|rest| rest.starts_with(QUOTES));
        let variable = item.strip_prefix("str(").and_then(|rest| rest.strip_suffix(')'));
        match (formatted, variable) {
            (Some(text), _) => text.to_owned(),
            (None, Some(name)) if super::expand::is_name(name) => format!("${name}"),
            _ => item.to_owned(),
        }
    });
    items.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_follow_their_options() {
        let json = "[\n  \"--num-layers\",\n  \"32\",\n  \"--bf16\",\n  \"--x\"\n]\n";
        assert_eq!(joined(json), "[\n  \"--num-layers\", \"32\",\n  \"--bf16\",\n  \"--x\"\n]\n");
        let yaml = "args:\n- --num-layers\n- 32\n- --bf16\n- --lr=1\n- name: x\n";
        assert_eq!(joined(yaml), "args:\n- --num-layers 32\n- --bf16\n- --lr=1\n- name: x\n");
        for script in ["ARGS=\"--bf16 \\\n  --x 1\"\n", "- --bf16\n- key: value\n", "echo '--a',\nb\n"] {
            assert_eq!(joined(script), script);
        }
    }

    #[test]
    fn commas_and_brackets_of_lists_are_no_values() {
        for (line, plain_line) in [
            ("args = [\"--num-layers\", \"32\", '--bf16']", "args = \"--num-layers\" \"32\" '--bf16'"),
            ("\"--nnodes\", str(NODES),", "\"--nnodes\" $NODES"),
            ("\"--seq-length\", f\"{SEQ}\"]", "\"--seq-length\" \"{SEQ}\""),
            ("--blend a,b --list [1, 2]", "--blend a,b --list [1, 2]"),
        ] {
            assert_eq!(plain(line), plain_line);
        }
    }
}
