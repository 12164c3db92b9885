//! Tests of the planner library from scenarios to plans.

mod ablation;
mod best;
mod certainty;
mod execution_files;
mod kinds;
mod library;
mod modalities;
mod modules;
mod nearest;
mod overrides;
mod recompute;
mod road;
mod scenario;
mod schedules;
mod sequence_level;
mod stages;
mod studies;
