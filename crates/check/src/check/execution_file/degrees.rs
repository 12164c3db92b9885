//! Check of the fields that describe a plan against its runs: planner, degrees, ranks, stages and layers.

use std::collections::{BTreeMap, BTreeSet};

use super::FileViolation;
use planscope_plan::execution_file::{Degrees, ExecutionFile, ModuleDegrees, PipelineDegrees, Run};
use planscope_plan::scenario::{PlannerFamily, PlannerKind};

/// Checks all fields that describe the plan.
///
/// # Errors
/// Returns the first field that contradicts the runs.
pub(super) fn check(file: &ExecutionFile) -> Result<(), FileViolation> {
    check_planner(file)?;
    let Degrees { tensor, context, expert, pipeline, data, chunks, microbatch, .. } = file.layout;
    let degrees = [
        ("tensor", tensor),
        ("context", context),
        ("expert", expert),
        ("pipeline", pipeline),
        ("data", data),
        ("chunks", chunks),
        ("microbatch", microbatch),
    ];
    if let Some((name, _)) = degrees.into_iter().find(|&(_, degree)| degree == 0) {
        return fail(format!("layout.{name}"), "is 0");
    }
    for (number, run) in file.runs.iter().enumerate() {
        if !file.module_layouts.is_empty() {
            check_modules(file, run, number)?;
        } else if !run.pipelines.is_empty() {
            check_pipelines(file, run, number)?;
        } else if !run.groups.is_empty() {
            check_groups(file, run, number)?;
        } else {
            check_ranks(file, run, number)?;
        }
        check_layers(file, run, number)?;
        let others = &file.runs[0];
        if run.pipelines != others.pipelines {
            return fail(format!("runs[{number}].pipelines"), "differ from those of run 0");
        }
        if layer_ends(run) != layer_ends(others) {
            return fail(format!("runs[{number}].stages"), "have other layers than those of run 0");
        }
    }
    Ok(())
}

fn fail<T>(field: impl Into<String>, problem: impl Into<String>) -> Result<T, FileViolation> {
    Err(FileViolation::Field { field: field.into(), problem: problem.into() })
}

/// Checks that the planner makes plans of this kind.
fn check_planner(file: &ExecutionFile) -> Result<(), FileViolation> {
    match (file.planner, file.source) {
        (PlannerKind::Best, None) => return fail("source", "is missing, the planner is best"),
        (PlannerKind::Best, Some(PlannerKind::Best)) => return fail("source", "is not a planner of its own"),
        (PlannerKind::Best, Some(_)) | (_, None) => {}
        (planner, Some(_)) => return fail("source", format!("the plan of {} has no source", planner.id())),
    }
    let has_pipelines = file.runs.iter().any(|run| !run.pipelines.is_empty());
    let has_groups = file.runs.iter().any(|run| !run.groups.is_empty());
    let (planner, field) = file.source.map_or((file.planner, "planner"), |source| (source, "source"));
    let family = planner.family();
    let (plans, makes_them) = if !file.module_layouts.is_empty() {
        ("with module_layouts", matches!(family, PlannerFamily::ModuleLayouts | PlannerFamily::Dflop))
    } else if has_pipelines {
        ("with pipelines", family == PlannerFamily::Strategies)
    } else if has_groups {
        ("with groups", family == PlannerFamily::ContextParallel)
    } else {
        let families =
            [PlannerFamily::Static, PlannerFamily::WaitFree, PlannerFamily::PipeWeaver, PlannerFamily::Dflop];
        ("without module_layouts, pipelines and groups", families.contains(&family))
    };
    if makes_them { Ok(()) } else { fail(field, format!("{} makes no plans {plans}", planner.id())) }
}

/// Checks a pipeline with the degrees of `layout`.
fn check_ranks(file: &ExecutionFile, run: &Run, number: usize) -> Result<(), FileViolation> {
    let Degrees { tensor, context, pipeline, data, .. } = file.layout;
    if run.ranks.len() != pipeline as usize {
        return fail("layout.pipeline", format!("is {pipeline}, run {number} has {} ranks", run.ranks.len()));
    }
    if file.replicas.len() != data as usize {
        return fail("layout.data", format!("is {data}, the file has {} replicas", file.replicas.len()));
    }
    check_rank_devices(run, number, tensor, context)?;
    if !run.stages.len().is_multiple_of(run.ranks.len()) {
        let problem = format!("{} stages are no multiple of {pipeline} ranks", run.stages.len());
        return fail(format!("runs[{number}].stages"), problem);
    }
    Ok(())
}

fn check_rank_devices(run: &Run, number: usize, tensor: u32, context: u32) -> Result<(), FileViolation> {
    let expected = u64::from(tensor) * u64::from(context);
    match run.ranks.iter().position(|rank| u64::from(rank.devices) != expected) {
        Some(rank) => {
            let found = run.ranks[rank].devices;
            fail(format!("runs[{number}].ranks[{rank}].devices"), format!("is {found}, TP x CP is {expected}"))
        }
        None => Ok(()),
    }
}

