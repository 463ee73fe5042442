"""How workers of cut models, in processes of their own, learn their places and addresses."""

import contextlib
import json
import os
import subprocess

import pytest
from network_test_util import DEADLINE, Network, NetworkFactory, ReservedPort, keygen

CUT = ("model.kind=mlp", "model.hidden=[32,32,32]", "data.batch=16", "split.layers=2")


def reserved_pairs(stack: contextlib.ExitStack, count: int) -> list[str]:
    """Addresses on this machine whose ports, and the ports after them, are free."""
    pairs: list[str] = []
    while len(pairs) < count:
        host, _, port = stack.enter_context(ReservedPort()).partition(":")
        with contextlib.suppress(OSError, OverflowError):
            stack.enter_context(ReservedPort(int(port) + 1))
            pairs.append(f"{host}:{port}")
    return pairs


@pytest.mark.parametrize("keys", [False, True], ids=["plain", "keys"])
def test_workers_at_addresses_of_their_own_need_no_folder(
    network: NetworkFactory, keys: bool
) -> None:
    net = network(2, *CUT, "net.rendezvous=", "net.listen=")
    with contextlib.ExitStack() as stack:
        entries = [f'"{address}"' for address in reserved_pairs(stack, 4)]
        own = [""] * 4
        if keys:
            files = [str(net.folder / f"{k}.key") for k in range(4)]
            own = [f"net.key={file}" for file in files]
            public = [keygen(net.program, file).stdout.splitlines()[0] for file in files]
            entries = [
                f'{{address = {address}, key = "{key}"}}'
                for address, key in zip(entries, public, strict=True)
            ]
        config = net.config.read_text(encoding="utf-8")
        net.config.write_text(config + f"peers = [{', '.join(entries)}]\n", encoding="utf-8")
        for k, key in enumerate(own):
            net.start(f"{k // 2}.{k % 2}", *([key] if key else []))
        assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]


def test_a_launcher_starts_as_many_processes_as_there_are_workers(network: NetworkFactory) -> None:
    net = network(2, *CUT, "topology.kind=complete")
    environment = {**os.environ, "WORLD_SIZE": "4"}
    for rank in range(4):
        net.start_by_rank("RANK", rank, environment)
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
    refused = net.start_by_rank("RANK", 1, {**environment, "WORLD_SIZE": "3"})
    assert refused.wait() == 2
    assert "3 processes were started: start 4, and each is one worker" in refused.stderr


def examine(net: Network, worker: str) -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code of `gossamer doctor`, and state and text by subject."""
    done = subprocess.run(
        net.command("doctor", "--json", "--id", worker),
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE,
    )
    network = json.loads(done.stdout)["network"]
    return done.returncode, {each["subject"]: (each["state"], each["text"]) for each in network}


def test_doctor_looks_at_both_networks_of_a_worker(network: NetworkFactory) -> None:
    with contextlib.ExitStack() as stack:
        addresses = reserved_pairs(stack, 4)
        listed = ", ".join(f'"{address}"' for address in addresses)
        net = network(2, *CUT, f"net.peers=[{listed}]", "net.rendezvous=", "net.listen=")
        code, found = examine(net, "1.0")
        assert code == 0, found
        assert found["ids"] == ("ok", "worker 1.0: part 0 of 2, in replica 1 of 2")
        assert found["port"] == ("ok", f"{addresses[2]} is free")
        host, _, port = addresses[2].partition(":")
        assert found["second port"] == ("ok", f"{host}:{int(port) + 1} is free")
        assert found["worker 0.0"][0] == "note"  # its machine answers
        assert found["worker 0.0"][1].startswith(addresses[0])
        host, _, port = addresses[3].partition(":")
        assert found["replica 1, part 1"][1].startswith(f"{host}:{int(port) + 1}")
        parts = [found["configuration"][1]]
        for worker in ("0.1", "2.0", "0.2"):
            code, found = examine(net, worker)
            if worker == "0.1":
                parts.append(found["configuration"][1])
                continue
            assert code == 2
            assert found["ids"][0] == "problem"
        assert parts[0] != parts[1]  # the parts have other numbers of parameters
