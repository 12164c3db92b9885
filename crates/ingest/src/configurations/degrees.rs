//! Device count, parallel degrees and batch size of a row, with consistency checks.

use planner::cluster::Cluster;
use planner::model::Module;

use super::cells::{Cells, Rejection, quoted, refuse};
use super::column::{
    CP, DP, EP, ETP, GLOBAL_BATCH, GPU, GPUS_PER_NODE, HOST_MEMORY_GIB, LINK_GB_PER_S, MICROBATCH, N_GPUS,
    NETWORK_GB_PER_S, PP, SEQ_LEN, TP, VPP,
};
use super::presets::{Presets, counted};

/// Consistent parallel degrees of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Degrees {
    pub(super) tensor: u32,
    pub(super) pipeline: u32,
    pub(super) data: u32,
    pub(super) context: u32,
    pub(super) expert: u32,
    pub(super) chunks: u32,
    pub(super) microbatch: u32,
    pub(super) global_batch: u32,
    /// Experts have no tensor parallelism.
    pub(super) has_whole_experts: bool,
}

/// Returns the number of devices: the stated one, or that of a text such as `8xH100` if the row states neither a number
/// nor `dp`.
fn devices(cells: Cells<'_>) -> Result<Option<u32>, Rejection> {
    let stated = cells.integer(N_GPUS)?;
    if stated.is_some() || cells.text(DP).is_some() {
        return Ok(stated);
    }
    Ok(cells.text(GPU).and_then(|text| counted(text).1))
}

/// Largest number of devices of one host. In a rack, a fast link connects more.
const MAX_BOARD: u32 = 16;

impl Degrees {
    /// Reads the degrees and derives missing values from the given ones.
    pub(super) fn read(cells: Cells<'_>) -> Result<Self, Rejection> {
        let [tensor, pipeline, context, expert, chunks, microbatch] = {
            let read_degree = |column| cells.integer(column).map(|degree| degree.unwrap_or(1));
            [
                read_degree(TP)?,
                read_degree(PP)?,
                read_degree(CP)?,
                read_degree(EP)?,
                read_degree(VPP)?,
                read_degree(MICROBATCH)?,
            ]
        };
        let has_whole_experts = match cells.integer(ETP)? {
            None => false,
            Some(degree) if degree == 1 || degree == tensor => degree == 1 && tensor > 1,
            Some(degree) => return refuse(ETP, format!("{degree} is neither 1 nor tp {tensor}")),
        };
        let replica = u64::from(tensor) * u64::from(pipeline) * u64::from(context);
        let product = format!("tp {tensor} x pp {pipeline} x cp {context}");
        let data = match (cells.integer(DP)?, devices(cells)?) {
            (Some(data), Some(devices)) if replica.saturating_mul(data.into()) != u64::from(devices) => {
                return refuse(N_GPUS, format!("{devices} is not {product} x dp {data}"));
            }
            (None, Some(devices)) if !u64::from(devices).is_multiple_of(replica) => {
                return refuse(N_GPUS, format!("{devices} is not a multiple of {product}"));
            }
            (Some(data), _) => data,
            (None, Some(devices)) => (u64::from(devices) / replica) as u32,
            (None, None) => 1,
        };
        let (batch_unit, each) = (u64::from(data) * u64::from(microbatch), 4 * u64::from(pipeline));
        let global_batch = match cells.integer(GLOBAL_BATCH)? {
            Some(batch) if !u64::from(batch).is_multiple_of(batch_unit) => {
                return refuse(
                    GLOBAL_BATCH,
                    format!("{batch} is not a multiple of dp {data} x microbatch {microbatch}"),
                );
            }
            Some(batch) => batch,
            None => match u32::try_from(batch_unit.saturating_mul(each)) {
                Ok(batch) => batch,
                Err(_) => {
                    return refuse(GLOBAL_BATCH, format!("by default, {batch_unit} x 4 x pp {pipeline} is too many"));
                }
            },
        };
        Ok(Self { tensor, pipeline, data, context, expert, chunks, microbatch, global_batch, has_whole_experts })
    }

