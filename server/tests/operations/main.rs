//! The program as operators meet it: backed up and restored, killed and started again, without room, told to stop.

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
