"""`gossamer doctor CONFIG`: what a process needs, before it starts and while others run."""

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from network_test_util import DEADLINE, ReservedPort, wait_until
from test_keys import keygen

PEERS = 3


def tuple_of(address: str) -> tuple[str, int]:
    host, port = address.split(":")
    return host, int(port)


class Site:
    """Three peers with keys and fixed addresses on this machine, and a member list of all."""

    def __init__(self, program: Path, folder: Path, addresses: list[str]) -> None:
        self.program, self.folder, self.addresses = program, folder, addresses
        self.public = [self.make(f"{peer}.key") for peer in range(PEERS)]
        self.config = folder / "run.toml"
        self.write(*self.public)

    def make(self, name: str) -> str:
        done = keygen(self.program, str(self.folder / name))
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[0]

    def write(self, *keys: str) -> None:
        entries = "".join(
            f'  {{address = "{address}", key = "{key}"}},\n'
            for address, key in zip(self.addresses, keys, strict=True)
        )
        self.config.write_text(
            f"[run]\npeers = {PEERS}\nrounds = 1000000000\n[net]\npeers = [\n{entries}]\n"
            "[local]\nthreads = 1\n",
            encoding="utf-8",
        )

    def examine(self, peer: int, *options: str) -> tuple[int, dict[str, tuple[str, str]]]:
        """The exit code, and state and text by subject."""
        command = [str(self.program), "doctor", str(self.config), "--json", "--id", str(peer)]
        done = subprocess.run(
            [*command, *(options or ("--key", str(self.folder / f"{peer}.key")))],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
        report: dict[str, Any] = json.loads(done.stdout)
        found = {each["subject"]: (each["state"], each["text"]) for each in report["network"]}
        return done.returncode, found

    @contextlib.contextmanager
    def running(self, peer: int) -> Iterator[None]:
        """A process of this peer, which waits for the others."""
        command = [str(self.program), "peer", str(self.config), "--id", str(peer), "--quiet"]
        command += ["--key", str(self.folder / f"{peer}.key"), "--out", str(self.folder / "out")]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            place = tuple_of(self.addresses[peer])
            try:
                for _ in range(2000):
                    with contextlib.suppress(OSError), socket.create_connection(place):
                        break
                else:
                    raise AssertionError(process.stderr)
                yield
            finally:
                process.kill()
            assert process.stderr is not None
            assert "sent no hello" not in process.stderr.read()


@pytest.fixture
def site(gossamer: Path, tmp_path: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(ReservedPort()) for _ in range(PEERS)]
        yield Site(gossamer, tmp_path, addresses)


def test_before_the_start_the_others_have_only_to_be_started(site: Site) -> None:
    code, found = site.examine(0)
    assert code == 0
    assert found["ids"] == ("ok", "0 of 3 nodes")
    assert found["configuration"][0] == "ok" and found["memory"][0] == "ok"
    assert found["keys"] == ("ok", "this process has its own, and every node has one in the list")
    assert found["port"] == ("ok", f"{site.addresses[0]} is free")
    for peer in (1, 2):
        state, text = found[f"peer {peer}"]
        assert state == "note" and text.startswith(f"{site.addresses[peer]}: connection refused; ")


@pytest.mark.parametrize(
    ("sets", "state", "text"),
    [
        ([], "ok", "3 peers on ring; the model is the program's, and not here"),
        (["algorithm.kind=consensus"], "problem", "trains nothing, so it takes no optimizer"),
    ],
)
def test_what_a_program_cannot_do_is_found_without_it(
    site: Site, sets: list[str], state: str, text: str
) -> None:
    sets = ["topology.kind=ring", "model.kind=external", *sets]
    options = ["--key", str(site.folder / "0.key")]
    code, found = site.examine(0, *options, *(o for each in sets for o in ("--set", each)))
    assert (code == 0) == (state == "ok")
    assert found["configuration"][0] == state and text in found["configuration"][1]
    assert "program" not in found


def test_what_a_program_has_to_say_is_named(site: Site) -> None:
    sets = ["--set", "model.kind=external", "--set", "data.weights=samples"]
    code, found = site.examine(0, *sets, "--key", str(site.folder / "0.key"))
    assert code == 0 and found["configuration"][0] == "ok"
    state, text = found["program"]
    assert state == "note" and text.startswith("data.weights: it has to say how many samples")


def test_a_peer_that_runs_proves_its_key_and_is_not_disturbed(site: Site) -> None:
    with site.running(1):
        code, found = site.examine(0)
        assert code == 0
        assert found["peer 1"] == (
            "ok",
            f"{site.addresses[1]}: the peer listens there, and both know their keys",
        )
        code, found = site.examine(1)  # that of the process that runs
        assert code == 0 and found["port"] == (
            "note",
            f"{site.addresses[1]}: a process with this key listens there already",
        )
    with socket.create_server(tuple_of(site.addresses[1])):
        code, found = site.examine(1)
        assert code == 7 and "address already in use" in found["port"][1]


def test_keys_that_do_not_fit_are_named(site: Site) -> None:
    with site.running(1):
        stranger = site.make("stranger.key")
        site.write(stranger, *site.public[1:])  # peer 1 has read the list without it
        code, found = site.examine(0, "--key", str(site.folder / "stranger.key"))
        assert code == 6
        assert found["peer 1"] == (
            "problem",
            f"{site.addresses[1]}: it does not know the key of this process, {stranger}: add it "
            "to the list of members of that process (net.members, or the keys in net.peers)",
        )
        site.write(site.public[0], stranger, site.public[2])
        code, found = site.examine(0)
        assert code == 6 and found["peer 1"][0] == "problem"
        assert f"the process there has the key {site.public[1]}" in found["peer 1"][1]
    code, found = site.examine(2, "--key", str(site.folder / "0.key"))
    assert code == 2 and found["keys"][0] == "problem" and "peer 1" not in found
    code, found = site.examine(2, "--key", str(site.folder / "none.key"))
    assert code == 3 and "none.key" in found["keys"][1]


def test_a_process_that_speaks_something_else_is_named(site: Site) -> None:
    place = tuple_of(site.addresses[1])

    def greet(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"220 mail.example.org ESMTP\r\n")
            connection.recv(1000)

    with socket.create_server(place, reuse_port=False) as server:
        thread = threading.Thread(target=greet, args=(server,))
        thread.start()
        code, found = site.examine(0)
        thread.join()
    assert code == 4
    assert found["peer 1"][0] == "problem"
    assert found["peer 1"][1].startswith(f"{site.addresses[1]}: its bytes are no TLS")


def test_a_key_that_expires_soon_or_has_expired_is_named(site: Site) -> None:
    members = site.folder / "members.toml"
    site.config.write_text(
        f'[run]\npeers = {PEERS}\n[net]\nmembers = "{members}"\n', encoding="utf-8"
    )
    soon, late = (datetime.now(UTC) + timedelta(days=days) for days in (29, 31))
    for expires, state, text in (
        (f"{soon:%Y-%m-%dT%H:%M:%SZ}", "expiry", f"key of node 1 expires at {soon:%Y-%m-%d %H:%M}"),
        (f"{late:%Y-%m-%dT%H:%M:%SZ}", "keys", "this process has its own, and every node has one"),
        ("2020-01-01", "keys", "node 1 has no key in the list, or one that has expired"),
        ("2999-01-01", "keys", "this process has its own, and every node has one"),
    ):
        members.write_text(
            "".join(
                f'[[member]]\nid = {peer}\nkey = "{key}"\naddress = "{address}"\n'
                + (f"expires = {expires}\n" if peer == 1 else "")
                for peer, (key, address) in enumerate(zip(site.public, site.addresses, strict=True))
            ),
            encoding="utf-8",
        )
        _, found = site.examine(0)
        assert text in found[state][1]
        assert state == "expiry" or "expiry" not in found


def test_without_keys_it_says_so_and_finds_who_listens(site: Site) -> None:
    plain = "".join(f'"{address}", ' for address in site.addresses)
    site.config.write_text(f"[run]\npeers = 3\n[net]\npeers = [{plain}]\n", encoding="utf-8")
    place = tuple_of(site.addresses[2])
    with socket.create_server(place):
        code, found = site.examine(0, "--set", "model.kind=mlp")
    assert code == 0 and found["keys"][0] == "note"
    assert found["peer 2"] == ("ok", f"{site.addresses[2]}: a process listens there")
    code, found = site.examine(0, "--set", "topology.kind=hypercube")
    assert code == 2 and found["configuration"][0] == "problem"
    code, found = site.examine(3, "--set", "run.seed=1")
    assert code == 2 and found["ids"][0] == "problem" and "port" not in found


def test_seeds_are_asked_where_there_is_no_list(site: Site) -> None:
    site.config.write_text(
        f'[run]\npeers = 3\n[net]\nseeds = ["{site.addresses[1]}"]\n', encoding="utf-8"
    )
    place = tuple_of(site.addresses[1])
    with socket.create_server(place):
        code, found = site.examine(0, "--set", "run.seed=1")
    assert code == 0 and found["seed"][0] == "ok"


def test_what_gossamer_peer_would_refuse_is_a_problem(site: Site) -> None:
    key = ("--key", str(site.folder / "0.key"))
    with ReservedPort() as taken, socket.create_server(tuple_of(taken)):
        code, found = site.examine(0, *key, "--set", f"net.http={taken}")
        assert code == 7 and found["page"][0] == "problem"
        assert f"net.http: cannot listen at {taken}" in found["page"][1]
        with site.running(0):  # its page may be the one that listens there
            code, found = site.examine(0, *key, "--set", f"net.http={taken}")
        assert code == 0 and "page" not in found
    waits = ("algorithm.kind=teleportation", "algorithm.active=2", "checkpoint.every=10")
    code, found = site.examine(0, *key, *(o for each in waits for o in ("--set", each)))
    assert code == 2 and "with 'teleportation' most peers wait" in found["configuration"][1]
    opened = ("run.open=true", "run.participants=0-2", "topology.kind=ring")
    command = [o for each in opened for o in ("--set", each)]
    done = subprocess.run(
        [site.program, "doctor", site.config, "--id", "0,1", "--json", *command],
        capture_output=True, text=True, check=False, timeout=DEADLINE,
    )  # fmt: skip
    assert done.returncode == 2 and "run.open: each process has one peer" in done.stdout


def test_processes_are_found_in_the_rendezvous_folder(site: Site) -> None:
    folder = site.folder / "meet"
    sets = ["--set", f"net.rendezvous={folder}", "--set", "run.peers=3", "--set", "local.threads=1"]

    def examined(code: int = 0) -> dict[str, tuple[str, str]]:
        done = subprocess.run(
            [site.program, "doctor", *sets, "--id", "0", "--json"],
            capture_output=True, text=True, check=False, timeout=DEADLINE,
        )  # fmt: skip
        assert done.returncode == code, done.stdout
        report = json.loads(done.stdout)["network"]
        return {each["subject"]: (each["state"], each["text"]) for each in report}

    folder.touch()
    is_file = f"{folder} is a file, and has to be a folder"
    assert examined(3)["rendezvous"] == ("problem", is_file)
    folder.unlink()
    assert examined()["rendezvous"][0] == "note"
    out = ["--out", str(site.folder / "out"), "--quiet"]
    with contextlib.ExitStack() as stack:
        for peer, more in ((1, []), (2, ["--set", "run.seed=7"])):
            command = [site.program, "peer", *sets, *more, "--id", str(peer), *out]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(process.kill)
        wait_until("both are there", lambda: len(list(folder.glob("peer-*.addr"))) == 2)
        found = examined()
    state, text = found["peer 1"]
    assert state == "ok" and text.endswith(": a process listens there")
    state, text = found["peer 2"]
    assert state == "note" and "peer-2.addr belongs to another run: run.seed is 7 there" in text
