//! Layers of pipeline stages in the arguments of Megatron-LM.

use super::JobConfigError;
use super::keys::Keys;
use super::python_value::{Value, evaluate};
use super::settings::Settings;
use planner::cost::partition::layers_with_ends;

const LAYOUT: &str = "pipeline-model-parallel-layout";
/// Maximum length of an expanded layout.
const MAX_LETTERS: usize = 4096;
const PER_CHUNK: &str = "num-layers-per-virtual-pipeline-stage";
const FIRST: &str = "decoder-first-pipeline-num-layers";
const LAST: &str = "decoder-last-pipeline-num-layers";

/// Reads the model chunks and the layers of each stage. `layers` is the number of layers of the model, if the file states
/// it.
pub(super) fn read(keys: &mut Keys, settings: &mut Settings, layers: Option<u32>) -> Result<(), JobConfigError> {
    let stages = settings.pipeline.unwrap_or(1).max(1);
    let ends = Ends::read(keys)?;
    let per_chunk = keys.count(&[PER_CHUNK], "layers of a model chunk")?;
    settings.chunks = keys.count(&["num-virtual-stages-per-pipeline-rank"], "model chunks of a rank")?;
    if let (Some(per_chunk), None, Some(layers)) = (per_chunk, settings.chunks, layers) {
        let of_rank = ends.layers_of_rank(layers, stages)?;
        if !of_rank.is_multiple_of(per_chunk) {
            let detail = format!("{of_rank} layers of a rank are no multiple of {per_chunk} layers of a chunk");
            return refuse(PER_CHUNK, detail);
        }
        settings.chunks = Some((of_rank / per_chunk).max(1));
    }
    let layout = keys.text(&[LAYOUT], "layers of the stages");
    if stages > 1
        && let Some(layout) = layout
    {
        return stated(keys, settings, &layout, (stages, layers));
    }
    match layers {
        Some(layers) if stages > 1 && ends != Ends::Equal => {
            settings.layers_per_stage = ends.layers_of_stages(layers, stages, settings.chunks.unwrap_or(1))?;
        }
        _ => {
            settings.has_uneven_stages |= ends != Ends::Equal;
            settings.stage_ends = Some(ends).filter(|&ends| ends != Ends::Equal);
        }
    }
    let method = keys.text(&["pp-partition-method"], "layers of the stages").unwrap_or_default();
    match (method.trim(), layers) {
        ("" | "uniform" | "parameters" | "type:transformer", _) => {}
        ("type:transformer|embedding", Some(layers))
            if settings.chunks.unwrap_or(1) == 1 && layers.saturating_add(2).is_multiple_of(stages) =>
        {
            // The input and the output embedding count as layers.
            settings.layers_per_stage = layers_with_ends(layers, stages, (1, 1)).unwrap_or_default();
        }
        _ => {
            settings.has_uneven_stages = true;
            keys.not_modelled(
                "The layers of each stage are those with the most equal times. --pp-partition-method is not applied.",
            );
        }
    }
    Ok(())
}

/// Layers of the first and last pipeline rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ends {
    Equal,
    /// Stated numbers of layers; the ranks between have equal numbers.
    Stated {
        first: Option<u32>,
        last: Option<u32>,
    },
    /// The embedding or the output head counts as a layer.
    Counted {
        input: u32,
        output: u32,
    },
}

impl Ends {
    fn read(keys: &mut Keys) -> Result<Self, JobConfigError> {
        // Megatron-Core has other names in its configuration of a transformer.
        let first = keys.count(&[FIRST, "num-layers-in-first-pipeline-stage"], "layers of the stages")?;
        let last = keys.count(&[LAST, "num-layers-in-last-pipeline-stage"], "layers of the stages")?;
        let mut counts = |name| u32::from(keys.flag(&[name], "layers of the stages").unwrap_or(false));
        let input = counts("account-for-embedding-in-pipeline-split");
        let output = counts("account-for-loss-in-pipeline-split");
        Ok(match (first, last, input + output) {
            (None, None, 0) => Self::Equal,
            (None, None, _) => Self::Counted { input, output },
            _ => Self::Stated { first, last },
        })
    }

