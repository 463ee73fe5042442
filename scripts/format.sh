#!/usr/bin/env bash
# Formats all C++, CUDA and Python sources in place, with the pinned formatters of .venv.
#   scripts/format.sh           formats
#   scripts/format.sh --check   changes nothing; exit status 1 and the names of the files if any would change
set -euo pipefail
cd "$(dirname "$0")/.."

check=false
case "${1:-}" in
  '') ;;
  --check) check=true ;;
  *) echo "format: unknown option '$1' (there is --check)" >&2; exit 2 ;;
esac

cpp=(git ls-files -z -- '*.cpp' '*.hpp' '*.cu' '*.inl' 'tests/cuda_emulation/*.h')
python=(git ls-files -z -- '*.py')
if $check; then
  status=0
  "${cpp[@]}" | xargs -0 -P "$(nproc)" -n 40 .venv/bin/clang-format --dry-run --Werror || status=1
  "${python[@]}" | xargs -0 .venv/bin/ruff format --check --quiet --diff || status=1
  "${python[@]}" | xargs -0 .venv/bin/ruff check --quiet || status=1
  if [ "$status" -ne 0 ]; then echo "format: run scripts/format.sh, and shorten what it cannot" >&2; fi
  exit "$status"
fi
"${cpp[@]}" | xargs -0 -P "$(nproc)" -n 40 .venv/bin/clang-format -i
"${python[@]}" | xargs -0 .venv/bin/ruff format --quiet
