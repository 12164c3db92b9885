//! Layers of pipeline stages in the arguments of Megatron-LM.

use super::JobConfigError;
use super::keys::Keys;
use super::settings::Settings;

const LAYOUT: &str = "pipeline-model-parallel-layout";
/// Maximum length of an expanded layout.
const MAX_LETTERS: usize = 4096;
/// Maximum number of stages whose layers a report lists.
const MAX_LISTED: usize = 32;

/// Reads the model chunks and whether the file states uneven stages. `layers` is the number of layers of the model, if
/// the file states it.
pub(super) fn read(keys: &mut Keys, settings: &mut Settings, layers: Option<u32>) -> Result<(), JobConfigError> {
    let stages = settings.pipeline.unwrap_or(1).max(1);
    let stated = match keys.text(&[LAYOUT], "layers of the stages") {
        Some(text) => layout(keys, settings, &text, (stages, layers))?,
        None => None,
    };
    let mut is_uneven = stated.as_ref().is_some_and(|counts| counts.iter().any(|count| *count != counts[0]));
    for end in ["decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers"] {
        is_uneven |= keys.count(&[end], "layers of the stages")?.is_some();
    }
    for counted in ["account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split"] {
        is_uneven |= keys.flag(&[counted], "layers of the stages").unwrap_or(false);
    }
    if is_uneven {
        let listed = stated.filter(|counts| counts.len() <= MAX_LISTED).map_or_else(String::new, |counts| {
            format!(" ({})", counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        keys.not_modelled(format!(
            "The layers of each stage are those with the most equal times, embedding and output head included. The \
             stated numbers of layers{listed} are not applied."
        ));
    }
    settings.has_uneven_stages |= is_uneven;
    Ok(())
}

/// Reads a layout such as `Et*2|(tt|)*5t|tmL` and returns the layers of each stage; `None` if it has another form.
fn layout(
    keys: &mut Keys,
    settings: &mut Settings,
    text: &str,
    (stages, layers): (u32, Option<u32>),
) -> Result<Option<Vec<u32>>, JobConfigError> {
    let Some(letters) = expand(text) else {
        settings.has_uneven_stages = true;
        keys.not_modelled("The layout of the pipeline is a list, which is not read. Its model chunks are left out.");
        return Ok(None);
    };
    let parts: Vec<&str> = letters.split('|').collect();
    let counts: Vec<u32> = parts.iter().map(|part| part.matches('t').count() as u32).collect();
    let refuse = |detail: String| Err(JobConfigError::Value { key: LAYOUT.to_owned(), detail });
    if !parts.len().is_multiple_of(stages as usize) {
        return refuse(format!("{} stages of the layout are no multiple of {stages} pipeline ranks", parts.len()));
    }
    let total: u32 = counts.iter().sum();
    if let Some(layers) = layers.filter(|&layers| layers != total) {
        return refuse(format!("the layout has {total} layers, the model {layers}"));
    }
    if parts.iter().any(|part| part.contains('m') && !part.contains('L')) {
        keys.not_modelled("The layers of multi-token prediction are in the stage of the output head.");
    }
    settings.chunks = Some(parts.len() as u32 / stages);
    Ok(Some(counts))
}

/// Returns the letters of a layout without its repetitions: `t*2` is `tt`, `(t|)*2` is `t|t|`. `E` is the embedding, `t` a
/// layer, `m` a layer of multi-token prediction, `L` the output head.
fn expand(text: &str) -> Option<String> {
    let text: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace() && *letter != ',').collect();
    let (mut letters, mut at) = (String::new(), 0);
    while at < text.len() {
        let unit: String = if text[at] == '(' {
            let close = at + text[at..].iter().position(|letter| *letter == ')')?;
            let unit = text[at + 1..close].iter().collect();
            at = close + 1;
            unit
        } else {
            at += 1;
            text[at - 1].to_string()
        };
        if !unit.chars().all(|letter| matches!(letter, 'E' | 't' | 'm' | 'L' | '|')) {
            return None;
        }
        let mut times = 1;
        if text.get(at) == Some(&'*') {
            let digits: String = text[at + 1..].iter().take_while(|letter| letter.is_ascii_digit()).collect();
            times = digits.parse::<usize>().ok()?;
            at += 1 + digits.len();
        }
        if letters.len() + unit.len().checked_mul(times)? > MAX_LETTERS {
            return None;
        }
        letters.push_str(&unit.repeat(times));
    }
    letters.contains('t').then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_expanded() {
        for (layout, letters) in [
            ("Et*2|(tt|)*5t|tmL", "Ett|tt|tt|tt|tt|tt|t|tmL"),
            ("Et|tL", "Et|tL"),
            ("(t|)*3t", "t|t|t|t"),
            ("E,t*2 | t L", "Ett|tL"),
            ("E|t|L", "E|t|L"),
        ] {
            assert_eq!(expand(layout).as_deref(), Some(letters), "{layout}");
        }
        for layout in ["", "E|L", "[['embedding'],['decoder']]", "(t", "t*", "t*99999999999999999999", "t*9999", "x"] {
            assert_eq!(expand(layout), None, "{layout}");
        }
    }

    fn settings(text: &str, layers: u32) -> Result<(Settings, Keys), JobConfigError> {
        let mut keys = crate::job_config::arguments::read(text)?;
        let mut settings = Settings { pipeline: Some(4), ..Settings::default() };
        read(&mut keys, &mut settings, Some(layers))?;
        Ok((settings, keys))
    }

    #[test]
    fn a_layout_states_chunks_and_layers() {
        let (of, _) = settings("--pipeline-model-parallel-layout Et*2|(tt|)*5t|tmL", 14).unwrap();
        assert_eq!((of.chunks, of.has_uneven_stages), (Some(2), true));
        let (of, _) = settings("--pipeline-model-parallel-layout Et|(t|)*2tL", 4).unwrap();
        assert_eq!((of.chunks, of.has_uneven_stages), (Some(1), false), "even stages");
        let (of, _) = settings("--pipeline-model-parallel-layout Et|t|t|tm|tm|t|t|tL", 8).unwrap();
        assert_eq!((of.chunks, of.has_uneven_stages), (Some(2), false));
        let detail = |text: &str, layers| settings(text, layers).unwrap_err().to_string();
        assert_eq!(
            detail("--pipeline-model-parallel-layout Et|t|tL", 3),
            "pipeline-model-parallel-layout: 3 stages of the layout are no multiple of 4 pipeline ranks"
        );
        assert_eq!(
            detail("--pipeline-model-parallel-layout Et|t|t|tL", 5),
            "pipeline-model-parallel-layout: the layout has 4 layers, the model 5"
        );
        let (of, _) = settings("--decoder-first-pipeline-num-layers 3", 15).unwrap();
        assert!(of.has_uneven_stages);
    }
}
