#!/usr/bin/env bash
# Runs tests of the Python package with other packages than those of .venv-torch, in environments
# under build/, which are made at the first call. The package is the one that was built, whatever
# the version of PyTorch.
#   tests/python_versions.sh torch      all tests, with PyTorch 2.1 and 2.15 from PyPI (9 GB)
#   tests/python_versions.sh trackers   gossamer export: TensorBoard, Weights & Biases, MLflow
#                                       (1 GB, 2 minutes)
#   tests/python_versions.sh trainers   gossamer.adapters: transformers and Lightning, with PyPI's
#                                       PyTorch (5.5 GB, 3 minutes)
#   tests/python_versions.sh stable_abi PYTHON OTHER
#                                       makes a wheel with one Python, of 3.12 or later, and runs
#                                       the example of NumPy with it in another one (6 minutes)
set -euo pipefail
cd "$(dirname "$0")/.."

# test_with NAME 'REQUIREMENTS' TEST…
test_with() {
  local venv=build/venv-$1 requirements=$2
  shift 2
  if [ "$(cat "$venv/requirements" 2>/dev/null)" != "$requirements" ]; then
    echo "python_versions: $requirements into $venv" >&2
    /usr/bin/python3 -m venv --clear --system-site-packages "$venv"
    # shellcheck disable=SC2086
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check $requirements
    printf '%s\n' "$requirements" >"$venv/requirements"
  fi
  "$venv/bin/python" -m pytest -q "$@"
}

case "${1:-}" in
  torch)
    for version in 2.1.2 2.15.0; do
      test_with "torch-$version" "torch==$version numpy==1.24.2" tests/package
    done
    ;;
  trackers)
    test_with trackers 'tensorboard==2.21.0 wandb==0.31.0 mlflow==3.17.2' \
      tests/package/test_package_export.py
    ;;
  trainers)
    test_with trainers \
      'torch==2.15.0 transformers==4.40.2 accelerate==0.30.1 lightning==2.1.4 numpy==1.24.2' \
      tests/package/test_package_adapters.py
    ;;
  stable_abi)
    made=build/stable-abi
    rm -rf "$made"
    mkdir -p "$made"
    git ls-files -z | xargs -0 cp --parents -t "$made"  # a tree without builds
    "${2:?PYTHON}" -m pip wheel --quiet --no-deps -w "$made/wheels" "$made"
    "${3:?OTHER}" -m venv --clear "$made/venv"
    "$made/venv/bin/pip" install --quiet numpy "$made"/wheels/gossamer-*-abi3-*.whl
    "$made/venv/bin/gossamer" --version
    "$made/venv/bin/python" experiments/python/numpy_peer.py
    ;;
  *)
    echo "python_versions: which? (there are torch, trackers, trainers and stable_abi)" >&2
    exit 2
    ;;
esac
