#!/usr/bin/env bash
# Builds and runs every test, and says at the end how each part went.
#   ./test.sh          release build, C++ and Python tests; then the C++ suite under AddressSanitizer and UBSan, and the
#                      network tests under ThreadSanitizer
#   ./test.sh --fast   the release part only; with --times 20, its tests so many times over
set -uo pipefail
cd "$(dirname "$0")" || exit

fast=false
times=1
while [ $# -gt 0 ]; do
  case "$1" in
    --fast) fast=true ;;
    --times) shift; times=${1:-} ;;
    *) echo "test.sh: unknown option '$1' (there are --fast and --times N)" >&2; exit 2 ;;
  esac
  shift || true
done
if ! [[ $times =~ ^[1-9][0-9]{0,3}$ ]]; then echo "test.sh: --times takes a number from 1 on, not '$times'" >&2; exit 2; fi

jobs=$(nproc)
summary=()
failed=false

say() { printf '\n== %s  [%d min %02d s]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

# note PART STATUS WORDS: a line of the summary.
note() {
  summary+=("$(printf '%-8s %s  %s' "$1" "$([ "$2" -eq 0 ] && echo ok || echo FAILED)" "$3")")
  [ "$2" -eq 0 ] || failed=true
}

# build PRESET TARGET…: configures when new, and builds; quiet but for compiler messages and ninja's progress.
build() {
  local preset=$1
  shift
  if [ ! -f "build/$preset/build.ninja" ]; then cmake --preset "$preset" >/dev/null || return; fi
  cmake --build --preset "$preset" -j "$jobs" --target "$@"
}

# ctest_in PRESET WORDS [OPTION…]: the C++ tests of a build.
ctest_in() {
  local preset=$1 log
  shift
  log=$(mktemp)
  # setarch -R: GCC's ThreadSanitizer cannot live with the widest address randomisation of recent kernels.
  local plain=()
  if [ "$preset" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then plain=(setarch "$(uname -m)" -R); fi
  ${plain[@]+"${plain[@]}"} ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --timeout 1800 \
    -j "$jobs" "$@" 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]}
  note "$preset" "$status" "$(grep -E 'tests passed|tests failed|No tests' "$log" | tail -n 1)"
  rm -f "$log"
}

pytest_all() {
  local log
  log=$(mktemp)
  .venv/bin/python -m pytest -q tests/python 2>&1 | tee "$log"
  local status=${PIPESTATUS[0]}
  note pytest "$status" "$(tail -n 1 "$log")"
  rm -f "$log"
}

# One BLAS thread: the tests run side by side. A sanitizer's finding ends the test program.
export OPENBLAS_NUM_THREADS=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1

say "what is needed"
scripts/install.sh || exit 1

say "release: build (a few minutes the first time)"
if build release all; then
  for ((run = 1; run <= times; ++run)); do
    say "release: C++ tests, $run of $times"
    ctest_in release
    say "Python tests, $run of $times"
    pytest_all
  done
else
  note release 1 "does not build"
fi

if ! $fast; then
  say "asan: build with AddressSanitizer and UBSan (several minutes the first time)"
  if build asan all; then
    say "asan: C++ tests"
    ctest_in asan
  else
    note asan 1 "does not build"
  fi
  say "tsan: build the network tests with ThreadSanitizer (several minutes the first time)"
  if build tsan test_gossip test_net; then
    say "tsan: network tests"
    ctest_in tsan -R "^(gossip|net)\$"
  else
    note tsan 1 "does not build"
  fi
fi

say "summary"
printf '%s\n' "${summary[@]}"
$failed && exit 1
exit 0
