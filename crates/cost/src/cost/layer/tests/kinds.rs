//! Kinds of layers: latent and linear attention, windows, experts, adapters, multi-token prediction.

use super::*;
use crate::cost::graph::{OperatorGraph, Repeat};
use crate::cost::kernel::{Attention, MatMul};
use planscope_core::model::{Adapters, Mixer, MlpKind};
use planscope_core::training::RecomputedModule;

fn graph_of(module: &Module, kind: LayerKind, training: &Training, tensor: f64, tokens: f64) -> OperatorGraph {
    graph::layer(&Shape::of_kind(module, kind, (training, tensor), ModuleLoad::unpadded(tokens, tokens * tokens)))
}

fn module(id: &str) -> Module {
    model(id).unwrap().modules.remove(0)
}

fn product(graph: &OperatorGraph, name: &str) -> MatMul {
    let operator = graph.operators.iter().find(|operator| operator.name == name);
    match operator.unwrap_or_else(|| panic!("{name}")).kernel {
        Kernel::MatMul(product) => product,
        other => panic!("{other:?}"),
    }
}

fn attention(graph: &OperatorGraph) -> Attention {
    let kernel = graph.operators.iter().find_map(|operator| match operator.kernel {
        Kernel::Attention(attention) => Some(attention),
        _ => None,
    });
    kernel.unwrap()
}

/// Operations of the products of a forward, 2 m k n each.
fn linear_flops(graph: &OperatorGraph) -> f64 {
    let products = graph.operators[..graph.forward_operators].iter().filter_map(|operator| match operator.kernel {
        Kernel::MatMul(product) => Some(product.flops()),
        _ => None,
    });
    products.sum()
}

/// DeepSeek-V3: 1,536 and 512 + 64 values per token, 128 heads of 192 (queries, keys) and 128 (values).
/// With TP 8 and sequence parallelism, projections to low rank run on an eighth of the tokens, and
/// the all-gather moves 2 x 4,096 x (1,536 + 576) bytes instead of 2 x 4,096 x 7,168.
#[test]
fn latent_attention_gathers_vectors_of_low_rank() {
    let (module, training) = (module("deepseek-v3"), Training::default());
    let graph = graph_of(&module, module.main_kind(), &training, 8.0, 4096.0);
    let shape = |name| {
        let MatMul { m, k, n, .. } = product(&graph, name);
        [m, k, n].map(|size| size as u32)
    };
    assert_eq!(shape("query down"), [512, 7168, 1536]);
    assert_eq!(shape("query up"), [4096, 1536, 128 * 192 / 8]);
    assert_eq!(shape("key-value down"), [512, 7168, 576]);
    assert_eq!(shape("key-value up"), [4096, 512, 128 * 256 / 8]);
    assert_eq!(shape("projection"), [4096, 128 * 128 / 8, 7168]);
    let kernel = attention(&graph);
    assert_eq!([kernel.heads, kernel.qk_dim, kernel.v_dim].map(|size| size as u32), [16, 192, 128]);
    let gathered = graph.operators.iter().find(|operator| operator.name == "gather latent").unwrap();
    let Kernel::Collective(collective) = gathered.kernel else { panic!("{gathered:?}") };
    assert!((collective.bytes - 2.0 * 4096.0 * 2112.0).abs() < 1.0, "{}", collective.bytes);
}

/// The products of a layer are the operations of docs/models.md, for each kind of layer of each
/// backbone. Tokens of routed experts are those of a balanced router. The scores of linear attention
/// are products too.
#[test]
fn products_are_the_model_operations() {
    let tokens = 4096.0;
    for id in ["llama-3-8b", "deepseek-v3", "llama-4-maverick", "gpt-oss-20b", "qwen3-next-80b-a3b", "nemotron-h-8b"] {
        let module = module(id);
        for kind in module.layer_kinds() {
            let graph = graph_of(&module, kind, &Training::default(), 1.0, tokens);
            let scores = match kind.mixer {
                Some(Mixer::Linear) => module.kind_attention_flops(kind, tokens, tokens * tokens).get(),
                _ => 0.0,
            };
            let expected = module.kind_linear_flops(kind, tokens).get() + scores;
            assert!((linear_flops(&graph) / expected - 1.0).abs() < 1e-9, "{id} {kind:?}");
        }
    }
}

