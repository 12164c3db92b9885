//! Input of the check page, which survives a reload of the tab. Lines with credentials are not saved.

use api::check::NamedText;
use serde::{Deserialize, Serialize};

use crate::storage;

/// Files and fields of the page.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct SavedInput {
    /// The files; the text area shows the first one.
    pub(super) files: Vec<NamedText>,
    pub(super) devices: String,
    pub(super) device: String,
}

impl SavedInput {
    /// Returns the input of this tab.
    pub(super) fn read() -> Option<Self> {
        serde_json::from_str(&storage::read_session(storage::CHECK)?).ok()
    }

    /// Saves the input for this tab.
    pub(super) fn write(mut self) {
        for file in &mut self.files {
            file.text = without_credentials(&file.text);
        }
        if let Ok(json) = serde_json::to_string(&self) {
            storage::write_session(storage::CHECK, &json);
        }
    }
}

/// Ends of the names of settings with credentials.
const NAMES: [&str; 9] =
    ["token", "secret", "password", "passwd", "api_key", "apikey", "access_key", "secret_key", "credentials"];
/// Beginnings of credentials.
const BEGINNINGS: [&str; 7] = ["hf_", "sk-", "ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-"];
/// Length from which a word of letters and digits can be a key.
const KEY_CHARS: usize = 32;

/// Returns the text with an empty line in place of each line that may have a credential.
fn without_credentials(text: &str) -> String {
    let lines = text.split('\n').map(|line| if has_credential(line) { "" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

fn has_credential(line: &str) -> bool {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_secret = |word: &str| {
        let name = word.to_ascii_lowercase().replace('-', "_");
        NAMES.iter().any(|end| name.ends_with(end))
            || BEGINNINGS.iter().any(|beginning| word.starts_with(beginning) && word.len() > beginning.len() + 12)
            || is_key(word)
    };
    let has_user = line.split_once("://").is_some_and(|(_, address)| address.contains('@'));
    has_user || line.split(|letter| !is_word(letter)).any(is_secret)
}

/// True for a long word of letters and digits.
fn is_key(word: &str) -> bool {
    word.len() >= KEY_CHARS
        && word.chars().all(|letter| letter.is_ascii_alphanumeric())
        && word.contains(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_credentials_are_not_saved() {
        for line in [
            "export HF_TOKEN=abc",
            "--wandb-api-key 123",
            "password: x",
            "secret_key = \"hunter2\"",
            "wandb login 0123456789abcdef0123456789abcdef01234567",
            "huggingface-cli login hf_abcdefghijklmnopqrst",
            "git clone https://user:pass@example.org/x",
        ] {
            assert!(has_credential(line), "{line}");
        }
        for line in [
            "--tokenizer-type Llama3Tokenizer",
            "max_tokens_per_gpu: 8192",
            "pad_token_id: 0",
            "--tensor-model-parallel-size 8",
            "model_name_or_path: meta-llama/Meta-Llama-3-8B",
            "key: value",
        ] {
            assert!(!has_credential(line), "{line}");
        }
        assert_eq!(without_credentials("a\nexport HF_TOKEN=x\nb"), "a\n\nb");
    }
}
