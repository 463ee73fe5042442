#!/usr/bin/env bash
# From a fresh clone to the first result: installs what is missing, builds, trains 16 peers on non-IID digits over a ring,
# a torus and a complete graph with 3 seeds each, every graph at its best step size, and shows what connectivity does. A
# second call goes straight to the results; `./quickstart.sh --again` runs the networks anew.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

scripts/install.sh packages
scripts/install.sh python &  # downloads while the program is built
python=$!
say "build (a few minutes the first time)"
[ -f build/release/build.ninja ] || cmake --preset release -DBUILD_TESTING=OFF >/dev/null
cmake --build --preset release --target gossamer
wait "$python"
say "train: 16 peers, three graphs, three seeds, and five step sizes to choose from with three more"
.venv/bin/python experiments/sweep.py experiments/quickstart.toml topology.kind=ring,torus,complete run.seed=0..2 \
  --rates 0.25,0.5,1,2,4 --select test_loss --select averaged_loss -j "$(nproc)" --out runs/quickstart "$@"
say "report"
.venv/bin/python experiments/report.py runs/quickstart
