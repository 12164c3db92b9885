#!/bin/sh
# One share of a sweep per task of a Slurm array. Tasks do not communicate.
#
#   mkdir -p points && sbatch --array=1-16 examples/cluster/slurm.sh sweep.json points
#   planscope import points/points-*.jsonl
#
# A task that is requeued or submitted again with the same command resumes its share.
#SBATCH --job-name=planscope-sweep
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu

sweep=${1:?the sweep, a file}
out=${2:?a folder for the lines}

# The number of shares is SHARDS, or the highest task number of an array that starts at 1. Set SHARDS to submit only some of the tasks.
exec planscope sweep "$sweep" \
  --shard "${SLURM_ARRAY_TASK_ID}/${SHARDS:-$SLURM_ARRAY_TASK_MAX}" \
  --threads "${SLURM_CPUS_PER_TASK:-1}" \
  --out "$out/points-${SLURM_ARRAY_TASK_ID}.jsonl" --resume