/// With expert TP 1, the devices of a tensor-parallel group have a share of the tokens and whole experts: the same
/// operations, and no all-gather or reduce-scatter around the experts. The exchange moves the same bytes.
#[test]
fn whole_experts_need_no_tensor_communication() {
    let module = module("qwen3-235b-a22b");
    let sharded = Training { expert_parallel: 8, ..Training::default() };
    let whole = Training { expert_tensor_parallel: Some(1), expert_parallel: 32, ..Training::default() };
    let graphs = [&sharded, &whole].map(|training| graph_of(&module, module.main_kind(), training, 4.0, 4096.0));
    let [sharded, whole] = &graphs;
    assert!((linear_flops(whole) / linear_flops(sharded) - 1.0).abs() < 1e-9);
    let products = graphs.each_ref().map(|graph| product(graph, "mlp up"));
    assert_eq!(products.map(|product| product.batch as u32), [16, 4], "experts of a device");
    assert_eq!(products[1].n as u32, 4 * products[0].n as u32);
    let collectives = |graph: &OperatorGraph, span: Span| {
        let bytes = |operator: &Operator| match operator.kernel {
            Kernel::Collective(collective) if operator.span == span => Some(collective.bytes),
            _ => None,
        };
        graph.operators.iter().filter_map(bytes).collect::<Vec<f64>>()
    };
    assert_eq!(collectives(whole, Span::Expert), collectives(sharded, Span::Expert));
    // Attention has two collectives forward and two backward, like the experts with tensor parallelism.
    let counts = graphs.each_ref().map(|graph| collectives(graph, Span::Tensor).len());
    assert!(counts[0] >= 2 * counts[1] - 1 && counts[1] > 0, "{counts:?}");
}

/// Every recomputed module stores less and takes longer, and all together less than each. The operations of `moe` are
/// those of the experts.
#[test]
fn recomputed_modules_store_less() {
    let module = module("deepseek-v3");
    let graph = graph_of(&module, module.main_kind(), &Training::default(), 2.0, 4096.0);
    let stored = |modules: &[RecomputedModule]| {
        graph.lifetimes(Repeat::Modules(RecomputedModules::of(modules))).stored / 4096.0 / 7168.0
    };
    let all = stored(&[]);
    assert_eq!(all.to_bits(), (graph.lifetimes(Repeat::Nothing).stored / 4096.0 / 7168.0).to_bits());
    for module in [RecomputedModule::MlaUpProj, RecomputedModule::Layernorm, RecomputedModule::MoeAct] {
        assert!(stored(&[module]) < 0.95 * all, "{module:?}: {} of {all}", stored(&[module]));
    }
    let experts = stored(&[RecomputedModule::Moe]);
    assert!(experts < stored(&[RecomputedModule::MoeAct]) && experts < stored(&[RecomputedModule::SharedExperts]));
    assert_eq!(stored(&[RecomputedModule::Mlp]).to_bits(), all.to_bits(), "this layer has experts");
    let most = stored(&RecomputedModule::ALL);
    assert!(most < experts && most < stored(&[RecomputedModule::MlaUpProj]));
    let cost = |modules: &[RecomputedModule]| {
        let training =
            Training { recompute: Recompute::Selective, recompute_modules: modules.to_vec(), ..Training::default() };
        let layers = LayerModel::new(&module, &cluster("h100").unwrap(), &training, 2);
        let cost = layers.kind_layer(module.main_kind(), ModuleLoad::unpadded(4096.0, 4096.0 * 4096.0));
        (cost.forward.secs(), (cost.input_grad + cost.weight_grad).secs())
    };
    let (plain, norms, experts) = (cost(&[]), cost(&[RecomputedModule::Layernorm]), cost(&[RecomputedModule::Moe]));
    assert_eq!(plain.0.to_bits(), norms.0.to_bits());
    assert!(plain.1 < norms.1 && norms.1 < experts.1, "{plain:?} {norms:?} {experts:?}");
    assert!(experts.1 < plain.1 + plain.0, "less than the whole forward");
}

/// `core_attn` repeats a fused kernel too, which stores only its statistics less. Selective recomputation without modules
/// does not.
#[test]
fn the_attention_core_of_a_fused_kernel_is_repeated() {
    let module = module("llama-3-8b");
    let cost = |recompute_modules: Vec<RecomputedModule>| {
        let training = Training { recompute: Recompute::Selective, recompute_modules, ..Training::default() };
        let layers = LayerModel::new(&module, &cluster("h100").unwrap(), &training, 1);
        layers.kind_layer(module.main_kind(), ModuleLoad::unpadded(32_768.0, 32_768.0 * 32_768.0))
    };
    let (plain, core) = (cost(Vec::new()), cost(vec![RecomputedModule::CoreAttn]));
    assert_eq!(plain.recomputed, Seconds::ZERO);
    assert!(core.recomputed > plain.forward / 3.0, "{core:?}");
    assert!(core.activation < plain.activation && core.activation > 0.95 * plain.activation, "{core:?} {plain:?}");
}

/// GPT-OSS: every second layer attends to 128 of 8,192 tokens, 2 x 128 - 128² / 8,192 positions per
/// token with the masked half.
#[test]
fn a_window_limits_the_attended_positions() {
    let module = module("gpt-oss-20b");
    let kinds = module.layer_kinds();
    let squared = |kind| attention(&graph_of(&module, kind, &Training::default(), 1.0, 8192.0)).squared;
    assert_eq!(kinds.iter().map(|kind| kind.mixer).collect::<Vec<_>>(), [Some(Mixer::Window), Some(Mixer::Attention)]);
    assert!((squared(kinds[0]) - 8192.0 * (256.0 - 2.0)).abs() < 1e-6);
    assert!((squared(kinds[1]) - 8192.0 * 8192.0).abs() < 1e-6);
    // A sequence shorter than the window is not limited.
    let short = attention(&graph_of(&module, kinds[0], &Training::default(), 1.0, 100.0)).squared;
    assert!((short - 10_000.0).abs() < 1e-9);
}

