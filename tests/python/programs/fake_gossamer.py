#!/usr/bin/env python3
"""A fake `gossamer` program with the command line, exit codes and files of the real one.

Its curves are formulas. It makes the tests of the lab fast and can fail in ways that the real
program does not. The seed selects a failure: 13 fails, 14 succeeds without a summary, 15 never
ends, 16 writes an incomplete summary, 17 kills the process that started it, at the first attempt,
and 18 at every attempt, after which both never end. A step size above 1 diverges.
"""

import base64
import json
import math
import os
import random
import signal
import struct
import sys
import time
import tomllib
from pathlib import Path

KINDS = {"ring", "torus", "complete", "star", "hypercube"}
SECTIONS = {
    "run",
    "topology",
    "algorithm",
    "codec",
    "model",
    "data",
    "optimizer",
    "sim",
    "net",
    "local",
    "log",
}
PARAMETERS = 650


def fail(code, message):
    print(f"gossamer: {message}", file=sys.stderr)
    sys.exit(code)


def read(path, settings):
    config = tomllib.loads(Path(path).read_text())
    for setting in settings:
        name, _, text = setting.partition("=")
        section, _, key = name.partition(".")
        if section not in SECTIONS:
            fail(2, f"{name}: there is no section '{section}'")
        if key == "unknown":
            fail(2, f"{name}: unknown key")
        try:
            value = tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            value = text
        config.setdefault(section, {})[key] = value
    if config["topology"]["kind"] not in KINDS:
        fail(
            2,
            f"topology.kind: '{config['topology']['kind']}' is not one of "
            f"{', '.join(sorted(KINDS))}",
        )
    data = config.get("data", {})
    if data.get("evaluate") == "validation" and not data.get("validation"):
        fail(2, "data.evaluate: there are no validation samples")
    return config


