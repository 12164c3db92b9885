//! Extracts command-line arguments from a script, a list with one argument per line, or a test's
//! YAML.
//!
//! Quotes count as blanks, so `ARGS="--num-layers 24"` and `ARGS=(--num-layers 24)` are equivalent.
//! Variables are replaced by the values assigned in the file, and `${NAME:-default}` by its
//! default. Conditions whose operands the file states are decided. If other branches assign several values,
//! the last value is used. For a loop, the first value is used. Both cases are reported. Nothing is
//! executed.

mod branches;
mod conditions;
mod expand;
mod lists;
mod shell;

use super::keys::Keys;
use super::{JobConfigError, document, launcher, megatron};
use branches::{Branches, expand_conditions, parts};
use expand::{Variables, arithmetic, defaults, replace};
use shell::{Statement, parse_statements};

/// Maximum number of loop values shown in a report.
const MAX_LISTED_VALUES: usize = 8;

/// Returns arguments without leading dashes, with underscores replaced by dashes. Environment
/// variables have the prefix `$`, SLURM directives the prefix `#SBATCH`.
///
/// Arguments in a here-document are ignored unless the script has no model arguments outside it.
pub(super) fn read(text: &str) -> Result<Keys, JobConfigError> {
    let script = shell::without_here_documents(text);
    if script.left_out.is_empty() {
        return read_script(&script.text, text);
    }
    let mut keys = read_script(&script.text, text)?;
    if !megatron::is_megatron(&keys) {
        return read_script(text, text);
    }
    for line in script.left_out {
        keys.assume(format!("Line {line}: the arguments in the text of a here-document are not read."));
    }
    Ok(keys)
}

/// Reads the arguments of a script. `text` is the complete file, which may contain a DeepSpeed
/// configuration.
fn read_script(script: &str, text: &str) -> Result<Keys, JobConfigError> {
    let mut keys = Keys::default();
    let mut variables = Variables::new();
    let mut branches = Branches::default();
    for line in lines(&lists::joined(script)) {
        if let Some(directive) = line.trim_start().strip_prefix("#SBATCH") {
            // Converts short options to their long form: `-N 4` is `--nodes=4`.
            let directive = long_options(directive);
            read_arguments(without_comment(&directive), "#SBATCH ", &variables, &mut keys)?;
            variables.extend(launcher::slurm_variables(&keys));
            continue;
        }
        let expanded = expand_conditions(&compact_arithmetic(without_comment(&line)), &variables);
        for (separator, part) in parts(&expanded.line) {
            let Some((part, is_branch)) = branches.enter(separator, part, &variables) else { continue };
            keys.enter_branch(is_branch);
            read_part(part, &mut variables, &mut keys)?;
        }
        keys.enter_branch(true);
        for text in expanded.undecided {
            read_arguments(&text, "", &variables, &mut keys)?;
        }
        // The next line is in a branch only if a statement opened one.
        keys.enter_branch(false);
    }
    if let Some(block) = json_block(text) {
        // A block that is not valid JSON, for example an awk program, is not a DeepSpeed
        // configuration.
        if let Ok(configuration) = document::json(&replace_all(block, &variables)) {
            keys.adopt("deepspeed.", configuration)?;
        }
    }
    Ok(keys)
}

/// Reads the statements and the arguments of a part of a line that runs.
fn read_part(part: &str, variables: &mut Variables, keys: &mut Keys) -> Result<(), JobConfigError> {
    for statement in parse_statements(part) {
        run(statement, variables, keys)?;
    }
    for (name, value) in defaults(part) {
        if variables.get(&name).is_none_or(String::is_empty) {
            set(name, replace(&value, variables), variables, keys)?;
        }
    }
    if !is_message(part) {
        read_arguments(part, "", variables, keys)?;
        read_launcher(part, variables, keys)?;
    }
    Ok(())
}