    /// Layers of a rank in the middle of the pipeline; the embedding and the output head count if they are counted.
    fn layers_of_rank(self, layers: u32, ranks: u32) -> Result<u32, JobConfigError> {
        let (rest, others, key) = match self {
            Self::Equal => (Some(layers), ranks, "num-layers"),
            Self::Counted { input, output } => {
                (layers.checked_add(input + output), ranks, "account-for-embedding-in-pipeline-split")
            }
            Self::Stated { first, last } => {
                let stated = first.unwrap_or(0).checked_add(last.unwrap_or(0));
                let others = ranks.saturating_sub(u32::from(first.is_some()) + u32::from(last.is_some()));
                (
                    stated.and_then(|stated| layers.checked_sub(stated)),
                    others,
                    if first.is_some() { FIRST } else { LAST },
                )
            }
        };
        match rest {
            Some(0) if others == 0 => Ok(0),
            Some(rest) if others > 0 && rest.is_multiple_of(others) => Ok(rest / others),
            _ => refuse(key, format!("the {layers} layers cannot be split equally over {ranks} pipeline ranks")),
        }
    }

    /// Layers of each stage, in the order of the forward pass. A stage with the embedding or the output head alone has none.
    pub(super) fn layers_of_stages(self, layers: u32, ranks: u32, chunks: u32) -> Result<Vec<u32>, JobConfigError> {
        let middle = self.layers_of_rank(layers, ranks)?;
        let of_rank = |rank: u32| match self {
            Self::Stated { first: Some(first), .. } if rank == 0 => first,
            Self::Stated { last: Some(last), .. } if rank + 1 == ranks => last,
            _ => middle,
        };
        let (input, output) = if let Self::Counted { input, output } = self { (input, output) } else { (0, 0) };
        let mut stages = Vec::new();
        for chunk in 0..chunks {
            for rank in 0..ranks {
                let of_rank = of_rank(rank);
                let without = if (chunk, rank) == (0, 0) { input } else { 0 }
                    + if (chunk + 1, rank + 1) == (chunks, ranks) { output } else { 0 };
                match (of_rank / chunks).checked_sub(without) {
                    Some(count) if of_rank.is_multiple_of(chunks) && (count > 0 || without > 0) => stages.push(count),
                    _ => return self.refuse_split(of_rank, rank, chunks),
                }
            }
        }
        Ok(stages)
    }

    /// Option that states the layers of the ends.
    const fn key(self) -> &'static str {
        match self {
            Self::Counted { input: 0, .. } => "account-for-loss-in-pipeline-split",
            Self::Counted { .. } => "account-for-embedding-in-pipeline-split",
            Self::Stated { first: None, .. } => LAST,
            Self::Stated { .. } | Self::Equal => FIRST,
        }
    }

    fn refuse_split<T>(self, of_rank: u32, rank: u32, chunks: u32) -> Result<T, JobConfigError> {
        let (key, counted) = match self {
            Self::Counted { .. } => (self.key(), ", with the embedding and the output head,"),
            Self::Stated { .. } | Self::Equal => (if rank == 0 { FIRST } else { LAST }, ""),
        };
        refuse(key, format!("{of_rank} layers of rank {rank}{counted} cannot be split into {chunks} chunks"))
    }
}

fn refuse<T>(key: &str, detail: String) -> Result<T, JobConfigError> {
    Err(JobConfigError::Value { key: key.to_owned(), detail })
}