/// Checks context-parallel groups of ranks: item `i` of the run has group `i`, and its stages are on the ranks of the
/// group.
fn check_groups(file: &ExecutionFile, run: &Run, number: usize) -> Result<(), FileViolation> {
    let Degrees { tensor, context, pipeline, data, .. } = file.layout;
    if pipeline != 1 {
        return fail("layout.pipeline", format!("is {pipeline}, ranks of groups have all layers"));
    }
    if run.ranks.len() != data as usize {
        return fail("layout.data", format!("is {data}, run {number} has {} ranks", run.ranks.len()));
    }
    check_rank_devices(run, number, tensor, context)?;
    if run.groups.len() != run.microbatches.len() {
        let problem = format!("{} groups, {} microbatches", run.groups.len(), run.microbatches.len());
        return fail(format!("runs[{number}].groups"), problem);
    }
    for (index, (group, costs)) in run.groups.iter().zip(&run.microbatches).enumerate() {
        let stages = run.stages.iter().skip(costs.first_stage as usize).take(costs.forward_ns.len());
        if !stages.map(|stage| stage.rank).eq(group.ranks.iter().copied()) {
            let field = format!("runs[{number}].groups[{index}].ranks");
            return fail(field, "are not those of the stages of its microbatch");
        }
    }
    Ok(())
}

/// Checks pipelines with degrees of their own: their ranks follow each other, and pipelines of a phase have different
/// devices.
fn check_pipelines(file: &ExecutionFile, run: &Run, number: usize) -> Result<(), FileViolation> {
    if file.replicas.len() != 1 {
        return fail("replicas", "there is more than one, although all pipelines are in one run");
    }
    let mut next: u64 = 0;
    let mut used: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (index, pipeline) in run.pipelines.iter().enumerate() {
        let PipelineDegrees { tensor, pipeline: stages, context, first_rank, first_device, stage_stride, phase } =
            *pipeline;
        let field = |name: &str| format!("runs[{number}].pipelines[{index}].{name}");
        for (name, degree) in [("tensor", tensor), ("pipeline", stages), ("context", context)] {
            if degree == 0 {
                return fail(field(name), "is 0");
            }
        }
        if u64::from(first_rank) != next {
            return fail(field("first_rank"), format!("is {first_rank}, not {next}"));
        }
        next += u64::from(stages);
        if next > run.ranks.len() as u64 {
            return fail(field("pipeline"), format!("the pipelines have more than the {} ranks", run.ranks.len()));
        }
        let each = u64::from(tensor) * u64::from(context);
        let ranks = first_rank as usize..next as usize;
        for rank in ranks.clone() {
            let found = &run.ranks[rank];
            if u64::from(found.devices) != each {
                return fail(
                    format!("runs[{number}].ranks[{rank}].devices"),
                    format!("is {}, TP x CP of pipeline {index} is {each}", found.devices),
                );
            }
            if found.phase != phase {
                return fail(field("phase"), format!("is {phase}, rank {rank} is in phase {}", found.phase));
            }
        }
        let on_ranks = run.stages.iter().filter(|stage| ranks.contains(&(stage.rank as usize))).count();
        if on_ranks != stages as usize {
            return fail(field("pipeline"), format!("is {stages}, its ranks have {on_ranks} stages"));
        }
        let last = u64::from(first_device) + u64::from(stages - 1) * u64::from(stage_stride) + each;
        if last > u64::from(file.devices) {
            return fail(field("first_device"), format!("the pipeline ends at device {last} of {}", file.devices));
        }
        let used = used.entry(phase).or_default();
        for stage in 0..stages {
            let first = first_device + stage * stage_stride;
            if let Some(device) = (first..first + each as u32).find(|&device| !used.insert(device)) {
                return fail(field("first_device"), format!("device {device} has two stages of phase {phase}"));
            }
        }
    }
    if next != run.ranks.len() as u64 {
        return fail(format!("runs[{number}].pipelines"), format!("have {next} of {} ranks", run.ranks.len()));
    }
    Ok(())
}

