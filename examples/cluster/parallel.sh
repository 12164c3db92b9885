#!/bin/sh
# Shares of a sweep on the cores of this machine, or of several machines that share a folder.
#
#   examples/cluster/parallel.sh sweep.json points 16
#   PARALLEL='--sshlogin a,b --workdir .' examples/cluster/parallel.sh sweep.json points 16
set -eu

sweep=${1:?the sweep, a file}
out=${2:?a folder for the lines}
shards=${3:-$(nproc)}

mkdir -p "$out"
seq "$shards" | parallel --halt soon,fail=1 \
  planscope sweep "$sweep" --shard "{}/$shards" --threads 1 --out "$out/points-{}.jsonl" --resume
planscope import "$out"/points-*.jsonl
