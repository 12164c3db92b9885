use proptest::prelude::*;

use super::*;
use crate::export::schedule_csv;
use crate::schedule::{ScheduleKind, Shape, gpipe, one_f_one_b};

fn problem_lines(table: &str) -> Vec<String> {
    let rejection = read(table).expect_err(table);
    assert!(rejection.deadlock.is_empty(), "{rejection}");
    rejection.problems.iter().map(ToString::to_string).collect()
}

fn generated(kind: ScheduleKind, ranks: usize, chunks: usize, microbatches: usize) -> Option<(Schedule, Flows)> {
    let shape = Shape { ranks, chunks: kind.chunks(Some(chunks)), microbatches, group: None };
    let unit = Nanos::new(10);
    let times = UniformTimes { forward: unit, input_grad: unit, weight_grad: unit, communication: unit };
    let flows = kind.flows(ranks, shape.chunks, microbatches);
    let schedule = kind.generate(shape, &PipelineCosts::uniform_over(flows.clone(), times), None).ok()?;
    Some((schedule, flows))
}

/// Export and import preserve the schedule and its ranks, for all schedule kinds.
#[test]
fn exported_tables_are_imported_unchanged() {
    let mut seen = 0;
    for kind in ScheduleKind::ALL {
        for (p, v, m) in [(1, 1, 1), (1, 2, 4), (2, 2, 4), (2, 3, 5), (3, 2, 7), (4, 2, 8), (6, 1, 12), (5, 2, 11)] {
            if let Some((schedule, flows)) = generated(kind, p, v, m) {
                let imported = read(&schedule_csv(&schedule)).unwrap_or_else(|error| panic!("{}: {error}", kind.id()));
                assert_eq!((imported.schedule, imported.flows), (schedule, flows), "{} p {p} v {v} m {m}", kind.id());
                assert_eq!(imported.notes, Vec::<String>::new());
                seen += 1;
            }
        }
    }
    assert!(seen > 90, "{seen}");
}

#[test]
fn tables_come_as_spreadsheets_write_them() {
    let plain = read("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n").unwrap();
    for table in [
        "\u{feff}0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n",
        "0F0,0F1,,,0B0,,0B1\n,1F0,1B0,1F1,1B1,,",
        "\"0F0\", 0F1 ,\"0B0\",0B1\n\n1F0,1B0,1F1,1B1\n",
        "0F0,0F1,0B0,0B1\n1F000,1B0,01F1,1B1",
        "0F0\t0F1\t\t\t0B0\t\t0B1\n\t1F0\t1B0\t1F1\t1B1\t\t\n",
    ] {
        let read = read(table).unwrap_or_else(|error| panic!("{table:?}: {error}"));
        assert_eq!((read.schedule, read.flows), (plain.schedule.clone(), plain.flows.clone()), "{table:?}");
    }
}

#[test]
fn implicit_simulation_actions_are_counted_and_skipped() {
    let table = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n1RECV_F0,1F0,1B0,1SEND_B0\n,,,\n";
    let imported = read(table).unwrap();
    assert_eq!(imported.schedule, one_f_one_b(2, 1));
    assert_eq!(
        imported.notes,
        [
            "4 sends, receives and waits left out: the simulation adds its own",
            "3 UNSHARD, RESHARD and REDUCE_GRAD, and waits for them, left out",
            "1 empty rows left out",
        ]
    );
}

