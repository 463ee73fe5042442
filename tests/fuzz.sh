#!/usr/bin/env bash
# Fuzzing with libFuzzer, AddressSanitizer and UBSan, which takes Clang.
#   tests/fuzz.sh                      every target for a minute
#   tests/fuzz.sh SECONDS [TARGET…]    these targets, each for so long; without a name, all of them
# Inputs that reach new code are collected in build/fuzz/corpus/, and inputs that fail in
# build/fuzz/findings/; run one again with build/release/bin/test_fuzz_asan TARGET FILE. Ends with a
# table: target, executions, findings.
set -euo pipefail
cd "$(dirname "$0")/.."
compiler=${CXX:-clang++-16}
seconds=${1:-60}
shift || true
if ! [[ $seconds =~ ^[1-9][0-9]*$ ]]; then
  echo "fuzz.sh: a number of seconds, not '$seconds'" >&2
  exit 2
fi
if ! command -v "$compiler" >/dev/null; then
  echo "fuzz.sh: there is no $compiler; on Debian: apt-get install clang-16 libclang-rt-16-dev," >&2
  echo "or set CXX to another Clang" >&2
  exit 2
fi

flags='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -g1'
cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER="$compiler" \
  -DGOSSAMER_CUDA=OFF -DGOSSAMER_LIBFUZZER=ON -DGOSSAMER_PRECOMPILE=OFF \
  -DCMAKE_CXX_FLAGS="$flags" >/dev/null
cmake --build build/fuzz --target fuzz -j "$(nproc)"

targets=("$@")
if [ $# -eq 0 ]; then mapfile -t targets < <(GOSSAMER_FUZZ_TARGET='' build/fuzz/bin/fuzz); fi
mkdir -p build/fuzz/findings
status=0
table=()
for target in "${targets[@]}"; do
  folders=("build/fuzz/corpus/$target")
  mkdir -p "${folders[0]}"
  if [ -d "tests/fuzz/corpus/$target" ]; then folders+=("tests/fuzz/corpus/$target"); fi
  log=build/fuzz/$target.log
  result=none
  GOSSAMER_FUZZ_TARGET=$target GOSSAMER_FUZZ_SEEDS=${folders[0]} \
    UBSAN_OPTIONS=print_stacktrace=1 build/fuzz/bin/fuzz -max_total_time="$seconds" -timeout=10 \
    -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/findings/$target-" "${folders[@]}" >"$log" 2>&1 ||
    { result="see $log"; status=1; }
  executions=$(awk '/number_of_executed_units/ {print $2}' "$log")
  table+=("| $target | $executions | $result |")
done
printf '| target | executions | findings |\n|---|---|---|\n'
printf '%s\n' "${table[@]}"
exit "$status"
