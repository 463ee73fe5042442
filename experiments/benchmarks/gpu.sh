#!/usr/bin/env bash
# Tests and measures the CUDA device on one GPU in less than 8 minutes: builds (with CUDA toolkit,
# CMake and ninja or make; without network), tests parity, runs the sanitizers and the benchmarks,
# and writes one table as Markdown and JSON. The table gives the reason for a stage that failed.
#   experiments/benchmarks/gpu.sh [--out FOLDER] [--minutes 7.8] [--only STAGE,…] [--help]
#   GOSSAMER_HEADERS   a folder with the headers of Eigen, fmt, toml++, doctest, xxhash and zlib
#                      (gpu_headers.sh), if these packages are not installed
#   GOSSAMER_BINARY    a gossamer program that was built elsewhere, for the stages that need it
#   MNIST              a folder with the files of MNIST (default: synthetic files of that size)
#   TORCH_PYTHON       a Python with torch, for the baselines (default: python3)
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  echo "gpu.sh: needs python3, 3.10 or newer" >&2
  exit 2
fi
exec python3 -u "$here/gpu_suite.py" "$@"
