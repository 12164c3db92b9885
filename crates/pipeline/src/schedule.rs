//! Pipeline schedules: for every rank an ordered list of actions.
//!
//! Stage `s` of a model cut into `v` chunks over `p` ranks stands on rank `s mod p`, unless the schedule's
//! [`planscope_core::stage_graph::Flows`] say otherwise. A schedule fixes the *order* of each rank; times come from
//! [`crate::simulate`].

mod closed_form;
pub mod critical_swaps;
pub mod csv;
mod dual_pipe;
mod dual_pipe_v;
pub mod dual_queue;
mod error;
mod gpipe;
mod interleaved;
mod interleaved_zero_bubble;
mod kind;
mod looped_bfs;
mod multi_module;
mod one_f_one_b;
mod stable_pattern;
mod v_half;
mod v_min;
pub mod wait_free_cyclic;
mod zbv;
mod zero_bubble;

pub use closed_form::{ClosedForm, StageTimes};
pub use dual_pipe::dual_pipe;
pub use dual_pipe_v::dual_pipe_v;
pub use error::ScheduleError;
pub use gpipe::gpipe;
pub use interleaved::{Grouping, interleaved};
pub use interleaved_zero_bubble::interleaved_zero_bubble;
pub use kind::{ChunksRule, ScheduleKind, Shape};
pub use looped_bfs::looped_bfs;
pub use multi_module::{Turn, multi_module};
pub use one_f_one_b::one_f_one_b;
pub use v_half::v_half;
pub use v_min::v_min;
pub use zbv::zbv;
pub use zero_bubble::automatic;
pub use zero_bubble::{zb_h1, zb_h2};

pub use planscope_core::action::{Action, ActionKind, Schedule};
