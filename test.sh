#!/usr/bin/env bash
# Builds and runs every test, and prints at the end the result and the minutes of each part.
#   ./test.sh          format check; release build, C++ and Python tests; then what a sanitizer can find and the release
#                      build cannot: tests of modules that handle memory and bytes under AddressSanitizer and UBSan, tests
#                      of modules with threads under ThreadSanitizer
#   ./test.sh --fast   the format check and the release part; with --times 20, the tests so many times
#   ./test.sh --long   everything: the slowest tests and the simulator too under AddressSanitizer, the simulator's seeds
#                      0..19999, and every planted bug
set -uo pipefail
cd "$(dirname "$0")" || exit

fast=false
long=false
times=1
while [ $# -gt 0 ]; do
  case "$1" in
    --fast) fast=true ;;
    --long) long=true ;;
    --times) shift; times=${1:-} ;;
    *) echo "test.sh: unknown option '$1' (there are --fast, --long and --times N)" >&2; exit 2 ;;
  esac
  shift || true
done
if ! [[ $times =~ ^[1-9][0-9]{0,3}$ ]]; then echo "test.sh: --times takes a number from 1 on, not '$times'" >&2; exit 2; fi

jobs=$(nproc)
summary=()
failed=false
part_began=0

say() {
  part_began=$SECONDS
  printf '\n== %s  [%d min %02d s]\n' "$*" $((SECONDS / 60)) $((SECONDS % 60))
}

# note PART STATUS RESULT: a line of the summary, with the time since the last `say`.
note() {
  local seconds=$((SECONDS - part_began))
  summary+=("$(printf '%-14s %-6s %2d min %02d s  %s' "$1" "$([ "$2" -eq 0 ] && echo ok || echo FAILED)" \
    $((seconds / 60)) $((seconds % 60)) "$3")")
  [ "$2" -eq 0 ] || failed=true
}

# build NAME TARGET…: configures build/release if it is new or has no Python package, and builds; prints compiler messages and
# ninja's progress.
build() {
  local name=$1 status=0
  shift
  # quickstart.sh configures it without tests.
  if ! { [ -f build/release/build.ninja ] && [ -d build/release/python ] &&
    grep -q '^BUILD_TESTING:BOOL=ON' build/release/CMakeCache.txt; }; then
    cmake --preset release -DBUILD_TESTING=ON >/dev/null || status=1
  fi
  if [ "$status" -eq 0 ]; then cmake --build --preset release -j "$jobs" --target "$@" || status=1; fi
  note "$name build" "$status" ""
  return "$status"
}

# ctest_in NAME [OPTION…]: C++ tests. Network tests wait on timers most of their time, so there are two tests per core.
ctest_in() {
  local name=$1 log status
  shift
  log=$(mktemp)
  # setarch -R: GCC's ThreadSanitizer does not support the widest address randomisation of recent kernels.
  local plain=()
  if [ "$name" = tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then plain=(setarch "$(uname -m)" -R); fi
  ${plain[@]+"${plain[@]}"} ctest --test-dir build/release --output-on-failure --no-tests=error --timeout 1800 \
    -j $((2 * jobs)) "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  note "$name tests" "$status" "$(grep -E 'tests passed|tests failed|No tests' "$log" | tail -n 1)"
  rm -f "$log"
}

# pytest_in ENVIRONMENT FOLDER NAME: the Python tests of a folder. Most of them wait for processes.
pytest_in() {
  local log status
  log=$(mktemp)
  "$1/bin/python" -m pytest -q -n "$((2 * jobs))" --dist loadgroup "$2" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  note "$3" "$status" "$(tail -n 1 "$log")"
  rm -f "$log"
}

# Most tests write files and wait for the disk: they write into memory where there is enough of it.
memory_kib=$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)
if [ "${memory_kib:-0}" -gt $((4 << 20)) ]; then
  TMPDIR=$(mktemp -d /dev/shm/gossamer.XXXXXX)
  export TMPDIR
  trap 'rm -rf "$TMPDIR"' EXIT
fi

# The tests start hundreds of interpreters: each would compile all that it imports.
unset PYTHONDONTWRITEBYTECODE

# One BLAS thread: the tests run side by side. A sanitizer's finding ends the test program. AddressSanitizer names the function
# that allocated memory, without its callers, and keeps 16 MB of freed memory to recognise later accesses: a quarter less time.
# With ASAN_OPTIONS= it names the callers too, and keeps 256 MB. A new build directory compiles kernels for one generation of
# GPUs, which saves a third of nvcc's time. No test depends on the others.
export CUDAARCHS=${CUDAARCHS:-80} OPENBLAS_NUM_THREADS=1 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1
export ASAN_OPTIONS=${ASAN_OPTIONS-malloc_context_size=2:quarantine_size_mb=16}

say "packages"
if [ ! -x .venv-torch/bin/python ]; then  # what tests and the Python package need is unpacked while modules are compiled
  scripts/install.sh packages || exit 1
  install_log=$(mktemp)
  scripts/install.sh >"$install_log" 2>&1 &
  installing=$!
  say "modules: build (several minutes the first time)"
  build modules all
  wait "$installing"
  installed=$?
  cat "$install_log"
  rm -f "$install_log"
  [ "$installed" -eq 0 ] || exit 1
  say "the other packages"
fi
scripts/install.sh || exit 1

say "format"
scripts/format.sh --check
note format $? ""

say "release: build"
if build release all; then
  for ((run = 1; run <= times; ++run)); do
    say "release: C++ tests, $run of $times"
    ctest_in release
    say "Python tests, $run of $times"
    pytest_in .venv tests/python pytest
    say "Tests of the Python package, $run of $times"
    pytest_in .venv-torch tests/package "pytest package"
  done
fi

if ! $fast; then
  asan_modules=(base gpu train gossip net peer)
  # Many whole runs and predictions take minutes with AddressSanitizer. What they run is tested with it in the modules below peer
  # and in peer's other tests. The emulated GPU checks the accesses of kernels itself.
  asan_skipped='^asan/peer/(agreement|attack|bit_identity|cuda|cuda_rounds|gap|metrics|prediction|privacy|resume|round_time|rule)$'
  if $long; then asan_modules+=(cuda cuda_emulation simulator) asan_skipped='^$'; fi
  say "asan: build with AddressSanitizer and UBSan (several minutes the first time)"
  asan_programs=("${asan_modules[@]/#/test_}")
  if build asan "${asan_programs[@]/%/_asan}" test_fuzz_asan; then
    say "asan: C++ tests, and each fuzz target on changed inputs"
    ctest_in asan -C asan -R "^asan/($(IFS='|'; printf '%s' "${asan_modules[*]}")|fuzz)/" -E "$asan_skipped"
  fi
  say "tsan: build with ThreadSanitizer (several minutes the first time)"
  if build tsan test_gpu_tsan test_net_tsan; then
    say "tsan: tests of the CPU device's threads and of the network"
    ctest_in tsan -C tsan -R "^tsan/"
  fi
fi

if $long; then
  say "simulator: seeds 0..19999"
  build/release/bin/gossamer-simulator --seeds 0..19999
  note simulator $? "seeds 0..19999"
  say "planted bugs"
  .venv/bin/python tests/planted_bugs.py --work build/planted
  note "planted bugs" $? ""
fi

say "summary"
printf '%s\n' "${summary[@]}"
$failed && exit 1
exit 0
