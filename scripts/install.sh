#!/usr/bin/env bash
# Installs what building and testing need: Debian's packages, and a Python environment in .venv with pinned versions.
# Does nothing, and needs no network, where all of it is there already. Run it as often as you like.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(g++ cmake ninja-build libasio-dev libcapnp-dev capnproto libeigen3-dev libfmt-dev doctest-dev
  libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libssl-dev libxxhash-dev zlib1g-dev python3 python3-venv)

say() { printf '%s\n' "$*" >&2; }

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "install: this is no Debian-like system: its packages are yours to install. Needed: ${packages[*]}"
    return
  fi
  local missing as_root=()
  mapfile -t missing < <(missing_packages)
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

# The stamp is written last, so an environment that was cut short is made anew.
install_python() {
  local stamp=.venv/requirements.sha256 wanted
  wanted="$(sha256sum <experiments/requirements.txt | cut -d' ' -f1) $(python3 --version) $PWD"
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    say "install: $(python3 --version) is too old: the lab needs Python 3.11 or newer"
    exit 1
  fi
  say "install: Python packages into .venv (about 100 MB, a minute)"
  python3 -m venv --clear .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r experiments/requirements.txt
  .venv/bin/python -m pip check >/dev/null
  printf '%s\n' "$wanted" >"$stamp"
}

install_packages
install_python
