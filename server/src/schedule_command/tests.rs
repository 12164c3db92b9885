use clap::Parser;
use planner::schedule_comparison::Refusal;

use super::*;
use crate::config::{Cli, Command};

fn arguments(line: &str) -> anyhow::Result<ScheduleArguments> {
    let command_line = ["planscope", "schedule"].into_iter().chain(line.split(' '));
    match Cli::try_parse_from(command_line)?.command {
        Command::Schedule(arguments) => Ok(arguments),
        other => panic!("{other:?}"),
    }
}

fn answered(line: &str) -> anyhow::Result<ScheduleResponse> {
    let arguments = arguments(line)?;
    let line = |error: &FieldError| format!("{}: {}", asked::field_location(&error.pointer, &arguments), error.detail);
    let valid = valid_request(&arguments).map_err(|error| match error {
        RequestError::Fields(errors) => anyhow::anyhow!(errors.iter().map(line).collect::<Vec<_>>().join("; ")),
        RequestError::Other(error) => error,
    })?;
    let response = respond(&valid);
    let refusal = response.entries.iter().find_map(|entry| match &entry.outcome {
        EntryOutcome::Refused(Refusal { detail, .. }) => Some(refusal_line(&entry.name, entry.kind, detail)),
        EntryOutcome::Run(_) => None,
    });
    refusal.map_or(Ok(response), |refusal| Err(anyhow::anyhow!(refusal)))
}

/// (m + p - 1)(F + B) = 15 x 3.3, bubble (p - 1) / (m + p - 1). Rank 0 is active from start to end,
/// the last rank only during its work.
#[test]
fn a_uniform_1f1b_reports_its_closed_forms() {
    let response = answered("1f1b --ranks 4 --microbatches 12 --forward 1.1 --backward 2.2").unwrap();
    let (_, report) = generated(&response).next().unwrap();
    assert!((report.makespan - 49.5).abs() < 1e-9, "{}", report.makespan);
    assert!((report.bubble_of_makespan - 0.2).abs() < 1e-9);
    assert_eq!(report.peak_activations, [4.0, 3.0, 2.0, 1.0]);
    assert!((report.stage_spans[3] - 39.6).abs() < 1e-9);
    assert!(report.csv.lines().nth(3).unwrap().starts_with("3F0,3B0,3F1"), "{}", report.csv);
}

#[test]
fn a_dynamic_schedule_is_no_longer_than_1f1b_under_the_same_memory() {
    let response =
        answered("wait-free-cyclic --ranks 4 --microbatches 12 --forward 1 --backward 2 --memory 4").unwrap();
    let (_, report) = generated(&response).next().unwrap();
    assert!(report.makespan <= 45.0 && report.peak_activations.iter().all(|&count| count <= 4.0), "{report:?}");
}

/// Work is 36 and ZB-H1 idles for 3. In V-Half, a rank stores 3 times two half activations, and its
/// bubble is half of 9.
#[test]
fn table_is_aligned() {
    let line =
        "1f1b zb_h1 ZB-H2 v-half --ranks 4 --microbatches 12 --forward 1 --backward 2 --per-rank --memory-cap 3.5";
    let response = answered(line).unwrap();
    let text = table::table(&response);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "schedule  makespan  span  bubble  of span  peak     gap");
    assert_eq!(lines[1], "1F1B            45    45  20.0 %   20.0 %     4  15.4 %");
    assert_eq!(lines[4], "V-Half        38.5  38.5   6.5 %    6.5 %     3   2.7 %");
    assert_eq!(lines[5], "1F1B: rank 0 holds 4 of 3.5 activations");
}

/// p = 2, m = 2, F = 1, B = 2: rank 1 waits for the first forward, rank 0 for both backwards.
#[test]
fn a_drawing_has_a_character_for_the_shortest_action() {
    let response = answered("1f1b --ranks 2 --microbatches 2 --forward 1 --backward 2").unwrap();
    let (_, report) = generated(&response).next().unwrap();
    assert_eq!(drawing::drawing(report), "0 FF..BB.BB\n1 .FBBFBB\n");
    let zero = answered("zbv --ranks 2 --microbatches 2 --forward 0 --backward 0").unwrap();
    assert_eq!(drawing::drawing(generated(&zero).next().unwrap().1), "0 \n1 \n");
}

#[test]
fn inconsistent_arguments_are_reported() {
    for (line, says) in [
        ("1f1b --ranks 4 --microbatches 12 --forward 1", "give --backward"),
        (
            "1f1b --ranks 4 --microbatches 12 --forward 1 --backward -2",
            "--backward (input_grad): -1 is out of range: 0",
        ),
        ("1f1b --ranks 0 --microbatches 12 --forward 1 --backward 2", "--ranks: 0 is out of range: 1 to"),
        ("1f1b --ranks 4 --microbatches 12 --forward -1 --backward 2", "--forward: -1 is out of range"),
        ("1f1b --ranks 4 --microbatches 12 --backward 2", "--forward"),
        ("1f1b --microbatches 12 --forward 1 --backward 2", "--ranks"),
        ("interleaved --ranks 4 --microbatches 8 --forward 1 --backward 2 --group 1", "deadlock"),
        ("1f1b --ranks 4 --microbatches 8 --forward 1 --backward 2 --group 4", "--group is for"),
        ("1f1b --ranks 4 --microbatches 8 --forward 1 --backward 2 --chunks 2", "--chunks is for"),
        ("wait-free-cyclic --ranks 4 --microbatches 8 --forward 1 --backward 2 --memory 0", "0 are allowed"),
        (
            "dual_pipe --ranks 5 --microbatches 20 --forward 1 --backward 2",
            "DualPipe needs an even number of ranks, 5 given",
        ),
        ("2f2b --ranks 5 --microbatches 20 --forward 1 --backward 2", "there are gpipe, looped_bfs"),
    ] {
        let error = answered(line).expect_err(line);
        assert!(format!("{error:#}").contains(says), "{line}: {error:#}");
    }
}

#[test]
fn the_long_help_lists_every_kind() {
    let help = crate::config::help::schedule_kinds();
    assert!(ScheduleKind::ALL.iter().all(|kind| help.contains(&format!("  {} ", kind.id()))), "{help}");
}
