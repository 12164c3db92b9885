//! How to confirm a cause, with the tools of the device and of the framework.

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
pub(super) struct Advice {
    vendor: Vendor,
    framework: Framework,
}

impl Advice {
    pub(super) fn of(scenario: &Scenario) -> Self {
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

    pub(super) const fn clocks(self) -> &'static str {
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

    pub(super) const fn network(self) -> &'static str {
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

    pub(super) const fn node_link(self) -> &'static str {
        match self.vendor {
            Vendor::Nvidia => {
                "Run all_reduce_perf of nccl-tests on one node, and check peer access (nvidia-smi topo -m)."
            }
            Vendor::Amd => "Run all_reduce_perf of rccl-tests on one node, and check the links (rocm-smi --showtopo).",
            Vendor::Other => "Measure all-reduce on one node without a model.",
        }
    }

    pub(super) const fn host(self) -> &'static str {
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

    pub(super) const fn tensor_overlap(self) -> &'static str {
        match (self.vendor, self.framework) {
            (Vendor::Nvidia, Framework::Megatron | Framework::MegatronDeepspeed) => {
                "Set CUDA_DEVICE_MAX_CONNECTIONS as Megatron-LM requires; look at the streams in a profiler trace."
            }
            _ => "Look for collectives without a concurrent product in a profiler trace.",
        }
    }

    pub(super) const fn stages(self) -> &'static str {
        match (self.vendor, self.framework) {
            (Vendor::Nvidia | Vendor::Amd, Framework::Megatron | Framework::MegatronDeepspeed) => {
                "Compare the forward times of the pipeline ranks: a trace of each, or the timers of all ranks \
                 (in Megatron-LM: --timing-log-option all)."
            }
            _ => "Compare the forward times of the pipeline ranks in a trace of each.",
        }
    }

    pub(super) const fn reading(self) -> &'static str {
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