/// Converts short SLURM options to their long form: `-N 4` and `-N4` are `--nodes=4`.
fn long_options(directive: &str) -> String {
    let mut long = directive.to_owned();
    for (short, name) in [("N", "nodes"), ("C", "constraint"), ("n", "ntasks"), ("G", "gpus"), ("p", "partition")] {
        let (spaced, joined) = (format!(" -{short} "), format!(" -{short}"));
        long = long.replace(&spaced, &format!(" --{name}="));
        if let Some(at) = long.find(&joined).filter(|at| long[at + joined.len()..].starts_with(char::is_alphanumeric)) {
            long.replace_range(at..at + joined.len(), &format!(" --{name}="));
        }
    }
    long
}

/// Adds the devices that a launcher states with short options: `mpirun -np 64`, `srun -N 4`.
fn read_launcher(line: &str, variables: &Variables, keys: &mut Keys) -> Result<(), JobConfigError> {
    let plain = line.replace(['"', '\''], " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_launcher =
        |word: &&str| matches!(word.rsplit('/').next(), Some("mpirun" | "mpiexec" | "srun" | "horovodrun"));
    let Some(start) = words.iter().position(is_launcher) else { return Ok(()) };
    let is_srun = words[start].ends_with("srun");
    let names =
        if is_srun { [("-N", "nnodes"), ("-n", "ntasks")] } else { [("-np", "world-size"), ("-n", "world-size")] };
    let mut at = start + 1;
    // Options end before the program. An option that is no pair `--name=value` may have a value.
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let next = words.get(at + 1).filter(|next| !next.starts_with('-'));
        let found = names.into_iter().find_map(|(option, name)| match word.strip_prefix(option)? {
            "" => next.map(|next| (name, *next)),
            joined => joined.starts_with(|letter: char| letter.is_ascii_digit()).then_some((name, joined)),
        });
        if let Some((name, value)) = found
            && !keys.has(name)
        {
            keys.push(name.to_owned(), replace(value, variables))?;
        }
        let is_pair = word.contains('=') || found.is_some_and(|(_, value)| word.ends_with(value) && word.len() > 2);
        at += if next.is_some() && !is_pair { 2 } else { 1 };
    }
    Ok(())
}

/// True if a line only prints text: `echo "--global-batch-size 4096 is too big"`.
fn is_message(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    matches!(first, "echo" | "printf") && !line.contains([';', '&', '|', '>', '`'])
}

/// Applies a statement to the variables.
fn run(statement: Statement, variables: &mut Variables, keys: &mut Keys) -> Result<(), JobConfigError> {
    match statement {
        Statement::Set { name, value, is_arithmetic } => {
            let expression = if is_arithmetic { format!("$(({value}))") } else { value };
            let value = replace(&expression, variables);
            set(name, value, variables, keys)
        }
        // The value depends on the number of executions, so uses of this variable are rejected.
        Statement::Change { name } => {
            variables.remove(&name);
            Ok(())
        }
        Statement::Loop { name, list } => {
            let list = replace(&list, variables);
            let values: Vec<&str> = list.split_whitespace().collect();
            let is_literal = |word: &&&str| !word.contains(['$', '{', '*', '`', '(']);
            let Some(first) = values.first().filter(is_literal) else {
                variables.remove(&name);
                return Ok(());
            };
            if values.len() > 1 {
                // Words may be secrets, numbers are not.
                let are_numbers = values.iter().all(|value| value.parse::<f64>().is_ok());
                let listed =
                    are_numbers.then(|| values.iter().take(MAX_LISTED_VALUES).copied().collect::<Vec<_>>().join(", "));
                let suffix = listed.map_or_else(String::new, |values_text| format!(": {values_text}"));
                keys.assume(format!(
                    "{name} takes {} values in a loop{suffix}. The first value is read.",
                    values.len()
                ));
            }
            variables.insert(name, (*first).to_owned());
            Ok(())
        }
    }
}

/// Sets a variable. Values that contain arguments are skipped, because the line itself is scanned
/// for them.
fn set(name: String, value: String, variables: &mut Variables, keys: &mut Keys) -> Result<(), JobConfigError> {
    // A default that an argument of the script replaces in a branch.
    let is_argument = keys.adds_to_branch() && is_script_argument(&value);
    if is_argument && variables.get(&name).is_some_and(|known| !known.contains('$')) {
        return Ok(());
    }
    if !value.contains("--") {
        keys.push(format!("${name}"), value.clone())?;
    }
    variables.insert(name, value);
    Ok(())
}

