#!/usr/bin/env bash
# From a fresh clone to the first result: installs what is missing, builds, trains 16 peers on non-IID digits over a ring,
# a torus and a complete graph with 3 seeds each, and shows what connectivity does. A second call goes straight to the
# results; `./quickstart.sh --again` runs the networks anew.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '\n== %s\n' "$*"; }

scripts/install.sh
say "build (a few minutes the first time)"
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build --preset release --target gossamer
say "train: 16 peers, three graphs, three seeds"
.venv/bin/python experiments/sweep.py experiments/quickstart.toml topology.kind=ring,torus,complete run.seed=0..2 \
  -j "$(nproc)" --out runs/quickstart "$@"
say "report"
.venv/bin/python experiments/report.py runs/quickstart
