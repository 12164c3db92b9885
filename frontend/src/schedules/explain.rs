//! One-line description per schedule kind.

use api::planner::schedule::ScheduleKind;

/// Returns the description of a schedule kind.
pub(crate) const fn line(kind: ScheduleKind) -> &'static str {
    match kind {
        ScheduleKind::Gpipe => "All forwards, then all backwards",
        ScheduleKind::LoopedBfs => "All microbatches through one chunk before the next",
        ScheduleKind::OneFOneB => "One forward, one backward",
        ScheduleKind::Interleaved => "1F1B over several model chunks of a rank",
        ScheduleKind::InterleavedZeroBubble => "Interleaved, with the weight gradients apart",
        ScheduleKind::ZbH1 => "Made for the times, with the memory of 1F1B",
        ScheduleKind::ZbH2 => "Made for the times, with twice that memory",
        ScheduleKind::Zbv => "Two chunks in a V, no bubble, the memory of 1F1B",
        ScheduleKind::VHalf => "A V with half the memory of 1F1B",
        ScheduleKind::VMin => "A V with a third of the memory of 1F1B",
        ScheduleKind::DualPipe => "From both ends at once, forwards overlap backwards; p and m even, m at least 2 p",
        ScheduleKind::DualPipeV => "DualPipe as a V of two chunks; m at least 2 p",
        ScheduleKind::WaitFreeCyclic => "Whatever is ready, searched for these times and this memory",
    }
}
