#!/bin/bash
# GPT with 175 billion parameters on 64 GPUs.
GPUS_PER_NODE=8
NNODES=8

torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES pretrain_gpt.py \
  --tensor-model-parallel-size 8 \
  --pipeline-model-parallel-size 8 \
  --num-layers 96 \
  --hidden-size 12288 \
  --num-attention-heads 96 \
  --seq-length 2048 \
  --max-position-embeddings 2048 \
  --vocab-size 51200 \
  --micro-batch-size 4 \
  --global-batch-size 512 \
  --bf16 \
  --use-flash-attn