/// Reads a layout such as `Et*2|(tt|)*5t|tmL`.
fn stated(
    keys: &mut Keys,
    settings: &mut Settings,
    text: &str,
    (stages, layers): (u32, Option<u32>),
) -> Result<(), JobConfigError> {
    let Some(letters) = expand(text).or_else(|| of_list(text)) else {
        settings.has_uneven_stages = true;
        keys.not_modelled(
            "The layout of the pipeline has an unknown form and is not read. Its model chunks are left out.",
        );
        return Ok(());
    };
    let parts: Vec<&str> = letters.split('|').collect();
    let counts: Vec<u32> = parts.iter().map(|part| part.matches('t').count() as u32).collect();
    if !parts.len().is_multiple_of(stages as usize) {
        let detail = format!("{} stages of the layout are no multiple of {stages} pipeline ranks", parts.len());
        return refuse(LAYOUT, detail);
    }
    let total: u32 = counts.iter().sum();
    if let Some(layers) = layers.filter(|&layers| layers != total) {
        return refuse(LAYOUT, format!("the layout has {total} layers, the model {layers}"));
    }
    if parts.iter().any(|part| part.contains('m') && !part.contains('L')) {
        keys.not_modelled("The layers of multi-token prediction are in the stage of the output head.");
    }
    settings.chunks = Some(parts.len() as u32 / stages);
    if counts.iter().any(|&count| count != counts[0]) {
        settings.layers_per_stage = counts;
    }
    Ok(())
}

/// Returns the letters of a layout that is a list of lists, such as `[["embedding", "decoder"], ["decoder", "loss"]]`.
fn of_list(text: &str) -> Option<String> {
    // Unquoted words, as in YAML, are texts too.
    let Value::List(stages) = evaluate(text, &|word| Some(Value::Text(word.to_owned())))? else { return None };
    let letter = |part: &Value| match part {
        Value::Text(name) => match name.as_str() {
            "embedding" => Some('E'),
            "decoder" | "transformer" => Some('t'),
            "mtp" => Some('m'),
            "loss" | "output_layer" => Some('L'),
            _ => None,
        },
        Value::Number(_) | Value::List(_) => None,
    };
    let stage = |stage: &Value| match stage {
        Value::List(parts) => parts.iter().map(letter).collect::<Option<String>>(),
        Value::Text(_) | Value::Number(_) => None,
    };
    let letters = stages.iter().map(stage).collect::<Option<Vec<_>>>()?.join("|");
    letters.contains('t').then_some(letters)
}

/// Returns the letters of a layout without its repetitions: `t*2` is `tt`, `(t|)*2` is `t|t|`. `E` is the embedding, `t` a
/// layer, `m` a layer of multi-token prediction, `L` the output head.
fn expand(text: &str) -> Option<String> {
    let text: Vec<char> = text.chars().filter(|letter| !letter.is_whitespace() && *letter != ',').collect();
    unroll(&text).filter(|letters| letters.contains('t'))
}