/// Tables with communication from torch 2.15, p = 2, m = 2: 1F1B, and an overlapped pair that
/// contains sends.
#[test]
fn tables_with_communication_are_the_tables_without() {
    let table = "0UNSHARD,0WAIT_UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0WAIT_RECV_B0,0B0,0WAIT_SEND_F0,0RECV_B1,0WAIT_RECV_B1,0B1,0WAIT_SEND_F1,0REDUCE_GRAD,0WAIT_REDUCE_GRAD,0RESHARD
1RECV_F0,1WAIT_RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1WAIT_RECV_F1,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD";
    let imported = read(table).unwrap();
    assert_eq!(imported.schedule, one_f_one_b(2, 2));
    assert_eq!(
        imported.notes,
        [
            "16 sends, receives and waits left out: the simulation adds its own",
            "7 UNSHARD, RESHARD and REDUCE_GRAD, and waits for them, left out",
        ]
    );
    let plain = read("0F0,(0F1;0B0)OVERLAP_F_B,0B1").unwrap();
    let sends = read("0F0,(0F1;0I0;0W0)OVERLAP_F_B,0SEND_B0,0B1").unwrap();
    assert_eq!(plain.schedule.orders[0].len(), 4);
    assert_eq!(schedule_csv(&sends.schedule), "0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1\n");
    for (table, says) in [
        ("0WAIT_F0", "row 1, column 1 (A1): \"0WAIT_F0\": there is no action \"WAIT_F\""),
        (
            "0WAIT_SEND_F",
            "row 1, column 1 (A1): \"0WAIT_SEND_F\": WAIT_SEND_F is followed by the number of a microbatch",
        ),
    ] {
        assert_eq!(problem_lines(table)[0], says, "{table}");
    }
}

/// Output of `_format_pipeline_order` for 1F1B with p = 2, m = 2 and an error marker.
#[test]
fn a_step_by_rank_grid_is_the_same_table() {
    let grid = [
        "        Rank 0  Rank 1",
        "Step 0: 0F0            ",
        "Step 1: 0F1     1F0    ",
        "Step 2:         1B0     <-- ERROR HERE",
        "Step 3: 0B0     1F1    ",
        "Step 4:         1B1    ",
        "Step 5: 0B1            ",
        "Step 6: 0WAIT_REDUCE_GRAD ",
    ]
    .join("\n");
    let imported = read(&grid).unwrap();
    assert_eq!(imported.schedule, one_f_one_b(2, 2));
    assert_eq!(imported.notes[0], "a grid of steps and ranks, read as one row per rank and one column per step");
    let wrong = "        Rank 0\nStep 0: 0F0   \nStep 1: 0Z0   \n";
    assert_eq!(problem_lines(wrong)[0], "row 1, column 2 (B1): \"0Z0\": there is no action \"Z\"");
}

/// Rows that torch 2.9 prints for p = 2, m = 3. The last rank numbers its forwards from one.
#[test]
fn shifted_torch_tables_are_realigned() {
    let imported = read("0F0,,,0F1,0B0,0F2,0B1,,0B2\n,1F1,1B0,1F2,1B1,1F3,1B2\n").unwrap();
    assert_eq!(imported.schedule, one_f_one_b(2, 3));
    assert_eq!(
        imported.notes,
        [
            "the forwards of the last stage (row 2) are numbered 1 to 3, as torch 2.9 prints its 1F1B table; read as 0 to 2"
        ]
    );
    assert_eq!(read("0F1,0B0,0F2,0B1").unwrap().schedule, one_f_one_b(1, 2));
}

/// Mirrored rows: the copy that starts at the last rank is numbered from p.
#[test]
fn microbatches_may_enter_at_both_ends() {
    let imported = read("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n").unwrap();
    assert_eq!(imported.flows, Flows::placed(2, 4, 2, planscope_core::stage_graph::Placement::Bidirectional));
    assert_eq!(schedule_csv(&imported.schedule), "0F0,3F1,3B1,0B0\n2F1,1F0,1B0,2B1\n");
    assert!(imported.notes[0].starts_with("stages stand on two rows"), "{:?}", imported.notes);
    let same_numbers = read("0F0,1F0,1B0,0B0\n0F0,1F0,1B0,0B0\n").unwrap();
    assert_eq!((same_numbers.schedule, same_numbers.notes.len()), (imported.schedule, 2));
}

