#[test]
fn dump() {
    let Some(dir) = std::env::var_os("H4_DIR") else { return };
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for f in files {
        let bytes = std::fs::read(&f).unwrap();
        let name = f.file_name().unwrap().to_string_lossy().into_owned();
        match ingest::job_config::read(&name, &bytes) {
            Ok(j) => {
                let s = &j.scenario;
                let m = s.model.backbone().unwrap();
                println!("## {name}: L{} h{} a{} kv{} f{} V{} moe{:?} | tp{:?} pp{:?} vpp{:?} mbs{:?} cp{} ep{} gbs{} seq{} n{}x{} {} {:?} {:?}", m.layers, m.hidden, m.heads, m.kv_heads, m.ffn, m.vocab, m.moe, s.layout.tensor, s.layout.pipeline, s.layout.chunks, s.layout.microbatch, s.training.context_parallel, s.training.expert_parallel, s.workload.global_batch, s.workload.context_length, s.cluster.nodes, s.cluster.devices_per_node, s.cluster.name, s.training.recompute, s.training.precision);
                println!("   assumed {:?}\n   not modelled {:?}\n   unknown {:?}", j.assumed, j.not_modelled, j.unknown);
            }
            Err(e) => println!("## {name}: ERROR {e}"),
        }
        if let Ok(p) = ingest::profile::read(&bytes, &ingest::profile::Hints { name: name.clone(), ..Default::default() }) {
            println!("## {name}: PROFILE {:?} {} samples first {:?} report {:?}", p.format, p.samples.len(), p.samples.last(), p.report);
        }
    }
}
