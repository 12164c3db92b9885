//! How to confirm a cause, with the tools of the device and of the framework.

use crate::run_comparison::Phase;
use planscope_core::training::Framework;
use planscope_plan::scenario::Scenario;

/// Vendor of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vendor {
    Nvidia,
    Amd,
    /// Another one: TPU, Trainium.
    Other,
}

/// Tools of a job.
#[derive(Debug, Clone, Copy)]
pub struct Advice {
    vendor: Vendor,
    framework: Framework,
}

impl Advice {
    /// Returns the tools of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let name = scenario.cluster.name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let vendor = if has(&["mi2", "mi3", "amd", "instinct"]) {
            Vendor::Amd
        } else if has(&["tpu", "trainium", "gaudi", "ascend", "910"]) {
            Vendor::Other
        } else {
            Vendor::Nvidia
        };
        Self { vendor, framework: scenario.training.framework }
    }

    /// How to confirm slow clocks of a device.
    pub const fn clocks(self) -> &'static str {
        match self.vendor {
            Vendor::Nvidia => {
                "Read clocks, power and throttle reasons of every device during a step (nvidia-smi -q -d \
                 CLOCK,PERFORMANCE). One slow device delays all others."
            }
            Vendor::Amd => {
                "Read clocks, power and temperature of every device during a step (amd-smi metric --clock --power \
                 --temperature). One slow device delays all others."
            }
            Vendor::Other => {
                "Compare the times of the same kernel on all devices in a profiler trace. One slow device delays all \
                 others."
            }
        }
    }

    /// How to confirm a slow network between nodes.
    pub const fn network(self) -> &'static str {
        match self.vendor {
            Vendor::Nvidia => {
                "Run all_reduce_perf and all_gather_perf of nccl-tests over all nodes, and check that NCCL uses the \
                 network cards (NCCL_DEBUG=INFO)."
            }
            Vendor::Amd => {
                "Run all_reduce_perf and all_gather_perf of rccl-tests over all nodes, and check that RCCL uses the \
                 network cards (NCCL_DEBUG=INFO)."
            }
            Vendor::Other => "Measure all-reduce and all-gather over all nodes without a model.",
        }
    }

    /// How to confirm a slow link within a node.
    pub const fn node_link(self) -> &'static str {
        match self.vendor {
            Vendor::Nvidia => {
                "Run all_reduce_perf of nccl-tests on one node, and check peer access (nvidia-smi topo -p2p r)."
            }
            Vendor::Amd => "Run all_reduce_perf of rccl-tests on one node, and check the links (rocm-smi --showtopo).",
            Vendor::Other => "Measure all-reduce on one node without a model.",
        }
    }

    /// What to look at if a phase is late and no simulated cause changes it. `None` for other phases.
    pub fn late_phase(self, phase: &str) -> Option<&'static str> {
        let is_megatron = matches!(self.framework, Framework::Megatron | Framework::MegatronDeepspeed);
        if phase == Phase::Optimizer.name() {
            Some(if is_megatron {
                "Compare the timers inside the optimizer: optimizer-inner-step is the update, which is long on the host \
                 (--optimizer-cpu-offload) or without a fused Adam; optimizer-clip-main-grad contains the wait for the slowest rank."
            } else {
                "Check that the optimizer runs on the device and is fused, and look for a wait in the norm of the gradients: it \
                 contains the wait for the slowest rank."
            })
        } else if phase == Phase::Reduction.name() {
            Some(if is_megatron {
                "Compare the minimum and the maximum over ranks (--timing-log-option minmax): if the minimum is short, the others wait \
                 for a late rank. Otherwise check which ranks are a data-parallel group (over nodes or within one), and the overlap \
                 (--overlap-grad-reduce)."
            } else {
                "Compare the times of the ranks: if the shortest is as predicted, the others wait for a late rank. Otherwise check which \
                 ranks are a data-parallel group (over nodes or within one), and the overlap with the backward pass."
            })
        } else {
            None
        }
    }

    /// How to confirm host time per kernel.
    pub const fn host(self) -> &'static str {
        match self.vendor {
            Vendor::Nvidia | Vendor::Amd => {
                "Look for gaps between kernels in a profiler trace while the CPU thread launches. Compile the model or \
                 capture graphs of kernels, and check the number of CPU threads per process."
            }
            Vendor::Other => {
                "Look for gaps between kernels in a profiler trace while the host waits or compiles again."
            }
        }
    }

    /// How to confirm that tensor-parallel communication does not overlap.
    pub const fn tensor_overlap(self) -> &'static str {
        match (self.vendor, self.framework) {
            (Vendor::Nvidia, Framework::Megatron | Framework::MegatronDeepspeed) => {
                "Set CUDA_DEVICE_MAX_CONNECTIONS as Megatron-LM requires; look at the streams in a profiler trace."
            }
            _ => "Look for collectives without a concurrent product in a profiler trace.",
        }
    }

    /// How to confirm uneven pipeline stages.
    pub const fn stages(self) -> &'static str {
        match (self.vendor, self.framework) {
            (Vendor::Nvidia | Vendor::Amd, Framework::Megatron | Framework::MegatronDeepspeed) => {
                "Compare the forward times of the pipeline ranks: a trace of each, or the timers of all ranks \
                 (in Megatron-LM: --timing-log-option all)."
            }
            _ => "Compare the forward times of the pipeline ranks in a trace of each.",
        }
    }

    /// How to confirm slow reading of data.
    pub const fn reading(self) -> &'static str {
        match (self.vendor, self.framework) {
            (Vendor::Nvidia | Vendor::Amd, Framework::Megatron | Framework::MegatronDeepspeed) => {
                "Run some steps on synthetic data (in Megatron-LM: --mock-data). Look for idle time before the first \
                 forward kernel of a microbatch in a profiler trace."
            }
            _ => {
                "Run some steps on synthetic data. Look for idle time before the first forward kernel of a microbatch \
                 in a profiler trace."
            }
        }
    }
}
