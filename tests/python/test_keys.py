"""Networks of real processes with keys: the same bits, changes of members, and a message for each
fault of a key."""

import os
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from network_test_util import Keys, Network, NetworkFactory, keygen, wait_until
from test_log_schema import check_folder

FOREVER = ("run.rounds=1000000000", "log.every=1", "topology.kind=ring")


def run_ring(net: Network, keys: Keys | None) -> str:
    for peer in range(4):
        net.start(str(peer), *([keys.file(peer)] if keys else []))
    assert net.wait() == [0] * 4, [peer.stderr for peer in net.processes]
    final_hash: str = net.summary()["final_hash"]
    check_folder(net.out, net.peers)
    return final_hash


def test_a_ring_with_keys_ends_with_the_bits_of_a_plain_one(network: NetworkFactory) -> None:
    sets = ("topology.kind=ring", "model.kind=mlp", "model.hidden=[40]", "net.chunk_kib=4")
    plain, keyed = network(4, *sets), network(4, *sets)
    one = plain.run_in_one_process()["final_hash"]
    assert run_ring(plain, None) == one
    assert run_ring(keyed, Keys(keyed)) == one


def test_keys_beside_the_addresses_and_one_key_for_a_process(network: NetworkFactory) -> None:
    net = network(4, "topology.kind=ring")
    public = Keys(net).public
    net.sets.pop()  # net.members
    entries = ", ".join(
        f'{{address = "127.0.0.1:{port}", key = "{public[key]}"}}'
        for port, key in ((7001, 0), (7001, 0), (7002, 2), (7003, 3))
    )
    net.config.write_text(
        f'[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\npeers = [{entries}]\n',
        encoding="utf-8",
    )
    for ids in ("0-1", "2", "3"):
        net.start(ids, f"net.key={net.folder / f'{ids[0]}.key'}")
    assert net.wait() == [0] * 3, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == net.run_in_one_process()["final_hash"]
    resolved = (net.out / "resolved-0.toml").read_text(encoding="utf-8")
    assert f'keys = ["{public[0]}", "{public[0]}", "{public[2]}", "{public[3]}"]' in resolved


def check_refused(net: Network, code: int, *texts: str, sets: tuple[str, ...]) -> None:
    peer = net.start("0", *sets)
    assert peer.wait() == code, peer.stderr
    assert all(text in peer.last_message for text in texts), peer.stderr
    assert not net.out.exists(), "no file is left"


def test_a_key_file_that_is_unreadable_damaged_or_too_open_is_named(
    network: NetworkFactory,
) -> None:
    net = network(2)
    keys = Keys(net)
    file = net.folder / "0.key"
    check_refused(net, 3, "net.key: ", "none.key", "No such file", sets=("net.key=none.key",))
    check_refused(
        net, 2, "is it the file of another process?", keys.public[1], sets=(keys.file(1),)
    )
    file.chmod(0o644)
    check_refused(net, 3, str(file), "(mode 0644): run chmod 600", sets=(keys.file(0),))
    file.chmod(0o600)
    file.write_text(file.read_text(encoding="utf-8")[:70], encoding="utf-8")
    check_refused(net, 3, str(file), "holds no Ed25519 private key", sets=(keys.file(0),))
    file.unlink()
    os.mkfifo(file, 0o600)
    check_refused(net, 3, str(file), "holds no Ed25519 private key", sets=(keys.file(0),))
    check_refused(net, 2, "net.key: ", "gossamer keygen", sets=("net.key=",))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[member]]\nid = 0\n", "members.toml:1: this member has no key"),
        ('[[member]]\nid = 0\nkey = "abc"\n', "members.toml:3: 'abc' is no public key"),
        ("[[member]]\nid = -1\n", "members.toml:2: the id of a member is a number"),
        ("[[member]]\nname = 1\n", "members.toml:2: member.name: unknown"),
        ("[net]\n", "this is no list of members"),
        ("[[member]]\nexpires = 2027-03-01T12:00:00\n", "members.toml:2: expires is a day, as "),
        ('[[member]]\nexpires = "2027-03-01"\n', "members.toml:2: expires is a day, as 2027-"),
        ("[[member]]\nid = \n", "members.toml:2: not TOML"),
    ],
)
def test_a_damaged_file_of_members_is_named(
    network: NetworkFactory, text: str, message: str
) -> None:
    net = network(2)
    keys = Keys(net)
    keys.write_text(text)
    check_refused(net, 2, message, sets=(keys.file(0),))


def test_a_process_whose_key_the_others_do_not_know_is_rejected(network: NetworkFactory) -> None:
    net = network(2)
    keys = Keys(net)
    public = keys.make("new.key")
    own_list = net.folder / "own.toml"
    own_list.write_text(
        f'[[member]]\nid = 0\nkey = "{public}"\n[[member]]\nid = 1\nkey = "{keys.public[1]}"\n',
        encoding="utf-8",
    )
    other = net.start("1", keys.file(1))
    peer = net.start("0", f"net.members={own_list}", f"net.key={net.folder / 'new.key'}")
    assert peer.wait() == 6, peer.stderr
    assert f"it does not know the key of this process, {public}" in peer.last_message
    other.wait_for_message(f"its key {public} is that of no member")
    assert other.process.poll() is None, "a refused key ends no other process"


