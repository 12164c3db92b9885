//! Operational tests: backup and restore, crashes and restarts, full disks, shutdown.

mod backups;
#[cfg(target_os = "linux")]
mod bodies;
mod crashes;
#[cfg(target_os = "linux")]
mod faults;
mod files;
mod lengths;
#[cfg(target_os = "linux")]
mod memory;
mod process;
#[cfg(target_os = "linux")]
mod raw;
mod restarts;
mod room;
mod sweeps;
