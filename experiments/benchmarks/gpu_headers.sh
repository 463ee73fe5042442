#!/usr/bin/env bash
# Puts the headers that the rooms above `net` need into one folder, to bring to a machine that has none of these packages:
# Eigen, fmt, doctest, xxhash and zlib, a few megabytes, from this machine's packages.
#   experiments/benchmarks/gpu_headers.sh FOLDER        then, there: GOSSAMER_HEADERS=FOLDER experiments/benchmarks/gpu.sh
set -euo pipefail

if [ "$#" -ne 1 ]; then
  echo "gpu_headers.sh: give the folder to fill" >&2
  exit 2
fi
folder=$1
mkdir -p "$folder"

# find_header HEADER: where it is. Debian keeps some under the machine's name, and Eigen in a folder of its own.
find_header() {
  local base
  for base in /usr/include /usr/include/eigen3 /usr/local/include /usr/local/include/eigen3 /usr/include/*-linux-gnu; do
    if [ -e "$base/$1" ]; then
      echo "$base/$1"
      return
    fi
  done
  echo "gpu_headers.sh: no header '$1' here: install libeigen3-dev libfmt-dev doctest-dev libxxhash-dev zlib1g-dev" >&2
  exit 1
}

for header in Eigen fmt doctest xxhash.h zlib.h zconf.h; do
  found=$(find_header "$header")
  rm -rf "${folder:?}/$header"
  cp -rL "$found" "$folder/"
done
du -sh "$folder" | cut -f1 >&2
