#!/usr/bin/env bash
# Tests the page of a run in a real browser, headless Chromium: a finished run that is watched, and
# a network of processes under way that loses one. Checks /metrics with promtool.
#   tests/page.sh [PICTURE]   PICTURE: a PNG of the page, such as docs/images/page.png
# Needs the release build, Debian's chromium, chromium-driver and prometheus, and PyPI for selenium.
set -euo pipefail
cd "$(dirname "$0")/.."
gossamer=$PWD/build/release/bin/gossamer
[ -x "$gossamer" ] || { echo "page: build the release first: $gossamer" >&2; exit 2; }
work=$PWD/build/page
rm -rf "$work"
mkdir -p "$work"
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check pytest==9.2.0 selenium==4.51.0
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true' EXIT

# url_in FILE: the address that a program has printed there.
url_in() {
  local i
  for i in $(seq 300); do
    grep -o 'http://127.0.0.1:[0-9]*/' "$1" && return
    sleep 0.1
  done
  echo "page: no address in $1" >&2
  return 1
}

test_page() {
  echo "$1: $2"
  curl --silent --fail "$2metrics" | promtool check metrics
  GOSSAMER_PAGE=$2 "$work/venv/bin/python" -m pytest -q -p no:cacheprovider tests/page
}

"$gossamer" run experiments/quickstart.toml --set run.rounds=300 --quiet --out "$work/finished"
"$gossamer" watch "$work/finished" --http 127.0.0.1:0 >"$work/finished.out" &
pids+=($!)
url=$(url_in "$work/finished.out")
test_page "a finished run" "$url"
if [ $# -gt 0 ]; then
  chromium --headless=new --no-sandbox --hide-scrollbars --force-device-scale-factor=1.5 \
    --window-size=1280,770 --virtual-time-budget=4000 --screenshot="$1" "$url" 2>/dev/null
fi

for id in 0 1 2 3; do
  "$gossamer" peer experiments/quickstart.toml --id $id --set run.peers=4 \
    --set run.rounds=100000000 --set log.every=200 --set net.rendezvous="$work/meeting" \
    --set net.http=127.0.0.1:0 --quiet --out "$work/network" 2>"$work/$id.err" &
  pids+=($!)
done
url=$(url_in "$work/0.err")
for id in 1 2 3; do url_in "$work/$id.err" >/dev/null; done
for i in $(seq 300); do
  [ "$(curl --silent "${url}health" | grep -c training)" = 0 ] || break
  sleep 0.1
done
kill -9 "${pids[-1]}"
test_page "one of four processes, of which another is lost" "$url"
