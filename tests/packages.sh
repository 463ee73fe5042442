#!/usr/bin/env bash
# Checks the packages of scripts/package.sh. The program of the .tar.gz runs in an empty root
# folder: it needs no other file. With releases of Debian, the .deb is installed on their base
# systems, runs there and is removed without a trace.
#   tests/packages.sh                     the .tar.gz alone
#   tests/packages.sh bookworm bullseye   and the .deb: as root, with debootstrap
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/packages
deb=$(ls "$packages"/gossamer_*_amd64.deb)
archive=$(ls "$packages"/gossamer-*-linux-x86_64.tar.gz)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
run=(run --set run.rounds=50 --quiet --json --out)
expected=$(build/release/static/gossamer "${run[@]}" "$work/here" | grep final_hash)

fail() { echo "packages: $*" >&2; exit 1; }

enter=(chroot)
[ "$(id -u)" -eq 0 ] || enter=(unshare -r chroot)

# same_hash ROOT PROGRAM: a run in ROOT ends with the hash of a run here.
same_hash() {
  local hash
  hash=$("${enter[@]}" "$1" "$2" "${run[@]}" /tmp/run | grep final_hash)
  [ "$hash" = "$expected" ] || fail "$2 in $1 ends with $hash, and not $expected"
}

files() { (cd "$1" && find etc opt root usr var/lib/dpkg/info | sort); }

for release in "$@"; do
  root=$work/$release
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | head -n 1)
  debootstrap_log=$work/debootstrap.log
  if ! debootstrap --variant=minbase "$release" "$root" "$mirror" >"$debootstrap_log" 2>&1; then
    tail -n 3 "$debootstrap_log" >&2
    fail "debootstrap of $release failed"
  fi
  files "$root" >"$work/before"
  began=$SECONDS
  cp "$deb" "$root/tmp/gossamer.deb"
  chroot "$root" dpkg -i /tmp/gossamer.deb >/dev/null
  example=/usr/share/doc/gossamer/examples/quickstart.toml
  chroot "$root" gossamer run "$example" --out /tmp/quickstart --quiet
  took=$((SECONDS - began))
  same_hash "$root" gossamer
  chroot "$root" gossamer completions bash |
    cmp - "$root/usr/share/bash-completion/completions/gossamer"
  chroot "$root" dpkg --purge gossamer >/dev/null
  files "$root" | diff "$work/before" - >"$work/left" ||
    fail "$release: left or missing after the removal: $(cat "$work/left")"
  echo "packages: $release: installed and at the end of the quick start after $took s, removed"
done

bare=$work/bare
mkdir -p "$bare/tmp"
tar -xzf "$archive" -C "$work"
if ! "${enter[@]}" / /bin/true 2>/dev/null; then
  "$work"/gossamer-*-linux-x86_64/bin/gossamer "${run[@]}" "$work/run" | grep -qF "$expected" ||
    fail "the program of the .tar.gz ends with another hash"
  echo "packages: the program runs; this system allows no other root folder to try it in"
  exit 0
fi
cp "$work"/gossamer-*-linux-x86_64/bin/gossamer "$bare/gossamer"
same_hash "$bare" /gossamer
echo "packages: the program runs in an empty root folder"