/// True for a value that the caller of a script states: `$1`, `${2}`, `$OPTARG`.
fn is_script_argument(value: &str) -> bool {
    let Some(name) = value.trim().trim_matches(['"', '\'']).strip_prefix('$') else { return false };
    let name = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    name == "OPTARG" || (!name.is_empty() && name.chars().all(|letter| letter.is_ascii_digit()))
}

/// Returns the lines from the last line `{` to the next line `}`.
fn json_block(text: &str) -> Option<&str> {
    let start = text.rfind("\n{").map(|start| start + 1)?;
    let end = text[start..].find("\n}")? + 2;
    Some(&text[start..start + end])
}

fn replace_all(text: &str, variables: &Variables) -> String {
    text.lines().map(|line| replace(line, variables)).collect::<Vec<_>>().join("\n")
}

/// Splits text into lines and joins lines that end with a backslash.
pub(super) fn lines(text: &str) -> Vec<String> {
    let mut joined = vec![String::new()];
    for line in text.lines() {
        let continued = line.trim_end().strip_suffix('\\');
        if let Some(last) = joined.last_mut() {
            last.push_str(continued.unwrap_or(line));
            last.push(' ');
        }
        if continued.is_none() {
            joined.push(String::new());
        }
    }
    joined
}

pub(super) fn without_comment(line: &str) -> &str {
    let start = line
        .char_indices()
        .find(|&(index, c)| c == '#' && line[..index].chars().next_back().is_none_or(char::is_whitespace));
    start.map_or(line, |(index, _)| &line[..index])
}

/// Returns the words of the commands in a script with the values of the variables that the script sets. `keys` are its
/// arguments.
pub(super) fn expanded_words(text: &str, keys: &Keys) -> Vec<String> {
    let variables: Variables = keys.below("$").map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let mut words = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        words.extend(compact_arithmetic(line).split_whitespace().map(|word| replace(word, &variables)));
    }
    words
}

/// Removes blanks inside `$(( 4 * 8 ))`, so that the expression is a single word.
fn compact_arithmetic(line: &str) -> String {
    let line = &with_expressions(line);
    let mut compact = String::with_capacity(line.len());
    let mut from = 0;
    while let Some((start, end)) = arithmetic(line, from) {
        compact.push_str(&line[from..start]);
        compact.extend(line[start..end].chars().filter(|c| !c.is_whitespace()));
        from = end;
    }
    compact.push_str(&line[from..]);
    compact
}

/// Replaces `$(expr 16 / $N)` by `$((16 / $N))`.
fn with_expressions(line: &str) -> String {
    const START: &str = "$(expr ";
    let mut plain = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(START) {
        let Some((expression, end)) = after.split_once(')').filter(|(expression, _)| !expression.contains('(')) else {
            break;
        };
        plain.push_str(before);
        plain.extend(["$((", &expression.replace('\\', ""), "))"]);
        rest = end;
    }
    plain.push_str(rest);
    plain
}

/// Adds all `--name value...` arguments in a line.
fn read_arguments(line: &str, prefix: &str, variables: &Variables, keys: &mut Keys) -> Result<(), JobConfigError> {
    let plain = lists::plain(line).replace(['"', '\''], " ").replace("=(", "= (");
    let mut terms = plain.split_whitespace().map(without_array_brackets).filter(|word| !word.is_empty()).peekable();
    while let Some(word) = terms.next() {
        let Some(argument) = word.strip_prefix("--").filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        else {
            continue;
        };
        let (name, first) = argument.split_once('=').map_or((argument, None), |(name, value)| (name, Some(value)));
        let mut value: Vec<&str> = first.into_iter().collect();
        while let Some(next) = terms.next_if(|next| !is_argument(next)) {
            // A variable with further options ends the value.
            if !(next.starts_with('$') && replace(next, variables).trim_start().starts_with("--")) {
                value.push(next);
            }
        }
        let name = name.trim_end_matches(':').replace('_', "-").to_lowercase();
        keys.push(format!("{prefix}{name}"), replace(&value.join(" "), variables))?;
    }
    Ok(())
}

