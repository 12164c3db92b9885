//! Tests of names of columns and of words in cells, as engineers write them.

use super::*;

#[test]
fn a_table_of_an_engineer_is_read() {
    let table = "Model,GPU type,#GPUs,Micro Batch Size,Global Batch Size,Seq Len,TP size,ZeRO Stage,Framework,Memory (GB)\n\
                 meta-llama/Llama-3.1-8B,NVIDIA H100 80GB HBM3,16,1,\"1,024\",\"8,192\",2,ZeRO-1,Megatron-LM,61\n";
    let configuration = row(table).unwrap();
    assert_eq!((configuration.cluster.name.as_str(), configuration.cluster.nodes), ("H100", 2));
    assert_eq!((configuration.layout.data, configuration.global_batch), (8, 1024));
    assert_eq!((configuration.sequence_length, configuration.training.zero_stage()), (8192, 1));
    assert_eq!(configuration.model.modules[0].kv_heads, 8);
    let table = "hidden,network bandwidth (Gbit/s)\n4096,400\n";
    assert!((row(table).unwrap().cluster.inter_node.gb_per_s - 50.0).abs() < 1e-9);
}

#[test]
fn a_device_can_state_its_number() {
    let cluster = |columns: &[(&str, &str)]| {
        let configuration = with(columns).map_err(|reason| reason.clone())?;
        Ok((configuration.cluster.nodes, configuration.cluster.devices_per_node))
    };
    assert_eq!(cluster(&[("gpu", "8xH100")]), Ok((1, 8)));
    assert_eq!(cluster(&[("gpu", "64xH100")]), Ok((8, 8)));
    assert_eq!(cluster(&[("gpu", "4x A100-SXM4-80GB"), ("n_gpus", "16")]), Ok((4, 4)));
    assert_eq!(cluster(&[("gpu", "64xH100"), ("gpus_per_node", "4")]), Ok((16, 4)));
    for (columns, says) in [
        (&[("gpu", "8xH100"), ("n_gpus", "4")][..], "gpu: \"8xH100\" contradicts 4 devices"),
        (&[("gpu", "8xH100"), ("n_gpus", "16"), ("gpus_per_node", "4")], "gpu: \"8xH100\" contradicts gpus_per_node 4"),
        (&[("gpu", "64xH100"), ("n_gpus", "32")], "gpu: \"64xH100\" contradicts 32 devices"),
    ] {
        assert_eq!(cluster(columns), Err(says.to_owned()));
    }
}

#[test]
fn a_framework_can_name_the_stage_of_zero() {
    let stage = |columns: &[(&str, &str)]| with(columns).map(|it| (it.training.framework, it.training.zero_stage()));
    let deepspeed = ("framework", "DeepSpeed ZeRO-3");
    assert_eq!(stage(&[("dp", "8"), deepspeed]), Ok((Framework::Deepspeed, 3)));
    assert_eq!(stage(&[("dp", "8"), ("zero", "stage 2")]), Ok((Framework::Megatron, 2)));
    assert_eq!(
        stage(&[("dp", "8"), deepspeed, ("zero", "2")]),
        Err("zero: 2 contradicts the framework, which names stage 3".to_owned())
    );
    assert_eq!(stage(&[("dp", "8"), ("framework", "torchtitan")]), Ok((Framework::Torchtitan, 3)));
    assert_eq!(stage(&[("dp", "8"), ("framework", "FSDP2"), ("zero", "2")]), Ok((Framework::Fsdp, 2)));
    assert_eq!(stage(&[("zero", "ZeRO-4")]), Err("zero: \"ZeRO-4\" is none of 0 to 3".to_owned()));
}

#[test]
fn separators_of_thousands_are_not_decimal_points() {
    let says = |column: (&str, &str)| with(&[column]).unwrap_err();
    assert_eq!(says(("seq_len", "16.000")), "seq_len: \"16.000\" is 16 or 16000; write it without a point");
    assert_eq!(
        says(("network_gb_per_s", "\"12,500\"")),
        "network_gb_per_s: \"12,500\" is 12.500 or 12500; write it without a comma"
    );
    assert!(with(&[("seq_len", "\"16,000\"")]).is_ok() && with(&[("seq_len", "2048.0")]).is_ok());
}

#[test]
fn the_documentation_lists_other_names() {
    let documentation = include_str!("../../../../../docs/estimate.md");
    for (column, names) in super::super::ALIASES {
        let line = format!("| `{column}` | {} |\n", names.join(", "));
        assert!(documentation.contains(&line), "{line}");
    }
}