def test_a_key_that_has_expired_is_refused(network: NetworkFactory) -> None:
    """By its own process, and by the others if the list of that process says nothing of it."""
    net = network(2)
    keys = Keys(net)
    kept = keys.members.read_text(encoding="utf-8")
    expired = kept.replace("id = 0\n", "id = 0\nexpires = 2020-01-01\n")
    assert expired != kept
    keys.write_text(expired)
    check_refused(net, 2, f"is {keys.public[0]}, which has expired by ", sets=(keys.file(0),))
    other = net.start("1", keys.file(1))
    other.wait_for_message("waiting for")
    own_list = net.folder / "own.toml"
    own_list.write_text(kept, encoding="utf-8")
    peer = net.start("0", f"net.members={own_list}", keys.file(0))
    assert peer.wait() == 6, peer.stderr
    assert f"it does not know the key of this process, {keys.public[0]}" in peer.last_message
    other.wait_for_message(f"its key {keys.public[0]} has expired")
    assert other.process.poll() is None, "a refused key ends no other process"


def test_a_key_expires_while_the_network_runs(network: NetworkFactory) -> None:
    net = network(3, *FOREVER)
    keys = Keys(net)
    peers = [net.start(str(k), keys.file(k)) for k in range(3)]
    net.wait_until_training(0, 1, 2)
    ends = datetime.now(UTC) + timedelta(seconds=3)
    text = keys.members.read_text(encoding="utf-8")
    keys.write_text(text.replace("id = 2\n", f"id = 2\nexpires = {ends:%Y-%m-%dT%H:%M:%SZ}\n"))
    for peer in peers[:2]:
        peer.wait_for_message(f"net.members: {keys.members} was read again")
        peer.wait_for_message(f"net.members: the key {keys.public[2]} of peer 2 has expired")
        peer.wait_for_message(f"was cut off: its key {keys.public[2]} has expired")
        assert peer.process.poll() is None
    assert datetime.now(UTC) >= ends.replace(microsecond=0)


def test_workers_whose_key_is_revoked_lose_each_other(network: NetworkFactory) -> None:
    """The workers of a replica read the list too, and it is that of their replica's key."""
    net = network(2, *FOREVER, "model.kind=mlp", "model.hidden=[8]", "split.layers=2")
    keys = Keys(net)
    workers = [net.start(f"{k // 2}.{k % 2}", keys.file(k // 2)) for k in range(4)]
    wait_until(
        "replica 0 trains",
        lambda: (
            (net.out / "part0of2" / "log-0.jsonl").is_file()
            and (net.out / "part0of2" / "log-0.jsonl").read_text(encoding="utf-8").count("\n") > 5
        ),
    )
    keys.write(keys.public[0], keys.make("new.key"))
    for worker in workers[2:]:
        assert worker.wait() != 0
        assert "replica 1 is no longer whole" in worker.stderr
    assert all(worker.process.poll() is None for worker in workers[:2])


def test_members_change_while_the_network_runs(network: NetworkFactory) -> None:
    net = network(4, *FOREVER)
    keys = Keys(net)
    peers = [net.start(str(k), keys.file(k)) for k in range(4)]
    net.wait_until_training(0, 1, 2, 3)

    # A damaged list is reported, and the one before it stays.
    keys.write_text("[[member]]\n")
    for peer in peers:
        peer.process.send_signal(signal.SIGHUP)
        peer.wait_for_message("net.members: the list of members stays as it was: ")
    # Peer 3 is revoked: its neighbours are told by SIGHUP, the others find the change.
    new = keys.make("new.key")
    keys.write(*keys.public[:3], new)
    for peer in (peers[0], peers[2]):
        peer.process.send_signal(signal.SIGHUP)
        peer.wait_for_message(f"was cut off: its key {keys.public[3]}")
    peers[1].wait_for_message(f"net.members: {keys.members} was read again")
    assert all(peer.process.poll() is None for peer in peers[:3])
    # Another process takes its place with the new key.
    peers[3].kill()
    (net.out / "log-3.jsonl").unlink()
    returned = net.start("3", f"net.key={net.folder / 'new.key'}")
    net.wait_until_training(3)
    wait_until(
        "the link is restored",
        lambda: '"link_restored"' in (net.out / "log-0.jsonl").read_text(encoding="utf-8"),
    )
    assert returned.process.poll() is None


def test_keygen_writes_a_private_file_once_and_prints_its_public_key(
    gossamer: Path, tmp_path: Path
) -> None:
    file = tmp_path / "peer.key"
    made = keygen(gossamer, str(file))
    assert made.returncode == 0, made.stderr
    assert file.stat().st_mode & 0o777 == 0o600
    public = made.stdout.splitlines()[0]
    assert len(public) == 44 and f'key = "{public}"' in made.stdout
    content = file.read_bytes()
    assert keygen(gossamer, "--show", str(file)).stdout == made.stdout
    again = keygen(gossamer, str(file))
    assert again.returncode == 3 and "never overwritten" in again.stderr
    assert file.read_bytes() == content
    assert keygen(gossamer, str(tmp_path / "no" / "peer.key")).returncode == 3
