#!/usr/bin/env bash
# Installs what building and testing need: Debian's packages, and two Python environments with pinned versions: .venv for
# experiments and most tests, and .venv-torch, which sees Debian's PyTorch, for the Python package and its tests.
# Does nothing, and needs no network, where all of it is there already. Run it as often as you like.
#   scripts/install.sh            all of it
#   scripts/install.sh packages   Debian's packages that building needs
#   scripts/install.sh python     after them: .venv
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build libasio-dev libcapnp-dev capnproto libeigen3-dev libfmt-dev doctest-dev
  libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libssl-dev libxxhash-dev zlib1g-dev python3 python3-venv)
# With the reference BLAS alone, Debian's torch takes five times as long for a step of a small transformer.
torch_packages=(python3-dev python3-torch libopenblas0-serial python3-numpy python3-pytest python3-pytest-xdist)

say() { printf '%s\n' "$*" >&2; }

missing_packages() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

# install_packages PACKAGE…
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "install: this is no Debian-like system: its packages are yours to install. Needed: $*"
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages "$@")
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "install: ${#missing[@]} packages are missing, and there is neither root nor sudo. Have an administrator run:"
      say "  apt-get install --no-install-recommends ${missing[*]}"
      exit 1
    fi
    as_root=(sudo env)
  else
    as_root=(env)
  fi
  say "install: ${#missing[@]} Debian packages (a minute or two): ${missing[*]}"
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update -qq
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# make_environment FOLDER PYTHON REQUIREMENTS SIZE [OPTION…]: a virtual environment of PYTHON with pinned packages. Its stamp is
# written last, so an environment that was cut short is made anew.
make_environment() {
  local folder=$1 python=$2 requirements=$3 size=$4 stamp=$1/requirements.sha256 wanted
  shift 4
  wanted="$(sha256sum <"$requirements" | cut -d' ' -f1) $("$python" --version) $PWD"
  if [ -x "$folder/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  say "install: Python packages into $folder ($size)"
  "$python" -m venv --clear "$@" "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -r "$requirements"
  # The list is complete. Where Debian's packages are seen too, they are not this project's to check.
  [ $# -gt 0 ] || "$folder/bin/python" -m pip check --disable-pip-version-check >/dev/null
  printf '%s\n' "$wanted" >"$stamp"
}

install_python() {
  if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "install: $(python3 --version) is too old: the lab needs Python 3.11 or newer"
    exit 1
  fi
  make_environment .venv python3 experiments/requirements.txt "about 100 MB, a minute"
}

# Debian's python3 has Debian's torch, whatever python3 is first on the PATH.
install_torch() {
  local python=/usr/bin/python3
  if ! "$python" -c 'import torch, numpy, pytest, xdist' 2>/dev/null; then
    say "install: $python has no torch, numpy, pytest or xdist: the Python package is not built, and its tests fail"
    return
  fi
  make_environment .venv-torch "$python" python/requirements.txt "about 150 MB" --system-site-packages
}

case "${1:-}" in
  '')
    install_packages "${packages[@]}" "${torch_packages[@]}"
    install_python
    install_torch
    ;;
  packages) install_packages "${packages[@]}" ;;
  python) install_python ;;
  *) say "install: unknown part '$1' (there are packages and python)"; exit 2 ;;
esac
