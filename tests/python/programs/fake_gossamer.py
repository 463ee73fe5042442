#!/usr/bin/env python3
"""A fake `gossamer` program with the command line, exit codes and files of the real one.

Its curves are formulas. It makes the tests of the lab fast and can fail in ways that the real
program does not. The seed selects a failure: 13 fails, 14 succeeds without a summary, 15 never
ends, 16 writes an incomplete summary, 17 kills the process that started it, at the first attempt,
and 18 at every attempt, after which both never end. A step size above 1 diverges.

The tests of the lab start it many hundred times, so that its start decides how long they take: a
module of the standard library is imported where it is needed, and json and tomllib, which take
longer than all the rest, only for texts that are not simple.
"""

import math
import os
import sys

KINDS = {"ring", "torus", "complete", "star", "hypercube"}
SECTIONS = set("run topology algorithm codec model data optimizer sim net local log".split())
PARAMETERS = 650
ENDLESS = (15, 17, 18)  # seeds of runs that an interrupt ends, even one started in the background


def fail(code, message):
    print(f"gossamer: {message}", file=sys.stderr)
    sys.exit(code)


def value_of(text):
    """The TOML value of a text; None if only tomllib can say."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    inner = text[1:-1]
    if text == f'"{inner}"' and not set(inner) & set('"\\'):
        return inner
    return {"true": True, "false": False}.get(text)


def config_of(text):
    """The tables of a configuration."""
    config = table = {}
    for line in map(str.strip, text.splitlines()):
        key, _, value = (part.strip() for part in line.partition("="))
        if line.startswith("[") and line[1:-1].isidentifier() and line.endswith("]"):
            table = config[line[1:-1]] = {}
        elif key.isidentifier() and value_of(value) is not None:
            table[key] = value_of(value)
        elif line and not line.startswith("#"):
            import tomllib

            return tomllib.loads(text)
    return config


def setting_of(text):
    """The value of an override, which is a string if it is not TOML."""
    value = value_of(text)
    if value is None and text[:1] in tuple("\"'[{+-0123456789"):
        import tomllib

        try:
            return tomllib.loads(f"v = {text}")["v"]
        except tomllib.TOMLDecodeError:
            pass
    return text if value is None else value


def to_json(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}": {to_json(each)}' for key, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(to_json, value)) + "]"
    if isinstance(value, str):
        assert value.isprintable() and not set(value) & set('"\\'), value
        return f'"{value}"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value)


def read_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write_text(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path, settings):
    config = config_of(read_text(path))
    for setting in settings:
        name, _, text = setting.partition("=")
        section, _, key = name.partition(".")
        if section not in SECTIONS:
            fail(2, f"{name}: there is no section '{section}'")
        if key == "unknown":
            fail(2, f"{name}: unknown key")
        config.setdefault(section, {})[key] = setting_of(text)
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
        import base64
        import struct

        side = -1 if peer % 2 else 1
        sketch = struct.pack("<2f", 1.0 + side * now["consensus"], 2.0)
        record["sketch"] = base64.b64encode(sketch).decode()
    return record


def noise_of(config):
    """What the seed changes in the speed of learning: ±15 %."""
    return 0.3 * (config["run"].get("seed", 0) * math.sqrt(5) % 1 - 0.5)


def write_run(out, config, hosted):
    """Writes the files of one process that hosts the peers `hosted`."""
    run = config["run"]
    n, rounds, seed = run["peers"], run["rounds"], run.get("seed", 0)
    report = topology_report(config["topology"]["kind"], n)
    noise = noise_of(config)
    k = min(hosted)
    if seed in ENDLESS:
        import signal

        signal.signal(signal.SIGINT, signal.default_int_handler)
    os.makedirs(out, exist_ok=True)
    write_text(f"{out}/resolved-{k}.toml", "# resolved\n")
    with open(f"{out}/log-{k}.jsonl", "w", encoding="utf-8") as log:

        def put(record):
            log.write(to_json(record) + "\n")
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
        if seed == 18 or (seed == 17 and not os.path.exists("killed-17")):
            write_text(f"killed-{seed}", "")
            os.kill(os.getppid(), signal.SIGKILL)
            seed = 15
        if seed == 15:
            import time

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
    write_text(f"{out}/final-{k}.safetensors", "")


def write_summary(out, config, reason="finished"):
    run = config["run"]
    report = topology_report(config["topology"]["kind"], run["peers"])
    now = state(config, report, run["rounds"], noise_of(config))
    spread = {
        key: {"mean": now[key[5:]], "min": now[key[5:]] - 0.01, "max": now[key[5:]] + 0.01}
        for key in ("test_loss", "test_accuracy")
    }
    summary = {
        "schema": 1,
        "run_id": "ab12",
        "final_hash": f"{abs(hash(to_json(config))):x}",
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
    write_text(f"{out}/summary.json", to_json(summary))


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
        write_text(f"{out}/summary.json", '{"schema": 1, "reason": "fini')
    elif seed != 14:
        write_summary(out, config)


def write_summary_folder(out, config, reason):
    os.makedirs(out, exist_ok=True)
    write_summary(out, config, reason)


def peer_command(config, out, peer):
    if not config["net"]["listen"] == "127.0.0.1:0" or not os.path.isdir(
        config["net"]["rendezvous"]
    ):
        fail(2, "net.rendezvous: no such folder")
    if config["run"].get("seed", 0) == 13 and peer == 1:
        fail(7, "port in use")
    write_run(out, config, [peer])


def main(argv):
    if os.environ.get("FAKE_GOSSAMER_CALLS"):
        with open(os.environ["FAKE_GOSSAMER_CALLS"], "a") as calls:
            calls.write(" ".join(argv) + "\n")
    command, target, rest = argv[0], argv[1], argv[2:]
    if command == "collect":
        import json

        first = min(name for name in os.listdir(target) if name.startswith("log-"))
        header = json.loads(read_text(f"{target}/{first}").partition("\n")[0])
        write_summary(target, header["config"])
        return
    if command == "topology":
        print(to_json(topology_report(target, int(rest[rest.index("-n") + 1]))))
        return
    config = read(target, [rest[i + 1] for i, argument in enumerate(rest) if argument == "--set"])
    if "--check" in rest:
        if "--json" in rest:
            peers = config["run"]["peers"]
            print(to_json({"peers": peers, "servers": 0, "parameters": PARAMETERS}))
        return
    out = rest[rest.index("--out") + 1]
    if command == "peer":
        peer_command(config, out, int(rest[rest.index("--id") + 1]))
    else:
        run_command(config, out)


if __name__ == "__main__":
    main(sys.argv[1:])
