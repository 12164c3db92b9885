//! Flags of `planscope measure`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `planscope measure`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = super::help::MEASURE)]
pub struct MeasureArguments {
    /// Print the Python program and measure nothing.
    #[arg(long, exclusive = true)]
    pub script: bool,
    /// Python interpreter with PyTorch.
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    pub python: PathBuf,
    /// Time for all sections together, in minutes.
    #[arg(long, default_value_t = 10.0, value_parser = minutes)]
    pub minutes: f64,
    /// Output file for the profile.
    #[arg(long, value_name = "FILE", default_value = "profile.json")]
    pub out: PathBuf,
    /// Device type: cuda, or cpu for a tiny grid that tests the installation.
    #[arg(long, default_value = "cuda", value_parser = ["cuda", "cpu"])]
    pub device: String,
    /// Devices of this node that take part; collectives need two or more.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub devices: u32,
    /// Sections to measure, for example products attention. Default: all.
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub sections: Vec<String>,
    /// Running server that receives the profile, for example http://127.0.0.1:8080.
    #[arg(long, value_name = "URL")]
    pub upload: Option<String>,
    /// Token of that server.
    #[arg(long, env = "PLANSCOPE_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
    /// File that contains the token.
    #[command(flatten)]
    pub token_file: super::TokenFile,
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number.is_finite() && number > 0.0 { Ok(number) } else { Err("not a positive number".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::{Cli, Command};
    use super::*;

    fn parse(line: &str) -> Result<MeasureArguments, String> {
        match Cli::try_parse_from(line.split(' ')).map_err(|error| error.to_string())?.command {
            Command::Measure(arguments) => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sections_are_a_list_and_minutes_are_positive() {
        let all = parse("planscope measure").unwrap();
        assert_eq!((all.sections.len(), all.minutes, all.devices, all.device.as_str()), (0, 10.0, 1, "cuda"));
        let some = parse("planscope measure --minutes 0.5 --sections products attention --device cpu").unwrap();
        assert_eq!((some.sections, some.minutes), (vec!["products".to_owned(), "attention".to_owned()], 0.5));
        for wrong in ["--minutes 0", "--minutes -1", "--minutes inf", "--minutes ten", "--device tpu", "--devices 0"] {
            assert!(parse(&format!("planscope measure {wrong}")).is_err(), "{wrong}");
        }
        assert!(parse("planscope measure --script --minutes 3").is_err());
    }
}
