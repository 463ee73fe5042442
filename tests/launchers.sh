#!/usr/bin/env bash
# Starts networks with real launchers, compares their final hash with that of one process, and kills
# a process of a Slurm job that goes on without it. Runs a sweep on workers that are jobs of Slurm,
# and loses one. Checks the files of deploy/ for Kubernetes and
# Compose: the settings in processes of this machine, and the form against published schemas.
#   tests/launchers.sh [ssh] [torchrun] [openmpi] [mpich] [slurm] [kubernetes]  no name: all
# Needs the release build, Debian's openssh-server, python3-torch, openmpi-bin, mpich, slurmctld,
# slurmd, slurm-client and munge, and root for Slurm, of which it starts four nodes here, in build/;
# for the sweep .venv (scripts/install.sh python), and for the schemas PyPI.
set -euo pipefail
cd "$(dirname "$0")/.."
export GOSSAMER=$PWD/build/release/bin/gossamer
[ -x "$GOSSAMER" ] || { echo "launchers: build the release first: $GOSSAMER" >&2; exit 2; }
work=$PWD/build/launchers
rm -rf "$work"
mkdir -p "$work"
cat >"$work/run.toml" <<END
[run]
peers = 8
rounds = 60
[data]
batch = 8
[local]
threads = 1
END
hash_of() {
  "$GOSSAMER" collect "$@" --json | grep -o '"final_hash": *"[0-9a-f]*"' | cut -d'"' -f4 ||
    echo "none: $* has no whole network"
}
"$GOSSAMER" run "$work/run.toml" --quiet --out "$work/one" >/dev/null
expected=$(hash_of "$work/one")
echo "one process       $expected"

# check NAME OUT [HASH]: the network in OUT ended with the bits of one process.
check() {
  local found expected=${3:-$expected}
  found=$(hash_of "$2")
  printf '%-17s %s\n' "$1" "$found"
  [ "$found" = "$expected" ] || { echo "launchers: $1 ended with other bits" >&2; exit 1; }
}
common=(--quiet --set net.insecure=true --set net.shared_memory=off)

# gossamer launch through a server of its own, with the name of this user. The second network loses
# its launcher, and with it the connections, in the middle.
test_ssh() {
  local ssh=$work/ssh port pid login i
  mkdir -p "$ssh" /run/sshd
  ssh-keygen -q -t ed25519 -N "" -f "$ssh/host"
  ssh-keygen -q -t ed25519 -N "" -f "$ssh/key"
  port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
  /usr/sbin/sshd -f /dev/null -o Port="$port" -o ListenAddress=127.0.0.1 -o HostKey="$ssh/host" \
    -o AuthorizedKeysFile="$ssh/key.pub" -o StrictModes=no -o PidFile="$ssh/pid" -o UsePAM=no
  for i in $(seq 100); do [ -s "$ssh/pid" ] && break || sleep 0.1; done
  pid=$(cat "$ssh/pid")
  trap 'kill $pid' RETURN
  login="ssh -q -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
  login="$login -i $ssh/key -p $port"
  printf '%s@127.0.0.1 slots=2\n127.0.0.1 # again\n' "$(id -un)" >"$ssh/hosts.txt"
  (cd "$work" && "$GOSSAMER" launch ssh/hosts.txt run.toml --out ssh-3 --ssh "$login" --port 17100 \
    "${common[@]}") >"$work/ssh-3.log" 2>&1
  check "ssh, 3" "$work/ssh-3"
  (cd "$work" && exec "$GOSSAMER" launch ssh/hosts.txt run.toml --out ssh-left --ssh "$login" \
    --port 17200 --set run.rounds=6000 "${common[@]:1}") >"$work/ssh-left.log" 2>&1 &
  until grep -q "round 600/6000" "$work/ssh-left.log"; do sleep 0.05; done
  kill -KILL $!
  wait $! || true
  for _ in $(seq 240); do
    if [ "$(cat "$work"/ssh-left/log-*.jsonl | grep -c '"reason":"finished"')" = 3 ]; then break; fi
    sleep 0.25
  done
  "$GOSSAMER" run "$work/run.toml" --quiet --set run.rounds=6000 --out "$work/one-6000" >/dev/null
  check "ssh, launcher lost" "$work/ssh-left" "$(hash_of "$work/one-6000")"
}

# Debian's torchrun, of PyTorch 1.13 with Python 3.11, fails without -r 1 -t 1.
test_torchrun() {
  local count
  for count in 8 3; do
    /usr/bin/python3 -m torch.distributed.run -r 1 -t 1 --nnodes=1 --nproc_per_node="$count" \
      --no_python "$GOSSAMER" peer "$work/run.toml" --out "$work/torchrun-$count" \
      --set net.rendezvous="$work/meet-t$count" \
      "${common[@]}" >"$work/torchrun-$count.log" 2>&1
    check "torchrun, $count" "$work/torchrun-$count"
  done
}

