//! Arguments of two frameworks in one script.

use super::arguments::{lines, without_comment};
use super::keys::Keys;
use super::{JobConfigError, megatron, torchtitan, transformers};

/// A framework and one of its arguments in a script, with the dashes.
type Found = (&'static str, String);

/// Refuses one command with arguments of two frameworks. Those of two commands are reported; `keys` are read as those
/// of the first framework in the order of this function.
pub(super) fn check(keys: &mut Keys, text: &str) -> Result<(), JobConfigError> {
    let megatron = megatron::is_megatron(keys).then(|| megatron::argument(keys)).flatten();
    let found: Vec<Found> = [
        megatron.map(|name| ("Megatron-LM", format!("--{name}"))),
        torchtitan::argument(keys).map(|name| ("torchtitan", format!("--{}", name.replace('-', "_")))),
        transformers::argument(keys).map(|name| ("Hugging Face", format!("--{}", name.replace('-', "_")))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let [first, second, ..] = found.as_slice() else { return Ok(()) };
    let has = |line: &str, (_, argument): &Found| {
        let plain = |text: &str| text.replace('-', "_").to_lowercase();
        let argument = plain(argument);
        let words = line.split_whitespace().map(|word| plain(word.trim_matches(['"', '\'', '(', ')'])));
        words.into_iter().any(|word| word.split('=').next() == Some(argument.as_str()))
    };
    if lines(text).iter().map(|line| without_comment(line)).any(|line| has(line, first) && has(line, second)) {
        let (first, second) = (first.clone(), second.clone());
        return Err(JobConfigError::MixedCommand { first, second });
    }
    keys.assume(format!(
        "The script has arguments of {} ({}) and of {} ({}). Those of {} are read.",
        first.0, first.1, second.0, second.1, first.0
    ));
    Ok(())
}
