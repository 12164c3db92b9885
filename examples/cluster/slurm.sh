#!/bin/sh
# One share of a sweep per task of a Slurm array; shares know nothing of each other.
#
#   mkdir -p points && sbatch --array=1-16 examples/cluster/slurm.sh sweep.json points
#   planscope import points/points-*.jsonl
#
# A task that is requeued, or sent again with the same command, goes on where it was ended.
#SBATCH --job-name=planscope-sweep
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
set -eu

sweep=${1:?the sweep, a file}
out=${2:?a folder for the lines}

# A task may be one of a part of the array that is sent again: shares are counted by the highest number, as long as arrays begin at 1.
exec planscope sweep "$sweep" \
  --shard "${SLURM_ARRAY_TASK_ID}/${SHARDS:-$SLURM_ARRAY_TASK_MAX}" \
  --threads "${SLURM_CPUS_PER_TASK:-1}" \
  --out "$out/points-${SLURM_ARRAY_TASK_ID}.jsonl" --resume
