//! A short description of each planner's purpose, for users who do not know the planner's name.

use super::PlannerKind;

impl PlannerKind {
    /// Returns the purpose as a short phrase, for example "Balance sample lengths over data
    /// parallelism".
    pub const fn question(self) -> &'static str {
        match self {
            Self::Gpipe => "All forwards, then all backwards",
            Self::OneFOneB => "The usual pipeline: one forward, one backward",
            Self::OneFOneBParameters => "1F1B with equal parameters on every stage",
            Self::Interleaved => "Several chunks a rank (VPP) for a smaller bubble",
            Self::InterleavedParameters => "VPP with equal parameters in every chunk",
            Self::LoopedBfs => "Several chunks a rank, breadth first",
            Self::InterleavedZeroBubble => "VPP with split backwards",
            Self::ZbH1 => "Split backwards for a smaller bubble, memory of 1F1B",
            Self::ZbH2 => "Split backwards for no bubble, twice the memory",
            Self::Zbv => "Split backwards, two chunks in a V, memory of 1F1B",
            Self::VHalf => "Half the activation memory of 1F1B",
            Self::VMin => "A third of the activation memory of 1F1B",
            Self::NnScaler => "Uneven stages, recompute only where memory asks for it",
            Self::Optimus => "Encoder work inside the bubbles of the backbone",
            Self::WaitFreeCyclic => "Balance sample lengths over data parallelism",
            Self::PipeWeaverPartition => "Uneven stages by module, static order",
            Self::PipeWeaverInterleaving => "Stages by module, order made for each batch",
            Self::PipeWeaverRanking => "Stages by module, order searched for each batch",
            Self::PipeWeaver => "Balance modules and samples of each batch in one pipeline",
            Self::StaticContext => "One context-parallel degree, ring exchange",
            Self::Ulysses => "One context-parallel degree, all-to-all over heads",
            Self::BalancedContext => "Context-parallel degree by sequence length",
            Self::PowerOfTwoContext => "Context-parallel groups of 1, 2, 4, ... by length",
            Self::Dhp => "Dynamic context parallelism: groups of any size for each batch",
            Self::StaticStrategy => "The best fixed TP, PP and CP for long sequences",
            Self::DeepSpeed => "ZeRO-3 with Ulysses, no tensor parallelism",
            Self::HotSpa => "Switch layouts between short and long sequences",
            Self::HydraulisBase => "One layout, sequences dealt by cost",
            Self::HydraulisPacking => "One layout, sequences dealt and packed by cost",
            Self::HydraulisStatic => "Different layouts for short and long sequences, fixed",
            Self::Hydraulis => "Different layouts for short and long sequences, for each batch",
            Self::Homogeneous => "One layout for encoder and backbone",
            Self::HeterogeneousColocated => "A layout for each module on the same devices",
            Self::HeterogeneousApart => "Encoder on devices of its own",
            Self::DflopLayout => "Encoder and backbone laid out for the data",
            Self::Dflop => "Encoder and backbone laid out for the data, batches balanced",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_planners_answer_the_same_question() {
        let mut questions: Vec<&str> = PlannerKind::ALL.iter().map(|kind| kind.question()).collect();
        questions.sort_unstable();
        questions.dedup();
        assert_eq!(questions.len(), PlannerKind::ALL.len());
        assert!(questions.iter().all(|question| question.len() <= 70), "a line in the form");
    }
}