def edge_list(kind, n):
    side = math.isqrt(n)
    if kind == "ring":
        edges = {tuple(sorted((i, (i + 1) % n))) for i in range(n)}
    elif kind == "star":
        edges = {(0, i) for i in range(1, n)}
    elif kind == "hypercube":
        edges = {
            tuple(sorted((i, i ^ (1 << b)))) for i in range(n) for b in range(n.bit_length() - 1)
        }
    elif kind == "torus":
        right = {tuple(sorted((i, i // side * side + (i + 1) % side))) for i in range(n)}
        edges = right | {tuple(sorted((i, (i + side) % n))) for i in range(n)}
    else:
        edges = {(i, j) for i in range(n) for j in range(i + 1, n)}
    return sorted(edges)


def topology_report(kind, n):
    edges = edge_list(kind, n)
    degrees = [sum(i in edge for edge in edges) for i in range(n)]
    gap = {
        "ring": 2 / 3 * (1 - math.cos(2 * math.pi / n)),
        "torus": 0.4,
        "complete": 1.0,
        "star": 1 / n,
        "hypercube": 0.4,
    }[kind]
    return {
        "topology": kind,
        "peers": n,
        "weights": "metropolis",
        "edges": len(edges),
        "degree_min": min(degrees),
        "degree_max": max(degrees),
        "diameter": {"ring": n // 2, "complete": 1, "star": 2}.get(kind, 4),
        "period": 1,
        "symmetric": True,
        "doubly_stochastic": True,
        "connected": True,
        "spectral_gap": gap,
        "bytes_per_round_per_peer": max(degrees) * PARAMETERS * 4,
    }


def state(config, report, t, noise):
    """Loss, accuracy and consensus distance at round t.

    A larger gap gives better values. A larger step learns faster and moves the peers apart. The
    loss on the validation samples prefers the smallest step.
    """
    gap, rate = report["spectral_gap"], float(config.get("optimizer", {}).get("rate", 0.1))
    speed = rate * gap**0.3 * (1 + noise)
    left = math.exp(-speed * t / 6)
    validates = config.get("data", {}).get("evaluate") == "validation"
    return {
        "loss": 0.2 + 2.1 * left + (10 * rate if validates else 0),
        "accuracy": 0.95 - 0.85 * left - 0.02 * (1 - gap),
        "consensus": 0
        if gap == 1
        else (1 - gap) * 6 * rate * (1 - math.exp(-t / 5)) * (0.1 + left),
    }


def round_record(config, report, t, peer, noise):
    now = state(config, report, t, noise)
    sent = t * report["bytes_per_round_per_peer"]
    record = {
        "record": "round",
        "round": t,
        "peer": peer,
        "seconds": t * 0.01,
        "train_loss": now["loss"] if t else None,
        "test_loss": now["loss"],
        "test_accuracy": now["accuracy"] - 0.002 * peer,
        "bytes_sent": sent,
        "bytes_received": sent,
        "train_seconds": t * 0.001,
        "wait_seconds": 0.0,
        "mix_seconds": t * 0.001,
    }
    if config.get("log", {}).get("sketch") == "on":
        side = -1 if peer % 2 else 1
        sketch = struct.pack("<2f", 1.0 + side * now["consensus"], 2.0)
        record["sketch"] = base64.b64encode(sketch).decode()
    return record


def write_run(out, config, hosted):
    """Writes the files of one process that hosts the peers `hosted`."""
    run = config["run"]
    n, rounds, seed = run["peers"], run["rounds"], run.get("seed", 0)
    report = topology_report(config["topology"]["kind"], n)
    noise = random.Random(seed).uniform(-0.15, 0.15)
    k = min(hosted)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"resolved-{k}.toml").write_text("# resolved\n")
    with (out / f"log-{k}.jsonl").open("w") as log:

        def put(record):
            log.write(json.dumps(record) + "\n")
            log.flush()

        put(
            {
                "record": "header",
                "schema": 1,
                "version": "0.1.0",
                "run_id": "ab12",
                "peers": n,
                "servers": 0,
                "hosted": hosted,
                "parameters": PARAMETERS,
                "time": "virtual" if len(hosted) == n else "real",
                "started": "2025-01-01T00:00:00Z",
                "topology": {**report, "edge_list": edge_list(report["topology"], n)},
                "config": config,
            }
        )
        for t in range(0, rounds + 1, config.get("log", {}).get("every", 1)):
            for peer in hosted:
                put(round_record(config, report, t, peer, noise))
            if len(hosted) == n:
                now = state(config, report, t, noise)
                put(
                    {
                        "record": "network",
                        "round": t,
                        "consensus_distance": now["consensus"],
                        "averaged_loss": now["loss"],
                        "averaged_accuracy": now["accuracy"],
                        "distance_to_optimum": None,
                        "averaged_distance_to_optimum": None,
                    }
                )
        if seed == 18 or (seed == 17 and not Path("killed-17").exists()):
            Path(f"killed-{seed}").touch()
            os.kill(os.getppid(), signal.SIGKILL)
            seed = 15
        if seed == 15:
            while True:
                time.sleep(0.01)
        put(
            {
                "record": "end",
                "reason": "finished",
                "message": "",
                "rounds": rounds,
                "seconds": rounds * 0.01,
                "wall_seconds": 0.1,
                "node_steps": rounds * len(hosted),
                "bytes_sent": 1,
                "refused_connections": None,
                "lending_links": None,
                "row_hashes": ["ab" * 16] * len(hosted),
            }
        )
    (out / f"final-{k}.safetensors").write_bytes(b"")


def write_summary(out, config, reason="finished"):
    run = config["run"]
    report = topology_report(config["topology"]["kind"], run["peers"])
    now = state(
        config, report, run["rounds"], random.Random(run.get("seed", 0)).uniform(-0.15, 0.15)
    )
    spread = {
        key: {"mean": now[key[5:]], "min": now[key[5:]] - 0.01, "max": now[key[5:]] + 0.01}
        for key in ("test_loss", "test_accuracy")
    }
    summary = {
        "schema": 1,
        "run_id": "ab12",
        "final_hash": f"{abs(hash(json.dumps(config))):x}",
        "reason": reason,
        "peers": run["peers"],
        "servers": 0,
        "lost_peers": [],
        "rounds": run["rounds"],
        "parameters": PARAMETERS,
        "wall_seconds": 0.1,
        "virtual_seconds": 0.2,
        "node_steps": 100,
        "node_steps_per_second": 1000.0,
        "bytes_sent": run["rounds"] * report["bytes_per_round_per_peer"] * run["peers"],
        "topology": report,
        "config": config,
        "final": {
            "train_loss": spread["test_loss"],
            **spread,
            "averaged_accuracy": now["accuracy"],
            "averaged_loss": now["loss"],
            "consensus_distance": now["consensus"],
            "distance_to_optimum": None,
            "averaged_distance_to_optimum": None,
        },
    }
    (out / "summary.json").write_text(json.dumps(summary))


def run_command(config, out):
    seed = config["run"].get("seed", 0)
    if seed == 13:
        fail(3, "data.path: the thirteenth file is missing")
    everyone = list(range(config["run"]["peers"]))
    if float(config.get("optimizer", {}).get("rate", 0.1)) > 1:
        write_summary_folder(out, config, "diverged")
        fail(8, "peer 3 diverged in round 7")
    try:
        write_run(out, config, everyone)
    except KeyboardInterrupt:
        write_summary(out, config, "interrupted")
        sys.exit(130)
    if seed == 16:
        (out / "summary.json").write_text('{"schema": 1, "reason": "fini')
    elif seed != 14:
        write_summary(out, config)


def write_summary_folder(out, config, reason):
    out.mkdir(parents=True, exist_ok=True)
    write_summary(out, config, reason)


def peer_command(config, out, peer):
    if (
        not config["net"]["listen"] == "127.0.0.1:0"
        or not Path(config["net"]["rendezvous"]).is_dir()
    ):
        fail(2, "net.rendezvous: no such folder")
    if config["run"].get("seed", 0) == 13 and peer == 1:
        fail(7, "port in use")
    write_run(out, config, [peer])


def main(argv):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("FAKE_GOSSAMER_CALLS"):
        with open(os.environ["FAKE_GOSSAMER_CALLS"], "a") as calls:
            calls.write(" ".join(argv) + "\n")
    command, target, rest = argv[0], argv[1], argv[2:]
    if command == "collect":
        header = json.loads(sorted(Path(target).glob("log-*.jsonl"))[0].open().readline())
        write_summary(Path(target), header["config"])
        return
    if command == "topology":
        print(json.dumps(topology_report(target, int(rest[rest.index("-n") + 1]))))
        return
    config = read(target, [rest[i + 1] for i, argument in enumerate(rest) if argument == "--set"])
    if "--check" in rest:
        if "--json" in rest:
            print(
                json.dumps(
                    {"peers": config["run"]["peers"], "servers": 0, "parameters": PARAMETERS}
                )
            )
        return
    out = Path(rest[rest.index("--out") + 1])
    if command == "peer":
        peer_command(config, out, int(rest[rest.index("--id") + 1]))
    else:
        run_command(config, out)


if __name__ == "__main__":
    main(sys.argv[1:])
