"""The price of encrypted links: a ring of processes with keys against the same ring without.

    .venv/bin/python experiments/benchmarks/encryption.py [--pairs 9] [--peers 4] [--json FILE]

Both sides are those of ring.py's `gossamer`: consensus, 10 rounds of warm-up, 20 timed rounds. The
result is the median ratio of interleaved pairs in rounds per second. If the program bench_tls was
built, the speed of one stream follows, by CPU time, so that other jobs on the machine count less.
"""

from __future__ import annotations

import subprocess

from ring import argument_parser, compare, gossamer, parse

# bytes of a row → least ratio with 4 processes
ROWS = {4_000_000: 0.8, 64_000_000: 0.8}


def main() -> None:
    options = parse(argument_parser(__doc__.splitlines()[0]))
    compare(
        options,
        "encrypted ring",
        ("encrypted", "plain"),
        ROWS,
        lambda row_bytes: gossamer(options.binary, options.peers, row_bytes, encrypted=True),
        lambda row_bytes: gossamer(options.binary, options.peers, row_bytes),
    )
    stream = options.binary.with_name("bench_tls")
    if stream.exists():
        print()
        subprocess.run([str(stream)], check=True)


if __name__ == "__main__":
    main()