    /// Returns the cluster with this device count.
    pub(super) fn cluster(self, cells: Cells<'_>, presets: &Presets) -> Result<Cluster, Rejection> {
        let text = cells.text(GPU).unwrap_or(GPU.default);
        let (name, count) = counted(text);
        let preset = match presets.cluster(name) {
            Ok(preset) => preset,
            Err(known) => return refuse(GPU, format!("{} is {known}", quoted(name))),
        };
        let devices = [self.tensor, self.pipeline, self.context, self.data].map(u64::from);
        let devices = devices.into_iter().fold(1_u64, u64::saturating_mul);
        let stated = cells.integer(GPUS_PER_NODE)?;
        // The hosts of a rack have 4 devices, but NVLink connects those of the whole rack.
        let is_rack = preset.devices_per_node > MAX_BOARD;
        let per_node = match (count, stated) {
            (_, Some(stated)) if is_rack && stated > preset.devices_per_node => {
                return refuse(
                    GPUS_PER_NODE,
                    format!("{stated} exceeds the {} devices of a rack", preset.devices_per_node),
                );
            }
            (count, stated)
                if is_rack
                    && stated.is_none_or(|stated| stated <= MAX_BOARD)
                    && count.is_none_or(|count| devices.is_multiple_of(count.into())) =>
            {
                preset.devices_per_rack(devices as u32)
            }
            (Some(count), Some(stated)) if count != stated && u64::from(count) != devices => {
                return refuse(GPU, format!("{} contradicts gpus_per_node {stated}", quoted(text)));
            }
            // A number up to the size of a node is that of a node, a larger one that of all devices.
            (Some(count), None) if count <= preset.devices_per_node => {
                if devices % u64::from(count) != 0 {
                    return refuse(GPU, format!("{} contradicts {devices} devices", quoted(text)));
                }
                count
            }
            (Some(count), None) if u64::from(count) != devices => {
                return refuse(GPU, format!("{} contradicts {devices} devices", quoted(text)));
            }
            _ => stated.unwrap_or(preset.devices_per_node),
        };
        let per_node = u64::from(per_node);
        let (nodes, per_node) = if devices < per_node { (1, devices) } else { (devices / per_node, per_node) };
        if nodes * per_node != devices {
            return refuse(N_GPUS, format!("{devices} is not a multiple of gpus_per_node {per_node}"));
        }
        let (Ok(nodes), Ok(devices_per_node)) = (u32::try_from(nodes), u32::try_from(per_node)) else {
            return refuse(N_GPUS, format!("{devices} is too many"));
        };
        let mut cluster = Cluster { nodes, devices_per_node, ..preset.clone() };
        cluster.host_memory_gib = cells.number(HOST_MEMORY_GIB)?.or(cluster.host_memory_gib);
        for (column, link) in [(LINK_GB_PER_S, &mut cluster.intra_node), (NETWORK_GB_PER_S, &mut cluster.inter_node)] {
            if let Some(bandwidth) = cells.number(column)? {
                link.gb_per_s = bandwidth;
            }
        }
        Ok(cluster)
    }

    /// Checks that the degrees divide the model dimensions.
    pub(super) fn check(self, module: &Module, length: u32) -> Result<(), Rejection> {
        let Self { tensor, pipeline, data, context, expert, chunks, .. } = self;
        if !module.heads.is_multiple_of(tensor) {
            return refuse(TP, format!("{tensor} does not divide {} heads", module.heads));
        }
        if !module.kv_heads.is_multiple_of(tensor) {
            return refuse(TP, format!("{tensor} does not divide {} key-value heads", module.kv_heads));
        }
        if pipeline > module.layers {
            return refuse(PP, format!("{pipeline} exceeds {} layers", module.layers));
        }
        if chunks > 1 && pipeline == 1 {
            return refuse(VPP, format!("{chunks} needs a pipeline, pp above 1"));
        }
        if u64::from(pipeline) * u64::from(chunks) > u64::from(module.layers) {
            return refuse(VPP, format!("{chunks} x pp {pipeline} exceeds {} layers", module.layers));
        }
        if !length.is_multiple_of(context) {
            return refuse(CP, format!("{context} does not divide {} {length}", SEQ_LEN.name));
        }
        let Some(moe) = module.moe else {
            return if expert > 1 { refuse(EP, format!("{expert} needs n_experts above 1")) } else { Ok(()) };
        };
        if !moe.experts.is_multiple_of(expert) {
            return refuse(EP, format!("{expert} does not divide {} experts", moe.experts));
        }
        let own = if self.has_whole_experts { tensor } else { 1 };
        if !(u64::from(data) * u64::from(context) * u64::from(own)).is_multiple_of(expert.into()) {
            let own = if own > 1 { format!("tp {tensor} x ") } else { String::new() };
            return refuse(EP, format!("{expert} does not divide {own}dp {data} x cp {context}"));
        }
        Ok(())
    }
}