/// Returns the words of a value, up to a redirection or an operator of the shell. Variables such as `$@` after a value
/// are no part of it.
pub(super) fn words(value: &str) -> String {
    let is_end = |word: &&str| !word.starts_with(['>', '<', '|', '&', ';', '`']) && !word.contains(">&");
    let words = value.split_whitespace().take_while(is_end).enumerate();
    let words = words.filter(|(index, word)| *index == 0 || !word.starts_with('$')).map(|(_, word)| word);
    words.collect::<Vec<_>>().join(" ").trim_end_matches([';', '`']).to_owned()
}

/// Returns the words of the commands, without comments and quotes, one list for each command. A command that a variable
/// contains (`LAUNCHER="accelerate launch"`) counts as a command.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let plain = |word: &str| shell::quoted_command(word).trim_matches(['"', '\'', '\\', '(', ')', '`']).to_owned();
    let split = |line: String| without_comment(&line).split_whitespace().map(plain).collect::<Vec<_>>();
    lines(text).into_iter().map(split).filter(|words| !words.is_empty()).collect()
}

/// Removes shell array brackets around a word. Brackets inside a value remain.
fn without_array_brackets(word: &str) -> &str {
    let opened = word.strip_prefix('(').filter(|rest| rest.is_empty() || rest.starts_with("--"));
    let word = opened.unwrap_or(word);
    if word.contains('(') { word } else { word.trim_end_matches(')') }
}