# test_mpi NAME COMMAND…
test_mpi() {
  local name=$1 count
  shift
  for count in 8 3; do
    "$@" -n "$count" "$GOSSAMER" peer "$work/run.toml" --out "$work/$name-$count" \
      --set net.rendezvous="$work/meet-$name$count" "${common[@]}" >"$work/$name-$count.log" 2>&1
    check "$name, $count" "$work/$name-$count"
  done
}
test_openmpi() { test_mpi openmpi mpirun.openmpi --allow-run-as-root --oversubscribe; }
test_mpich() { test_mpi mpich mpirun.mpich; }

stop_munged=false
stop_slurm() {
  cat "$work"/slurm/*.pid 2>/dev/null | xargs -r kill || true
  if $stop_munged; then pkill -x munged || true; fi
}

# A controller and four nodes, each with a port of its own, all on this machine.
start_slurm() {
  local slurm=$work/slurm host node
  host=$(hostname)
  mkdir -p "$slurm/state" /run/munge
  chown munge: /run/munge
  [ -f /etc/munge/munge.key ] || /usr/sbin/mungekey --create
  if ! pgrep -x munged >/dev/null; then
    /usr/sbin/runuser -u munge -- /usr/sbin/munged
    stop_munged=true
  fi
  cat >"$slurm/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host
SlurmUser=root
SlurmctldPort=16817
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdPidFile=$slurm/slurmd-%n.pid
SlurmdLogFile=$slurm/slurmd-%n.log
SlurmdSpoolDir=$slurm/spool-%n
StateSaveLocation=$slurm/state
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
ReturnToService=2
NodeName=n[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[17001-17004] CPUs=2
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
END
  export SLURM_CONF=$slurm/slurm.conf
  trap stop_slurm EXIT
  slurmctld
  for node in 1 2 3 4; do slurmd -N "n$node"; done
  for _ in $(seq 60); do
    if sinfo --noheader --format='%D %T' | grep -q '^4 idle'; then return; fi
    sleep 0.5
  done
  sinfo >&2
  echo "launchers: the nodes of Slurm are not up; see $slurm" >&2
  exit 1
}

test_slurm() {
  start_slurm
  local count job code
  for count in 8 3; do
    (cd "$work" && sbatch --quiet --wait --nodes=2-4 --ntasks="$count" \
      --output="$work/slurm-$count.log" "$OLDPWD/deploy/slurm.sh" run.toml --quiet \
      --out "$work/slurm-$count" --set net.shared_memory=off --set local.threads=1)
    check "Slurm, $count" "$work/slurm-$count"
  done

  # Peer 5 is killed. The others finish, and the exit code says that one did not.
  job=$(cd "$work" && sbatch --parsable --nodes=4 --ntasks=8 --output="$work/slurm-killed.log" \
    "$OLDPWD/deploy/slurm.sh" run.toml --quiet --out "$work/killed" --set run.id=killed \
    --set run.rounds=4000 --set net.shared_memory=off --set local.threads=1)
  for _ in $(seq 120); do
    if [ "$(cat "$work/killed/log-5.jsonl" 2>/dev/null | wc -l)" -gt 3 ]; then break; fi
    sleep 0.25
  done
  for process in $(pgrep -f "gossamer peer run.toml"); do
    if tr '\0' '\n' <"/proc/$process/environ" | grep -qx SLURM_PROCID=5; then kill -9 "$process"; fi
  done
  code=running
  for _ in $(seq 240); do
    code=$(scontrol show job "$job" | grep -o 'JobState=[A-Z]* \|ExitCode=[0-9:]*' |
      tr -d '\n')
    if ! [[ $code =~ RUNNING|PENDING|COMPLETING ]]; then break; fi
    sleep 0.25
  done
  finished=$(grep -l '"reason":"finished"' "$work"/killed/log-*.jsonl | wc -l)
  echo "Slurm, peer 5 killed: $finished of 8 logs are finished; $code"
  if [ "$finished" != 7 ] || ! [[ $code =~ ExitCode=137|ExitCode=0:9|ExitCode=9 ]]; then
    echo "launchers: that is not 7 of 8, and the exit code of a killed process" >&2
    exit 1
  fi
  test_slurm_sweep
}

# A sweep whose workers are jobs. The job of a worker is cancelled, and another one takes its place.
test_slurm_sweep() {
  local sweep=$PWD/experiments/sweep.py python=$PWD/.venv/bin/python job pid finished
  local -x GOSSAMER_BIN=$GOSSAMER DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT=1s
  local -x DASK_JOBQUEUE__SLURM__CORES=1 DASK_JOBQUEUE__SLURM__MEMORY=1GB
  local -x DASK_JOBQUEUE__SLURM__JOB_DIRECTIVES_SKIP='["--mem"]'
  local -x DASK_JOBQUEUE__SLURM__LOG_DIRECTORY=$work/slurm-workers
  local -x DASK_JOBQUEUE__SLURM__WALLTIME=5:00
  (cd "$work" && exec "$python" "$sweep" run.toml run.seed=0..7 --set run.rounds=6000 \
    --on slurm -j 2 --out "$work/sweep") >"$work/sweep.log" 2>&1 &
  pid=$!
  for _ in $(seq 240); do
    if grep -q finished "$work/sweep.log"; then break; fi
    sleep 0.25
  done
  job=$(squeue --noheader --name=dask-worker --states=running --format=%A | head -n 1)
  scancel --signal=KILL --full "$job"
  wait "$pid" || { cat "$work/sweep.log" >&2; exit 1; }
  finished=$(grep -c ',finished,' "$work/sweep/results.csv")
  echo "Slurm, sweep      $finished of 8 runs are finished; job $job was lost"
  [ "$finished" = 8 ] || exit 1
}

# The commands and the configuration of deploy/kubernetes.yaml, with folders and addresses of this
# machine, and keys that a group may read, as in a secret.
test_kubernetes() {
  local pods=$work/pods venv=$work/venv id pids=()
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet kubernetes-validate pyyaml jsonschema
  "$venv/bin/kubernetes-validate" --strict -k 1.30 deploy/kubernetes.yaml
  # The last release in Python has the schema of Compose files.
  "$venv/bin/pip" download --quiet --no-deps -d "$work" docker-compose==1.29.2
  "$venv/bin/python" - "$work"/docker_compose-*.whl deploy/compose.yaml <<'END'
import json, sys, zipfile
import jsonschema, yaml
schema = json.loads(zipfile.ZipFile(sys.argv[1]).read("compose/config/compose_spec.json"))
with open(sys.argv[2], encoding="utf-8") as file:
    jsonschema.validate(yaml.safe_load(file), schema)
print(sys.argv[2], "is a Compose file")
END
  mkdir -p "$pods/members"
  for id in $(seq 0 7); do
    mkdir -p "$pods/$id/keys" "$pods/$id/own-key"
    printf '[[member]]\nid = %d\nkey = "%s"\n' "$id" \
      "$("$GOSSAMER" keygen "$pods/$id/keys/peer.key" | head -n 1)"
    chmod 440 "$pods/$id/keys/peer.key"
  done >"$pods/members/members.toml"
  "$venv/bin/python" - deploy/kubernetes.yaml "$pods" <<'END'
import sys, yaml
source, pods = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    documents = {each["kind"]: each for each in yaml.safe_load_all(file)}
text = documents["ConfigMap"]["data"]["run.toml"]
for old, new in (("gossamer-{peer}.gossamer:7000", "127.0.7.1{peer}:17020"),
                 ('listen = "0.0.0.0:7000"\n', ""), ("rounds = 1000", "rounds = 200")):
    assert old in text, old
    text = text.replace(old, new)
with open(f"{pods}/run.toml", "w", encoding="utf-8") as file:
    file.write(text)
container = documents["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
assert container["command"] == ["/bin/sh", "-c"] and len(container["args"]) == 1
for pod in range(8):
    script = container["args"][0].replace("/etc/gossamer/", f"{pods}/").replace(
        "/keys/", f"{pods}/{pod}/keys/").replace("/own-key/", f"{pods}/{pod}/own-key/").replace(
        "/members/", f"{pods}/members/").replace("/run/gossamer/", f"{pods}/")
    with open(f"{pods}/{pod}/command.sh", "w", encoding="utf-8") as file:
        file.write(script)
END
  for id in $(seq 0 7); do
    GOSSAMER_ID=$id PATH=$(dirname "$GOSSAMER"):$PATH /bin/sh "$pods/$id/command.sh" \
      >"$pods/$id.log" 2>&1 &
    pids+=($!)
  done
  for _ in $(seq 240); do
    if [ "$(cat "$pods"/digits/log-*.jsonl 2>/dev/null | grep -c '"reason":"finished"')" = 8 ]; then
      break
    fi
    sleep 0.25
  done
  sleep 1
  kill "${pids[@]}"  # as when the StatefulSet is deleted, until when its finished peers stay
  wait "${pids[@]}" || true
  "$GOSSAMER" run "$pods/run.toml" --quiet --out "$pods/one" >/dev/null
  check "Kubernetes" "$pods/digits" "$(hash_of "$pods/one")"
}

[ $# -gt 0 ] || set -- ssh torchrun openmpi mpich slurm kubernetes
for name in "$@"; do
  case "$name" in
    ssh | torchrun | openmpi | mpich | slurm | kubernetes) "test_$name" ;;
    *)
      echo "launchers: which? (there are ssh, torchrun, openmpi, mpich, slurm and kubernetes)" >&2
      exit 2
      ;;
  esac
done
echo "launchers: all networks ended as they should"
