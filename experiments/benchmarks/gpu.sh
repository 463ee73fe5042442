#!/usr/bin/env bash
# Everything about the CUDA device on one card, in one command and under 8 minutes: builds (CUDA toolkit, CMake and ninja
# or make; no network), checks parity, runs the sanitizers and the benchmarks, and writes one table as Markdown and JSON.
#   experiments/benchmarks/gpu.sh [--out FOLDER] [--minutes 7.8] [--only PART,…] [--help]
#   GOSSAMER_HEADERS   a folder with the headers of Eigen, fmt, doctest and zlib (gpu_headers.sh makes it), where these
#                      packages are not installed
#   GOSSAMER_BINARY    a whole gossamer program built elsewhere, for the parts that need it
#   MNIST              a folder with MNIST's files; else the sweep runs on made-up files of that size
#   TORCH_PYTHON       a Python that has torch, for the rivals; else python3
# What did not run, or failed, stands in the table with its reason.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "gpu.sh: needs python3, 3.10 or newer" >&2
  exit 2
fi
exec python3 -u "$here/gpu_suite.py" "$@"