/// Returns the letters of a part of a layout. A unit in brackets has no brackets inside.
fn unroll(text: &[char]) -> Option<String> {
    let (mut letters, mut at) = (String::new(), 0);
    while at < text.len() {
        let unit: String = if text[at] == '(' {
            let close = at + text[at..].iter().position(|letter| *letter == ')')?;
            let inner = &text[at + 1..close];
            at = close + 1;
            if inner.contains(&'(') { None } else { unroll(inner) }?
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
    Some(letters)
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
            ("Et|(t*2|)*2tmL", "Et|tt|tt|tmL"),
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
        assert_eq!((of.chunks, of.layers_per_stage), (Some(2), vec![2, 2, 2, 2, 2, 2, 1, 1]));
        let (of, _) = settings("--pipeline-model-parallel-layout Et|(t|)*2tL", 4).unwrap();
        assert_eq!((of.chunks, of.layers_per_stage), (Some(1), vec![]), "even stages");
        let (of, _) = settings("--pipeline-model-parallel-layout Et|t|t|tm|tm|t|t|tL", 8).unwrap();
        assert_eq!((of.chunks, of.layers_per_stage), (Some(2), vec![]));
        let (of, _) = settings("--pipeline-model-parallel-layout E|t*4|t*4|L", 8).unwrap();
        assert_eq!((of.layers_per_stage, of.has_uneven_stages), (vec![0, 4, 4, 0], false), "stages without a layer");
        let (of, _) = settings("--pipeline-model-parallel-layout Et*3|(tt|)*5m|L", 13).unwrap();
        assert_eq!((of.chunks, of.layers_per_stage), (Some(2), vec![3, 2, 2, 2, 2, 2, 0, 0]));
        let (of, _) = settings("--pipeline-model-parallel-layout E|t|t|L", 2).unwrap();
        assert_eq!(of.layers_per_stage, [0, 1, 1, 0], "more stages than layers");
        let detail = |text: &str, layers| settings(text, layers).unwrap_err().to_string();
        assert_eq!(
            detail("--pipeline-model-parallel-layout Et|t|tL", 3),
            "pipeline-model-parallel-layout: 3 stages of the layout are no multiple of 4 pipeline ranks"
        );
        assert_eq!(
            detail("--pipeline-model-parallel-layout Et|t|t|tL", 5),
            "pipeline-model-parallel-layout: the layout has 4 layers, the model 5"
        );
    }

    #[test]
    fn ends_state_layers() {
        let stages = |text: &str, layers| settings(text, layers).map(|(of, _)| (of.chunks, of.layers_per_stage));
        let first = "--decoder-first-pipeline-num-layers";
        let last = "--decoder-last-pipeline-num-layers";
        assert_eq!(stages(&format!("{first} 3"), 15).unwrap(), (None, vec![3, 4, 4, 4]));
        assert_eq!(stages(&format!("{first} 7 {last} 6"), 29).unwrap(), (None, vec![7, 8, 8, 6]));
        let two = "--num-layers-per-virtual-pipeline-stage 4";
        let expected = vec![3, 4, 4, 2, 3, 4, 4, 2];
        assert_eq!(stages(&format!("{first} 6 {last} 4 {two}"), 26).unwrap(), (Some(2), expected));
        let both = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split";
        assert_eq!(stages(both, 30).unwrap(), (None, vec![7, 8, 8, 7]));
        let expected = vec![3, 4, 4, 4, 4, 4, 4, 3];
        assert_eq!(stages(&format!("{both} {two}"), 30).unwrap(), (Some(2), expected));
        assert_eq!(stages("--pp-partition-method type:transformer|embedding", 30).unwrap(), (None, vec![7, 8, 8, 7]));
        let detail = |text: &str, layers| settings(text, layers).unwrap_err().to_string();
        assert_eq!(
            detail(&format!("{first} 4"), 15),
            "decoder-first-pipeline-num-layers: the 15 layers cannot be split equally over 4 pipeline ranks"
        );
        assert_eq!(
            detail(&format!("{first} 5 {two}"), 29),
            "decoder-first-pipeline-num-layers: 5 layers of rank 0 cannot be split into 2 chunks"
        );
        assert_eq!(
            stages(&format!("{both} --num-virtual-stages-per-pipeline-rank 2"), 14).unwrap().1,
            [1, 2, 2, 2, 2, 2, 2, 1]
        );
        // The embedding and the output head have stages of their own.
        assert_eq!(stages("--account-for-embedding-in-pipeline-split", 3).unwrap().1, [0, 1, 1, 1]);
        assert_eq!(
            stages(&format!("{both} --num-virtual-stages-per-pipeline-rank 4"), 14).unwrap().1,
            [&[0][..], &[1; 14], &[0]].concat()
        );
        assert_eq!(stages("--pp-partition-method type:transformer|embedding", 2).unwrap(), (None, vec![0, 1, 1, 0]));
        assert_eq!(
            detail(&format!("{both} --num-virtual-stages-per-pipeline-rank 3"), 14),
            "account-for-embedding-in-pipeline-split: 4 layers of rank 0, with the embedding and the output head, cannot be \
             split into 3 chunks"
        );
        assert_eq!(
            detail("--num-layers-per-virtual-pipeline-stage 3", 32),
            "num-layers-per-virtual-pipeline-stage: 8 layers of a rank are no multiple of 3 layers of a chunk"
        );
    }
}