#[test]
fn every_fault_is_reported_with_its_cell() {
    for (table, says) in [
        ("0F0,,0X1", "row 1, column 3 (C1): \"0X1\": there is no action \"X\""),
        ("-1F0,0B0", "row 1, column 1 (A1): \"-1F0\": a stage cannot be negative"),
        ("0F-1,0B0", "row 1, column 1 (A1): \"0F-1\": a microbatch cannot be negative"),
        ("0F0,0F0,0B0", "row 1, column 2 (B1): 0F0 stands in A1 already"),
        ("0F0,0B0,0I0,0W0", "row 1, column 3 (C1): 0I0 is a part of 0B0, which stands in B1 whole"),
        ("0F0,0I0", "row 1, column 2 (B1): 0I0 has no 0W0: the backward is incomplete"),
        ("0F0,0W0", "row 1, column 2 (B1): 0W0 has no 0I0: the backward is incomplete"),
        ("0F0,0F1,0B0", "row 1, column 2 (B1): 0F1 has no backward: 0B1, or 0I1 and 0W1, is missing"),
        ("0F0,0B0,0B1", "row 1, column 3 (C1): 0B1 has no forward: 0F1 is missing"),
        ("0F0,0B0,0F2,0B2", "row 1, column 3 (C1): microbatch 2 is here, but microbatch 1 is nowhere"),
        ("0F0,0B0,0F5,0B5", "row 1, column 3 (C1): microbatch 5 is here, but microbatch 1 to 4 is nowhere"),
        ("0F0,0B0\n2F0,2B0", "row 2, column 1 (A2): stage 2 is here, but stage 1 is nowhere"),
        ("0F0,0B0,0F1,0B1\n1F0,1B0", "row 2: 1F1 and its backward are missing"),
        (
            "0F0,0B0,0F1,0B1\n1F0,1B0,1F1,1B1\n0F2,1F2,1B2,0B2",
            "row 3, column 1 (A3): 0F2 stands on the wrong rank: stage 0 is that of row 1",
        ),
        ("0F", "row 1, column 1 (A1): \"0F\": F is followed by the number of a microbatch"),
        ("F0", "row 1, column 1 (A1): \"F0\" is not an action: stage, F, B, I or W, microbatch, like 2F0"),
        ("0F12345678901", "row 1, column 1 (A1): \"12345678901\" is too large a number"),
        (
            "(0F0;0F1)OVERLAP_F_B",
            "row 1, column 1 (A1): \"(0F0;0F1)OVERLAP_F_B\" does not overlap a forward with a backward",
        ),
        (
            "(0F0;0B0)OVERLAP_F_B",
            "row 1, column 1 (A1): \"(0F0;0B0)OVERLAP_F_B\" overlaps a forward with its own backward",
        ),
        ("(0F0,0B0)", "row 1, column 1 (A1): \"(0F0\" is not of the form (4F4;3B0)OVERLAP_F_B"),
        ("", "there is no action in the table"),
        (",,\n,", "there is no action in the table"),
    ] {
        assert_eq!(problem_lines(table)[0], says, "{table}");
    }
}

#[test]
fn all_faults_are_reported_in_cell_order() {
    let problems = problem_lines("0F0,0Q0,0B0,0B0\n1F0,1F0,1B0,nonsense\n");
    let cells: Vec<&str> = problems.iter().map(|problem| problem.split(':').next().unwrap()).collect();
    assert_eq!(cells, ["row 1, column 2 (B1)", "row 1, column 4 (D1)", "row 2, column 2 (B2)", "row 2, column 4 (D2)"]);
    let many = read(&"0Z0,".repeat(250)).unwrap_err();
    assert_eq!((many.problems.len(), many.further), (100, 150));
    assert!(many.to_string().ends_with("(and 249 more)"), "{many}");
    let scattered: Vec<String> = (0..3000).map(|index| format!("{index}F{index},{index}B{index}")).collect();
    assert_eq!(read(&scattered.join("\n")).unwrap_err().problems.len(), 100);
}

/// Rank 1 needs two forwards before a backward; rank 0 needs a backward before forward 1.
#[test]
fn deadlocks_are_reported_as_a_cell_cycle() {
    let rejection = read("0F0,0B0,0F1,0B1\n,1F0,1F1,1B0,1B1\n").unwrap_err();
    assert!(rejection.problems.is_empty());
    assert_eq!(
        rejection.to_string(),
        "deadlock: B1 0B0 waits for D2 1B0 behind C2 1F1, which waits for C1 0F1 behind B1 0B0"
    );
    assert_eq!(rejection.deadlock[0].at, CellAddress::new(1, 2));
    let single_row = read("0B0,0F0\n").unwrap_err();
    assert_eq!(single_row.to_string(), "deadlock: A1 0B0 waits for B1 0F0 behind A1 0B0");
}

