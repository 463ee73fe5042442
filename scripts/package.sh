#!/usr/bin/env bash
# Makes packages of the program for x86-64 Linux, without CUDA, in build/packages: gossamer_VERSION_amd64.deb, and a .tar.gz of
# the same files. The program in them is one file that needs no library. Building needs what scripts/install.sh packages installs.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset release >/dev/null
cmake --build --preset release --target gossamer_package -j "$(nproc)"
rm -rf build/packages
mkdir -p build/packages
cpack --config build/release/CPackConfig.cmake -B build/packages >/dev/null
rm -rf build/packages/_CPack_Packages
ls -l build/packages
