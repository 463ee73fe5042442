#!/usr/bin/env bash
# Copies the headers of Eigen, fmt, toml++, doctest, xxhash and zlib (a few megabytes) from this
# machine's packages into a folder. A machine without these packages can then build the CUDA device:
#   experiments/benchmarks/gpu_headers.sh FOLDER
#   GOSSAMER_HEADERS=FOLDER experiments/benchmarks/gpu.sh        # on the other machine
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "gpu_headers.sh: give the folder to fill" >&2
  exit 2
fi
folder=$1
mkdir -p "$folder"

# find_header HEADER: prints its path. Debian has some headers in a folder of the architecture, and
# Eigen in a folder of its own.
find_header() {
  local base
  for base in /usr/include /usr/include/eigen3 /usr/local/include /usr/local/include/eigen3 \
    /usr/include/*-linux-gnu; do
    if [ -e "$base/$1" ]; then
      echo "$base/$1"
      return
    fi
  done
  echo "gpu_headers.sh: the header '$1' is missing: install libeigen3-dev libfmt-dev" \
    "libtomlplusplus-dev doctest-dev libxxhash-dev zlib1g-dev" >&2
  exit 1
}

for header in Eigen fmt toml++ doctest xxhash.h zlib.h zconf.h; do
  found=$(find_header "$header")
  rm -rf "${folder:?}/$header"
  cp -rL "$found" "$folder/"
done
du -sh "$folder" | cut -f1 >&2