#[test]
fn addresses_match_spreadsheets() {
    for (column, name) in [(1, "A7"), (26, "Z7"), (27, "AA7"), (702, "ZZ7"), (703, "AAA7")] {
        assert_eq!(CellAddress::new(7, column).name(), name);
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*") {
        drop(read(&text));
    }

    #[test]
    fn nothing_that_looks_like_a_table_makes_it_panic(
        text in "([0-3](F|B|I|W|SEND_F|UNSHARD)[0-3]|\\([0-1]F[0-2];[0-1]B[0-2]\\)OVERLAP_F_B|,|,|,|\n|\"|-| |;){0,60}",
    ) {
        if let Ok(imported) = read(&text) {
            let again = read(&schedule_csv(&imported.schedule)).unwrap();
            prop_assert_eq!(again.schedule, imported.schedule);
        }
    }

    /// A valid table with a changed, removed or swapped cell is either rejected or still valid.
    #[test]
    fn spoilt_tables_are_rejected_or_valid(
        kind in 0_usize..13, p in 1_usize..5, m in 1_usize..9, a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(),
        how in 0..3,
    ) {
        if let Some((schedule, _)) = generated(ScheduleKind::ALL[kind], p, 2, m) {
            let text = schedule_csv(&schedule);
            let mut cells: Vec<String> = text.split_inclusive([',', '\n']).map(Into::into).collect();
            let (a, b) = (a.index(cells.len()), b.index(cells.len()));
            match how {
                0 => cells.swap(a, b),
                1 => cells[a] = cells[b].clone(),
                _ => drop(cells.remove(a)),
            }
            if let Ok(imported) = read(&cells.concat()) {
                prop_assert_eq!(imported.schedule.len(), schedule.len());
            }
        }
    }

    /// Round trip for larger shapes.
    #[test]
    fn any_kind_goes_there_and_back(kind in 0_usize..13, p in 1_usize..9, v in 1_usize..4, m in 1_usize..24) {
        if ScheduleKind::ALL[kind] != ScheduleKind::WaitFreeCyclic
            && let Some((schedule, flows)) = generated(ScheduleKind::ALL[kind], p, v, m)
        {
            let imported = read(&schedule_csv(&schedule)).unwrap();
            prop_assert_eq!((imported.schedule, imported.flows), (schedule, flows));
        }
    }
}

#[test]
fn oversized_tables_are_rejected() {
    let large = "0F0,".repeat(MAX_BYTES / 4 + 1);
    assert_eq!(problem_lines(&large), ["a table has at most 16 MiB"]);
    let wide = ",".repeat(MAX_CELLS + 1) + "0F0";
    assert_eq!(problem_lines(&wide), ["a table has at most 4000000 cells"]);
    assert_eq!(read(&schedule_csv(&gpipe(4, 200))).unwrap().schedule, gpipe(4, 200));
}

/// Guards against quadratic run time, which would take hours.
///
/// Rows with `0F0`: all rows except row 1 are duplicates on a wrong rank, and row 1 has no
/// backward. With equally many rows with `0B0`: all except one are on the wrong rank, and all
/// except one per kind are duplicates.
#[test]
fn large_invalid_tables_are_rejected_quickly() {
    let rows = 300_000;
    for (table, wrong) in [
        ("0F0\n".repeat(rows), 2 * (rows - 1) + 1),
        ("0F0\n".repeat(rows) + &"0B0\n".repeat(rows), 2 * rows - 1 + 2 * (rows - 1)),
    ] {
        let rejection = read(&table).expect_err("every action but two is wrong");
        assert_eq!((rejection.problems.len(), rejection.further), (100, wrong - 100));
    }
}
