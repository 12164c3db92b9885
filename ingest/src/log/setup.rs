//! Size of a job, from what training programs print before the first step.

/// Longest gap between a name and its value, in bytes: Megatron-LM fills it with dots.
const MAX_GAP: usize = 80;
/// Names of the number of processes.
const DEVICES: [&str; 3] = ["world size", "world_size", "num_processes"];
/// Names of the tokens of a sequence.
const LENGTHS: [&str; 5] = ["seq_length", "seq-length", "sequence length", "seq_len", "max_seq_len"];
/// Names of the transformer layers.
const LAYERS: [&str; 4] = ["num_layers", "num-layers", "n_layers", "num_hidden_layers"];
/// Names of the width of the residual stream.
const HIDDEN: [&str; 3] = ["hidden_size", "hidden-size", "hidden size"];
/// In front of the degrees of torchtitan's device mesh.
const MESH: &str = "device mesh with";
/// Lightning: "Starting with 64 processes".
const STARTING: &str = "starting with ";

/// Size of a job, as far as its log states it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobSetup {
    /// Processes, one for each device.
    pub devices: Option<u32>,
    /// Tokens of a sequence.
    pub sequence_length: Option<u32>,
    /// Transformer layers of the model.
    pub layers: Option<u32>,
    /// Width of the residual stream.
    pub hidden_size: Option<u32>,
}

/// Reads the size of a job from the first bytes of its log. Of several values of one name the first counts.
pub fn job_setup(head: &[u8]) -> JobSetup {
    let mut setup = JobSetup::default();
    for line in String::from_utf8_lossy(head).lines() {
        let line = line.to_ascii_lowercase();
        setup.devices =
            setup.devices.or_else(|| named(&line, &DEVICES)).or_else(|| mesh(&line)).or_else(|| starting(&line));
        setup.sequence_length = setup.sequence_length.or_else(|| named(&line, &LENGTHS));
        setup.layers = setup.layers.or_else(|| named(&line, &LAYERS));
        setup.hidden_size = setup.hidden_size.or_else(|| named(&line, &HIDDEN));
    }
    setup
}

/// The whole number behind one of the names: "using world size: 64,", "seq_length ........ 2048", "world_size=8".
fn named(line: &str, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| {
        line.match_indices(name).find_map(|(at, _)| {
            let before = line[..at].chars().next_back();
            // "data_parallel_world_size" and "decoder_seq_length" are other quantities; "--seq-length" is an argument.
            let is_own = before.is_none_or(|c| !c.is_alphanumeric() && c != '_');
            is_own.then(|| number(&line[at + name.len()..])).flatten()
        })
    })
}

/// A number behind blanks, dots and signs only.
fn number(text: &str) -> Option<u32> {
    let gap = text.find(|c: char| !matches!(c, ' ' | '.' | ':' | '=' | '"' | '\'' | '(' | '\t'))?;
    let digits = text[gap..].find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len() - gap);
    let value: u32 = text[gap..gap + digits].parse().ok()?;
    // "8.5" is no count, and neither is "8k".
    let mut behind = text[gap + digits..].chars();
    let is_whole = match (behind.next(), behind.next()) {
        (Some('.'), Some(next)) => !next.is_ascii_digit(),
        (next, _) => next.is_none_or(|c| !c.is_alphanumeric() && c != '_'),
    };
    (gap > 0 && gap <= MAX_GAP && value > 0 && is_whole).then_some(value)
}

/// Product of the degrees in `Building 2-D device mesh with ['dp', 'tp'], [4, 2]`.
fn mesh(line: &str) -> Option<u32> {
    let (_, behind) = line.split_once(MESH)?;
    let degrees = behind.rsplit_once('[')?.1.split_once(']')?.0;
    degrees
        .split(',')
        .map(|degree| degree.trim().parse::<u32>().ok())
        .try_fold(1_u32, |product, degree| product.checked_mul(degree?).filter(|product| *product > 0))
}

/// The count in "All distributed processes registered. Starting with 64 processes".
fn starting(line: &str) -> Option<u32> {
    let (_, behind) = line.split_once(STARTING)?;
    let (count, rest) = behind.split_once(' ')?;
    rest.starts_with("processes").then(|| count.parse().ok()).flatten().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<u32>, Option<u32>) {
        let JobSetup { devices, sequence_length, .. } = job_setup(text.as_bytes());
        (devices, sequence_length)
    }

    #[test]
    fn trainers_print_their_size_before_the_first_step() {
        let megatron = "using world size: 64, data-parallel-size: 4, tensor-model-parallel size: 4\n\
                        ------------------------ arguments ------------------------\n  \
                        decoder_seq_length .............................. None\n  \
                        seq_length ...................................... 2048\n  \
                        world_size ...................................... 64\n";
        assert_eq!(read(megatron), (Some(64), Some(2048)));
        let torchtitan = "[rank0]:[titan] 2025-01-01 - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]\n\
                          [rank0]:[titan] Training starts at step 1, with local batch size 1, sequence length 8192, total steps 1000\n";
        assert_eq!(read(torchtitan), (Some(8), Some(8192)));
        assert_eq!(read("All distributed processes registered. Starting with 16 processes\n"), (Some(16), None));
        assert_eq!(read("{\"world_size\": 32, \"seq_len\": 4096}"), (Some(32), Some(4096)));
        assert_eq!(read("python pretrain.py --seq-length 1024 --world-size=4\n"), (None, Some(1024)));
    }

    #[test]
    fn the_size_of_the_model_is_among_the_arguments() {
        let text = "  encoder_num_layers .............. 3\n  num_layers ...................... 64\n  \
                    ffn_hidden_size ................. 46400\n  hidden_size ..................... 11600\n";
        let setup = job_setup(text.as_bytes());
        assert_eq!((setup.layers, setup.hidden_size), (Some(64), Some(11_600)));
        assert_eq!(job_setup(b"--num-layers 24 --hidden-size 1024").layers, Some(24));
    }

    #[test]
    fn other_quantities_and_broken_values_state_nothing() {
        for line in [
            "data_parallel_world_size ... 4",
            "world size unknown, 8 nodes",
            "world_size=0",
            "seq_length=4k",
            "seq_length=8.5",
            "world_size=99999999999999999999",
            "device mesh with ['dp'], []",
            "device mesh with ['dp'], [0]",
            "device mesh with ['dp', 'tp'], [65536, 65536]",
            "starting with many processes",
            "world_size",
            "",
        ] {
            assert_eq!(read(line), (None, None), "{line}");
        }
        // Any bytes are read.
        assert_eq!(job_setup(&[0xff, 0xfe, b'\n', 0, 1, 2]), JobSetup::default());
    }

    #[test]
    fn the_first_value_counts() {
        assert_eq!(read("world size: 8\nworld size: 16\n"), (Some(8), None));
    }
}