/// Checks layouts of modules: every module has one, its devices exist, and its stages are on the ranks that its degrees
/// give.
fn check_modules(file: &ExecutionFile, run: &Run, number: usize) -> Result<(), FileViolation> {
    if file.replicas.len() != 1 {
        return fail("replicas", "there is more than one, although modules have layouts of their own");
    }
    let mut next = 0;
    let mut with_stages: BTreeSet<u32> = BTreeSet::new();
    for (index, layout) in file.module_layouts.iter().enumerate() {
        let ModuleDegrees { first, end, tensor, context, pipeline, data, expert, first_device, copies_per_rank } =
            *layout;
        let field = |name: &str| format!("module_layouts[{index}].{name}");
        let degrees = [
            ("tensor", tensor),
            ("context", context),
            ("pipeline", pipeline),
            ("data", data),
            ("expert", expert),
            ("copies_per_rank", copies_per_rank),
        ];
        if let Some((name, _)) = degrees.into_iter().find(|&(_, degree)| degree == 0) {
            return fail(field(name), "is 0");
        }
        if first != next {
            return fail(field("first"), format!("is {first}, the layout before ends with module {next}"));
        }
        if end <= first || end as usize > file.modules.len() {
            return fail(field("end"), format!("is {end}, the file has {} modules", file.modules.len()));
        }
        next = end;
        if !data.is_multiple_of(copies_per_rank) {
            return fail(field("copies_per_rank"), format!("{copies_per_rank} does not divide DP {data}"));
        }
        if !(u64::from(data) * u64::from(context)).is_multiple_of(u64::from(expert)) {
            return fail(field("expert"), format!("EP {expert} does not divide DP x CP"));
        }
        let product = [tensor, context, pipeline, data].into_iter().map(u64::from).fold(1, u64::saturating_mul);
        if product.saturating_add(u64::from(first_device)) > u64::from(file.devices) {
            return fail(
                field("first_device"),
                format!("{product} devices from device {first_device} on, the file has {}", file.devices),
            );
        }
        let has_module = |module: u32| (first..end).contains(&module);
        let stages = run.stages.iter().filter(|stage| stage.layers.iter().any(|layers| has_module(layers.module)));
        let stage_ranks: Vec<u32> = stages.map(|stage| stage.rank).collect();
        let ranks: BTreeSet<u32> = stage_ranks.iter().copied().collect();
        let expected = pipeline as usize * (data / copies_per_rank) as usize;
        if ranks.len() != expected || !stage_ranks.len().is_multiple_of(expected) {
            return fail(
                field("pipeline"),
                format!(
                    "{} stages on {} ranks are not those of PP x DP / copies_per_rank = {expected}",
                    stage_ranks.len(),
                    ranks.len()
                ),
            );
        }
        let each = u64::from(tensor) * u64::from(context) * u64::from(copies_per_rank);
        if let Some(&rank) = ranks.iter().find(|&&rank| u64::from(run.ranks[rank as usize].devices) != each) {
            let found = run.ranks[rank as usize].devices;
            return fail(
                field("tensor"),
                format!("TP x CP x copies_per_rank is {each}, rank {rank} has {found} devices"),
            );
        }
        with_stages.extend(ranks);
    }
    if next as usize != file.modules.len() {
        return fail("module_layouts", format!("have {next} of {} modules", file.modules.len()));
    }
    if with_stages.len() != run.ranks.len() {
        return fail(format!("runs[{number}].ranks"), "a rank has no stage");
    }
    let Degrees { tensor, pipeline, data, .. } = file.layout;
    let is_one = |layout: &ModuleDegrees| (layout.tensor, layout.pipeline, layout.data) == (tensor, pipeline, data);
    if !file.module_layouts.iter().any(is_one) {
        return fail("layout", "no module has these TP, PP and DP");
    }
    Ok(())
}

/// Checks that the stages have each layer of a module equally often. Copies of a module have the same layers.
fn check_layers(file: &ExecutionFile, run: &Run, number: usize) -> Result<(), FileViolation> {
    // Change of the number of copies at a layer, by module.
    let mut changes: BTreeMap<u32, BTreeMap<u32, i64>> = BTreeMap::new();
    for (index, stage) in run.stages.iter().enumerate() {
        for (position, layers) in stage.layers.iter().enumerate() {
            if layers.module as usize >= file.modules.len() {
                let field = format!("runs[{number}].stages[{index}].layers[{position}].module");
                return fail(field, format!("is {}, the file has {} modules", layers.module, file.modules.len()));
            }
            let changes = changes.entry(layers.module).or_default();
            *changes.entry(layers.first).or_default() += 1;
            *changes.entry(layers.end).or_default() -= 1;
        }
    }
    for module in 0..file.modules.len() as u32 {
        let Some(changes) = changes.get(&module) else {
            return fail(format!("modules[{module}]"), format!("no stage of run {number} has its layers"));
        };
        let field = || format!("runs[{number}].stages");
        if changes.keys().next() != Some(&0) {
            return fail(field(), format!("no stage has layer 0 of module {module}"));
        }
        let copies = changes.values().next().copied().unwrap_or(0);
        let end = changes.keys().next_back().copied().unwrap_or(0);
        let mut count = 0;
        for (&layer, change) in changes {
            count += change;
            if layer < end && count != copies {
                let problem = format!("layer {layer} of module {module} is on {count} stages, layer 0 on {copies}");
                return fail(field(), problem);
            }
        }
    }
    Ok(())
}

/// Number of layers by module.
fn layer_ends(run: &Run) -> BTreeMap<u32, u32> {
    let mut ends = BTreeMap::new();
    for layers in run.stages.iter().flat_map(|stage| &stage.layers) {
        let end: &mut u32 = ends.entry(layers.module).or_default();
        *end = layers.end.max(*end);
    }
    ends
}