fn is_argument(word: &str) -> bool {
    word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        || matches!(word, "|" | "||" | "&&" | ";" | "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_in_every_dress() {
        for text in [
            "torchrun --nproc_per_node 8 pretrain.py --num-layers 24 --bf16 --lr 1e-4",
            "GPT_ARGS=\"\n  --num-layers 24 \\\n --bf16\n\"\ntorchrun --nproc_per_node=8 pretrain.py $GPT_ARGS",
            "ARGS=(--num-layers 24)\nMORE=(\n  --bf16 # a comment\n)\nexport N=8\ntorchrun --nproc_per_node $N x.py",
            "MODEL_ARGS:\n  --num-layers: 24\n  --bf16: true\n  --nproc-per-node: 8",
            "N=4\nx --num-layers $(expr 6 \\* 4) --bf16 --nproc-per-node $(expr $N + $N)",
            "L=${LAYERS:-24}\nG=4\nN=$(( G * 2 ))\nN=$(($G*2))\n--num-layers ${L} --bf16 --nproc-per-node $N",
        ] {
            let mut keys = read(text).unwrap();
            assert_eq!(keys.integer(&["num-layers"], "layers"), Ok(Some(24)), "{text}");
            assert_eq!(keys.flag(&["bf16"], "precision"), Some(true), "{text}");
            assert_eq!(keys.integer(&["nproc-per-node"], "devices"), Ok(Some(8)), "{text}");
        }
    }

    #[test]
    fn variables_with_options_are_no_value() {
        let keys = read("MORE=\"--bf16 --num-layers 2\"\nx --normalization RMSNorm $MORE --tp 2\n").unwrap();
        assert_eq!((keys.peek("normalization"), keys.peek("tp")), (Some("RMSNorm"), Some("2")));
    }

    #[test]
    fn variables_that_contain_themselves_end() {
        let mut keys = read("A=$B$B\nB=$A$A\nA=$B$B\n--num-layers $A").unwrap();
        assert!(keys.integer(&["num-layers"], "layers").is_err());
        assert!(read(&"A=$A$A\n".repeat(1000)).is_ok());
    }

    #[test]
    fn slurm_directives_are_read() {
        let script = "#SBATCH -N 4\n#SBATCH --gres=gpu:8 # 8 a node\nexport TP=2 PP=4\n--nnodes $SLURM_NNODES --tp $TP --gbs $(( 16 * PP ))";
        let mut keys = read(script).unwrap();
        let after_a_line = read(&format!("#!/bin/bash\nset -e\n{script} 2")).unwrap();
        assert!(!after_a_line.is_in_branch("#SBATCH nodes"));
        assert_eq!(keys.integer(&["#SBATCH nodes"], "nodes"), Ok(Some(4)));
        assert_eq!(keys.text(&["#SBATCH gres"], "devices"), Some("gpu:8".to_owned()));
        for (name, value) in [("nnodes", 4), ("tp", 2), ("gbs", 64)] {
            assert_eq!(keys.integer(&[name], "a setting"), Ok(Some(value)), "{name}");
        }
    }

    fn value(text: &str, name: &str) -> Option<String> {
        read(text).unwrap().peek(name).map(str::to_owned)
    }

    #[test]
    fn every_assignment_form_is_read() {
        for text in [
            "TP=4\nexport TP=8 PP=4",
            "TP=4; PP=2\ndeclare -i TP=4*2; readonly PP=4",
            "TP=4\n((TP = 8))\nlet PP=4",
            "TP=1; let \"TP = 8\" 'PP=4'\nlet PP=TP/2",
            ": ${TP:=8}\n: \"${PP:=4}\"",
            "WORLD=64\nTP=$((WORLD / ( 2 * 4 )))\nPP=$(( ${NONE:-2} * 2 ))",
            "declare -rx TP=8 PP=4\n[ $TP == 7 ]",
            "if true; then TP=8; PP=4; fi",
        ] {
            let script = format!("{text}\nx --num-layers 2 --tp $TP --pp $PP");
            assert_eq!(value(&script, "tp").as_deref(), Some("8"), "{text}");
            assert_eq!(value(&script, "pp").as_deref(), Some("4"), "{text}");
        }
        // The value is unknown after a modification.
        assert_eq!(value("TP=4\n((TP *= 2))\nx --tp $TP", "tp").as_deref(), Some("$TP"));
    }

    #[test]
    fn loops_and_branches_are_reported_with_their_values() {
        let said = |text: &str| read(text).unwrap().assumed().join(" ");
        assert_eq!(
            said("TP=4\nfor TP in 1 2 4; do\nx --tp $TP\ndone"),
            "TP takes 3 values in a loop: 1, 2, 4. The first value is read."
        );
        assert_eq!(value("TP=4\nfor TP in 1 2 4; do\nx --tp $TP\ndone", "tp").as_deref(), Some("1"));
        assert_eq!(value("TP=4\nfor TP in $(seq 8); do\nx --tp $TP\ndone", "tp").as_deref(), Some("$TP"));
        assert!(said("for KEY in hf_a hf_b; do\nx\ndone").starts_with("KEY takes 2 values in a loop. "));
        let branch = "PP=2\nif [ $A = 1 ]; then\n  PP=8\nfi\nx --pp $PP";
        assert_eq!(said(branch), "$PP is given twice, as 2 and as 8, in a branch (if, case). The last value counts.");
        let case = "case $1 in\n  small) GBS=256; TP=1 ;;\n  big) GBS=2048 ;;\nesac\nx --gbs $GBS";
        assert_eq!(
            said(case),
            "$GBS is given twice, as 256 and as 2048, in a branch (if, case). The last value counts."
        );
        assert_eq!(said("MBS=hf_secret\nMBS=hf_other"), "$MBS is given twice. The last value counts.");
    }

    #[test]
    fn printed_text_is_no_argument() {
        let keys = read("echo \"--gbs 4096 is too big\"\nx --gbs 64\necho go; x --tp 2").unwrap();
        assert_eq!((keys.peek("gbs"), keys.peek("tp")), (Some("64"), Some("2")));
        assert!(keys.assumed().is_empty());
    }

    /// A here-document usually becomes a file. For a shell command it is a script.
    #[test]
    fn here_documents_are_no_arguments() {
        let arguments = "--num-layers 2 --num-attention-heads 2";
        let text = format!("cat > notes <<'EOF'\n--recompute-granularity full\nEOF\nx {arguments}\n");
        let keys = read(&text).unwrap();
        assert!(!keys.has("recompute-granularity") && keys.has("num-layers"));
        assert_eq!(keys.assumed(), ["Line 1: the arguments in the text of a here-document are not read."]);
        for text in [format!("sbatch <<EOF\nx {arguments}\nEOF\n"), format!("cat > job.sh <<EOF\nx {arguments}\nEOF\n")]
        {
            assert!(read(&text).unwrap().has("num-layers"), "{text}");
        }
    }
}
