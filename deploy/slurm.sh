#!/bin/bash
# A Slurm job: one process for each task, on as many nodes as Slurm chooses.
#   sbatch --ntasks=16 --cpus-per-task=4 deploy/slurm.sh run.toml [--set section.key=value]…
# Each process finds its rank and the number of processes in Slurm's environment, and the addresses
# of the others in a folder that all nodes see. With fewer tasks than peers, each hosts an equal
# part. Where the configuration names no key of a process (net.key), the links are not encrypted: the
# nodes of a cluster are then trusted. Exit code: 0, or the highest of a process.
#SBATCH --job-name=gossamer
#SBATCH --output=gossamer-%j.log
#SBATCH --no-kill
set -euo pipefail
config=$1
shift
meet=$PWD/.gossamer-$SLURM_JOB_ID
trap 'rm -rf "$meet"' EXIT
security=()
grep -qE '^ *key *=' "$config" || security=(--set net.insecure=true)
# Without --no-kill and --kill-on-bad-exit=0, Slurm ends all tasks when one fails. The others go on
# without it where the algorithm tolerates that.
srun --no-kill --kill-on-bad-exit=0 "${GOSSAMER:-gossamer}" peer "$config" \
  --set net.rendezvous="$meet" --set net.listen=0.0.0.0:0 \
  --set local.threads="${SLURM_CPUS_PER_TASK:-1}" "${security[@]}" "$@"
