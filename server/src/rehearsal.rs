//! Rehearsals: execution plans that are walked through for real, an operating-system process for every rank.
//!
//! The *conductor* starts the ranks, this program again each, gives every one its list and lets all begin an iteration
//! at one moment of the machine's monotonic clock. A rank does what its list says, action by action: a stage sleeps for
//! its duration, an `isend` or `irecv` is a message over a TCP connection on loopback, a wait blocks. Nothing that the
//! simulator computed is used but durations, so a plan whose order is wrong shows it: messages of a channel that are not
//! those expected, computations without their inputs, ranks that wait for ever.
//!
//! *Transfers.* The receiver tells the sender when it launched a receive; once both ends are launched the sender's
//! [stream](stream) takes what was launched first, one action's results at a time. The message leaves at once and says
//! until when the transfer lasts; the receiver has it when both the message and that moment have come. What the network
//! takes is therefore hidden behind the planned transfer unless it takes longer, which then shows.
//!
//! *Time.* Everything may be rehearsed faster or slower than planned; all figures that are written are rehearsed times
//! multiplied by the speed, so that they stand beside the prediction.

mod agreement;
mod clock;
mod conductor;
mod control;
mod crew;
mod journal;
mod log;
mod parcel;
mod post;
mod postage;
mod rank;
mod remote;
mod report;
mod score;
mod shelf;
mod standstill;
mod stream;
mod tempo;
mod trace;
mod upload;
mod walk;

pub use clock::Precision;
pub use conductor::{Finale, Interrupt, Outlets, Rehearsal, Settings};
pub use log::remark;
pub use postage::Postage;
pub use rank::run as run_rank;
pub use remote::Remote;
pub use report::{Compared, ComparedRank, Report};
pub use score::{MOST_RANKS, Movement, Score, ScoreError, movement};
pub use tempo::{Tempo, TempoError};
pub use trace::TraceWriter;
pub use upload::{Destination, Upload, Uploaded};
