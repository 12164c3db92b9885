//! Tests for aiconfigurator tables.

use super::*;

#[test]
fn aiconfigurator_products_are_forward_and_in_milliseconds() {
    let file = "framework,version,device,op_name,kernel_source,gemm_dtype,m,n,k,latency
TRTLLM,1.0.0,NVIDIA H100 80GB HBM3,gemm,x,bfloat16,4096,1536,8192,0.5
TRTLLM,1.0.0,NVIDIA H100 80GB HBM3,gemm,x,fp8,4096,1536,8192,0.3
TRTLLM,1.0.0,NVIDIA H100 80GB HBM3,gemm,x,int8_wo,4096,1536,8192,0.3
";
    let profile = profile(file);
    assert_eq!((profile.format, profile.device.as_deref()), (Format::Aiconfigurator, Some("NVIDIA H100 80GB HBM3")));
    assert_eq!(kernels(&profile)[0], forward(4096.0, 8192.0, 1536.0));
    assert!((micros(&profile.samples[0]) - 500.0).abs() < 1e-9);
    assert_eq!(
        rejections(&profile),
        [("a number format that training plans do not hold", 1, "row 4, column gemm_dtype: int8_wo")]
    );
    let mixed = file.replacen("NVIDIA H100 80GB HBM3", "NVIDIA B200", 1);
    assert!(refusal(&mixed).contains("the rows are of several devices, NVIDIA B200 and NVIDIA H100 80GB HBM3"));
}

/// 500 us under `latency_us`. A table with two time columns is not an aiconfigurator table.
#[test]
fn aiconfigurator_unit_is_in_the_column_name() {
    let file = "device,op_name,gemm_dtype,m,n,k,latency_us\nNVIDIA H200,gemm,bfloat16,4096,1536,8192,500\n";
    let profile = profile(file);
    assert!((micros(&profile.samples[0]) - 500.0).abs() < 1e-9);
    assert_eq!(profile.report.assumptions[0], "latency_us is in microseconds; every kernel is a forward pass");
    let both = file.replace("latency_us", "latency,latency_us").replace(",500", ",0.5,500");
    assert!(refusal(&both).starts_with("no known profile"), "{}", refusal(&both));
}

#[test]
fn aiconfigurator_attention_without_caches_and_windows() {
    let file = "device,op_name,batch_size,isl,num_heads,num_key_value_heads,head_dim,window_size,attn_dtype,kv_cache_dtype,step,latency
NVIDIA B200,context_attention,4,2048,32,8,128,0,bfloat16,bfloat16,0,0.4
NVIDIA B200,context_attention,4,2048,32,8,128,0,bfloat16,bfloat16,64,0.4
NVIDIA B200,context_attention,4,2048,32,8,128,1024,bfloat16,bfloat16,0,0.4
NVIDIA B200,context_attention,4,2048,32,8,128,0,bfloat16,fp8,0,0.4
";
    let profile = profile(file);
    let attention = |kv_heads, causal| {
        Kernel::Attention(Attention {
            tokens: 8192.0,
            squared: 16_777_216.0,
            heads: 32.0,
            kv_heads,
            qk_dim: 128.0,
            v_dim: 128.0,
            causal,
            backward: false,
        })
    };
    assert_eq!(kernels(&profile), [attention(8.0, true)]);
    let reasons: Vec<&str> = rejections(&profile).into_iter().map(|(reason, ..)| reason).collect();
    assert_eq!(
        reasons,
        ["attention with cached keys, as in serving", "attention with a sliding window", "attention in fp8"]
    );
    let encoder = "device,op_name,batch_size,isl,num_heads,head_dim,attn_dtype,latency\nNVIDIA B200,encoder_attention,4,2048,32,128,bfloat16,0.4\n";
    assert_eq!(kernels(&super::profile(encoder)), [attention(32.0, false)]);
}

/// 33,554,432 half-precision elements are 64 MiB. 4,096 tokens routed to 2 of 8 experts are 1,024
/// per expert; 3 x 7,168 columns on 2 devices.
#[test]
fn aiconfigurator_messages_count_elements_and_experts_are_grouped() {
    let file = "device,op_name,nccl_dtype,num_gpus,message_size,latency
NVIDIA B200,all_gather,half,8,33554432,0.25
NVIDIA B200,all_reduce,int8,8,67108864,0.25
NVIDIA B200,broadcast,half,8,33554432,0.25
";
    let profile = profile(file);
    assert_eq!(
        kernels(&profile),
        [collective(Operation::AllGather, 64.0, 8, 8), collective(Operation::AllReduce, 64.0, 8, 8)]
    );
    let experts = "device,moe_dtype,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,latency
NVIDIA B200,bfloat16,4096,4096,14336,2,8,2,1,balanced,1.5
NVIDIA B200,bfloat16,4096,4096,14336,2,8,2,1,power_law_1.2,1.5
NVIDIA B200,bfloat16,128,4096,14336,2,8,2,1,balanced,1.5
NVIDIA B200,bfloat16,4096,4096,14336,2,8,1,8,balanced,1.5
";
    let profile = super::profile(experts);
    let product = Product::Forward;
    let grouped = MatMul { batch: 8.0, m: 1024.0, k: 4096.0, n: 21_504.0, product, format: Number::Bf16 };
    assert_eq!((kernels(&profile), rejections(&profile).len()), (vec![Kernel::MatMul(grouped)], 3));
}
