//! The program as operators meet it: backed up and restored, killed and started again, without room, told to stop.

mod backups;
mod crashes;
mod files;
mod lengths;
mod process;
mod restarts;
mod room;
mod sweeps;
