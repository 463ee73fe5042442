#!/bin/bash
# A Slurm job: one process for each task, on as many nodes as Slurm chooses.
#   sbatch --ntasks=16 --cpus-per-task=4 deploy/slurm.sh run.toml [--set section.key=value]…
# Each process finds its rank and the number of processes in Slurm's environment, and the addresses
# of the others in a folder that all nodes see. With fewer tasks than peers, each hosts an equal
# part. Where the configuration names no key of a process (net.key), links are not encrypted: the
# nodes of a cluster are then trusted. Each line of the output begins with the number of its task.
# Exit code: 0, or the highest of a process.
#SBATCH --job-name=gossamer
#SBATCH --output=gossamer-%j.log
#SBATCH --no-kill
set -euo pipefail
case "${1:--}" in
  -*)
    echo "usage: sbatch --ntasks=N deploy/slurm.sh run.toml [--set section.key=value]…" >&2
    exit 2
    ;;
esac
config=$1
shift
cpus=${SLURM_CPUS_PER_TASK:-1}
meet=$PWD/.gossamer-$SLURM_JOB_ID
trap 'rm -rf "$meet"' EXIT
insecure=true
if grep -qE '^[[:space:]]*key[[:space:]]*=' "$config"; then insecure=false; fi
# As clusters are configured, Slurm may end all tasks when a node or a task fails, or some time after
# the first one ends. The others go on without it where the algorithm tolerates that.
srun --label --no-kill --kill-on-bad-exit=0 --wait=0 --cpus-per-task="$cpus" \
  "${GOSSAMER:-gossamer}" peer "$config" \
  --set net.rendezvous="$meet" --set net.listen=0.0.0.0:0 --set net.insecure="$insecure" \
  --set local.threads="$cpus" "$@"