/// The mean of DeepSeek-V3's layers is 3 dense layers and 58 with experts.
#[test]
fn a_layer_is_the_mean_over_kinds() {
    let (module, cluster, training) = (module("deepseek-v3"), cluster("h100").unwrap(), Training::default());
    let layers = LayerModel::new(&module, &cluster, &training, 8);
    let load = ModuleLoad::unpadded(4096.0, 4096.0 * 4096.0);
    let kinds = module.layer_kinds();
    assert_eq!(kinds.iter().map(|kind| kind.mlp).collect::<Vec<_>>(), [Some(MlpKind::Dense), Some(MlpKind::Experts)]);
    let [dense, experts] = [0, 1].map(|kind| layers.kind_layer(kinds[kind], load).forward.secs());
    let mean = layers.layer(load).forward.secs();
    assert!((mean / ((3.0 * dense + 58.0 * experts) / 61.0) - 1.0).abs() < 1e-9);
    assert!(experts > dense);
}

/// A router that sends twice the mean to one rank makes the products of experts twice as long.
#[test]
fn a_skewed_router_slows_the_experts() {
    let balanced = module("qwen3-30b-a3b");
    let mut skewed = balanced.clone();
    skewed.moe.as_mut().unwrap().skew = 2.0;
    let rows =
        |module: &Module| product(&graph_of(module, module.main_kind(), &Training::default(), 1.0, 4096.0), "mlp up").m;
    assert!((rows(&skewed) / rows(&balanced) - 2.0).abs() < 1e-12);
}

/// LoRA on attention with rank 16: no weight gradients except those of adapters, and the backward
/// stores neither the inputs of the MLP's products nor those of frozen products without adapters.
#[test]
fn adapters_replace_weight_gradients() {
    let full = module("llama-3-8b");
    let lora = Module { adapters: Some(Adapters { rank: 16, mlp: false, base_bits: None }), ..full.clone() };
    let graph = |module: &Module| graph_of(module, module.main_kind(), &Training::default(), 1.0, 4096.0);
    let weight_gradients: Vec<_> = graph(&lora)
        .operators
        .iter()
        .filter(|operator| operator.phase == Phase::WeightGrad)
        .map(|operator| operator.name)
        .collect();
    assert_eq!(weight_gradients.len(), 8);
    assert!(weight_gradients.iter().all(|name| name.starts_with("adapter")), "{weight_gradients:?}");
    let stored = |module: &Module| graph(module).lifetimes(Repeat::Nothing).stored;
    assert!(stored(&lora) < stored(&full), "{} {}", stored(&lora), stored(&full));
    // 32 layers x 16 x (4 matrices of 4,096 + 4,096, or 4,096 + 1,024 for keys and values).
    assert_eq!(lora.trained_parameters(), 32 * 16 * (2 * 8192 + 2 * 5120));
}

/// With TP 4, an adapter of the output projection reads a quarter of its input; that of queries reads all of it and writes a
/// quarter of the output.
#[test]
fn tensor_parallelism_divides_adapters() {
    let lora = Module { adapters: Some(Adapters { rank: 16, mlp: false, base_bits: None }), ..module("llama-3-8b") };
    let graph = graph_of(&lora, lora.main_kind(), &Training::default(), 4.0, 4096.0);
    let products = |name: &str| -> Vec<(f64, f64)> {
        let forward = graph.operators.iter().filter(|it| it.name == name && it.phase == Phase::Forward);
        forward
            .map(|operator| match operator.kernel {
                Kernel::MatMul(product) => (product.k, product.n),
                _ => panic!("{name} is no product"),
            })
            .collect()
    };
    let down = products("adapter down");
    assert_eq!((down[0], down[3]), ((4096.0, 16.0), (1024.0, 16.0)));
    let up = products("adapter up");
    assert_eq!((up[0], up[1], up[3]), ((16.0, 1024.0), (16.0, 256.0), (16.0, 1024.0)));
}

/// Multi-token prediction repeats the last layer and the output head.
#[test]
fn predicted_tokens_add_a_layer_and_a_head() {
    let (module, cluster, training) = (module("deepseek-v3"), cluster("h100").unwrap(), Training::default());
    let single = Module { predicted_ahead: 0, ..module.clone() };
    let load = ModuleLoad::unpadded(4096.0, 4096.0 * 4096.0);
    let output = |module: &Module| LayerModel::new(module, &cluster, &training, 8).output(load);
    let layer = LayerModel::new(&module, &cluster, &training, 8).kind_layer(module.last_kind(), load);
    let (one, two) = (output(&single), output(&module));
    assert!(two.forward > one.forward * 2.0 + layer.forward);
    assert!(two.activation > one.activation * 2.0 + layer.activation);
}
