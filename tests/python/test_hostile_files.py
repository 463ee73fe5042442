"""Files from strangers: each is refused by name, with little memory and processor time. The program
is hardened as those of distributions are."""

import json
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest

MOST_MEMORY = 256 << 20  # bytes that are resident at the peak
# What a terminal obeys, but for line ends, in text that was UTF-8.
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
PEAK_MEMORY = Path(__file__).parent / "programs" / "peak_memory.py"
MOST_MESSAGE = 5 << 10  # bytes: a message may quote a file, but not print it
MOST_PROCESSOR_SECONDS = 10  # 2 on an idle machine; the limit stops what does not end


def limit_time() -> None:
    seconds = MOST_PROCESSOR_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def refused(program: Path, *arguments: str | Path) -> str:
    """The message with which the program refuses; its exit code and its memory are checked."""
    with tempfile.NamedTemporaryFile("r") as peak:
        command = [sys.executable, PEAK_MEMORY, peak.name, program, *arguments]
        result = subprocess.run(command, capture_output=True, check=False, preexec_fn=limit_time)
        kibibytes = int(peak.read())
    message = result.stderr.decode()
    assert result.returncode in (2, 3), (result.returncode, message[-2000:])
    assert kibibytes * 1024 <= MOST_MEMORY, (kibibytes, message)
    assert not CONTROLS.search(message), message
    assert len(result.stderr) <= MOST_MESSAGE, (len(result.stderr), message[:2000])
    return message


def run_with(program: Path, folder: Path, *sets: str) -> str:
    """Refusal of a run with these settings, each "section.key=value"."""
    overrides = [argument for each in sets for argument in ("--set", each)]
    return refused(program, "run", "--quiet", "--out", folder / "out", *overrides)


def gzip_of_zeros(start: bytes, mebibytes: int) -> bytes:
    """gzip data of `start` and then zeros. Full flushes make all blocks of zeros the same bytes."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    packed += packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return packed + block * (mebibytes - 1)


def sparse(path: Path, start: bytes = b"", size: int = 100 << 30) -> Path:
    """A file of `size` bytes of which only `start` is on the disk."""
    with path.open("wb") as file:
        file.write(start)
        file.truncate(size)
    return path


def test_configuration_nested_deeply(gossamer: Path, tmp_path: Path) -> None:
    deep = 100_000
    texts = {
        "key": ".".join(["a"] * deep) + " = 1\n",
        "section": "[" + ".".join(["a"] * deep) + "]\n",
        "list": "[net]\npeers = " + "[" * deep + "]" * deep + "\n",
        "table": "[net]\npeers = " + "{a=" * deep + "1" + "}" * deep + "\n",
    }
    for name, text in texts.items():
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        assert f"{path}:" in refused(gossamer, "run", path)
    # Neither a long comment, a text with points, nor a list of numbers is a deep key.
    path.write_text(
        "# "
        + "." * 1000
        + '\n[run]\nid = "'
        + "." * 100
        + '"\n[net]\npeers = ['
        + ", ".join(['"a.b:1"'] * 100)
        + "]\n[run.x]\n",
        encoding="utf-8",
    )
    assert "parts" not in refused(gossamer, "run", path)


def test_json_nested_deeply_or_too_wide(gossamer: Path, tmp_path: Path) -> None:
    deep = b"[" * 1_000_000
    wide = b"{" + b",".join(b'"%d":0' % i for i in range(1_000_000)) + b"}"
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    manifest = checkpoints / "round-00000005-0.json"
    logs = tmp_path / "logs"
    logs.mkdir()
    log = logs / "log-0.jsonl"
    tensors = tmp_path / "model.safetensors"
    texts = b"[" + b",".join([b'"sixteen letters."'] * 3_300_000) + b"]"
    objects = b"[" + b",".join([b'{"a":0}'] * 2_000_000) + b"]"
    for text in (deep, b'{"a":' * 1_000_000, wide, texts, objects):
        manifest.write_bytes(text)
        assert "JSON" in refused(
            gossamer, "run", "--quiet", "--out", tmp_path / "out", "--resume", manifest
        )
        log.write_bytes(text + b"\n")
        for command in (["collect"], ["gap"], ["export", "--csv"]):
            assert str(log) in refused(gossamer, *command, logs)
        tensors.write_bytes(struct.pack("<Q", len(text)) + text)
        assert str(tensors) in refused(gossamer, "average", tensors, "--output", tmp_path / "mean")


def test_average_of_many_tensors_takes_time_in_proportion(gossamer: Path, tmp_path: Path) -> None:
    header = {
        f"tensor{i}": {"dtype": "F32", "shape": [1], "data_offsets": [4 * i, 4 * i + 4]}
        for i in range(100_000)
    }
    text = json.dumps(header).encode()
    files = []
    for name, last in (("a", b""), ("b", b""), ("c", b"\0\0\0\0")):
        path = tmp_path / name
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(400_000) + last)
        files.append(path)
    assert "do not fill the file" in refused(
        gossamer, "average", *files[1:], "--output", tmp_path / "m"
    )
    done = subprocess.run(
        [gossamer, "average", *files[:2], "--output", tmp_path / "m"],
        preexec_fn=limit_time,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_packed_images_that_claim_gigabytes(gossamer: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels"
    labels.write_bytes(struct.pack(">HBBI", 0, 8, 1, 10) + bytes(10))
    images = tmp_path / "images"
    sets = ("data.kind=idx", f"data.path={images}", f"data.labels={labels}", "data.train_count=5")
    claim = struct.pack(">HBBIII", 0, 8, 3, 1 << 22, 32, 32)  # 4 GiB
    images.write_bytes(gzip_of_zeros(claim, 4096))
    assert "may unpack to" in run_with(gossamer, tmp_path, *sets)
    small = struct.pack(">HBBIII", 0, 8, 3, 10, 2, 2)
    images.write_bytes(gzip_of_zeros(small, 4096))
    assert str(images) in run_with(gossamer, tmp_path, *sets)
    for start in (claim, small, b"\x1f\x8b\x08\0\0\0\0\0\0\3", b""):
        assert str(images) in run_with(gossamer, sparse(images, start).parent, *sets)


def test_tables_of_commas_or_without_lines(gossamer: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    sets = ("data.kind=csv", f"data.path={table}")
    table.write_bytes(b"," * (40 << 20))
    assert "fields" in run_with(gossamer, tmp_path, *sets)
    assert "line of more than" in run_with(gossamer, sparse(table).parent, *sets)


def test_files_of_many_gigabytes(gossamer: Path, tmp_path: Path) -> None:
    big = sparse(tmp_path / "big")
    assert str(big) in refused(gossamer, "run", big)
    assert str(big) in run_with(gossamer, tmp_path, "topology.kind=file", f"topology.path={big}")
    assert str(big) in refused(gossamer, "average", big, "--output", tmp_path / "mean")
    photographs = tmp_path / "data_batch_1.bin"
    for size in (100 << 30, 3073 << 25):  # neither is read before a record says what it is
        sparse(photographs, b"\x0b", size)
        assert str(photographs) in run_with(
            gossamer, tmp_path, "data.kind=cifar10", f"data.path={tmp_path}"
        )
    sparse(tmp_path / "log-0.jsonl")
    assert "log-0.jsonl" in refused(gossamer, "collect", tmp_path)


def test_tables_of_links_larger_than_the_network(gossamer: Path, tmp_path: Path) -> None:
    table = sparse(tmp_path / "table", b"1 1\n1 1\n", 256 << 20)
    for key in ("latency_file", "bandwidth_file"):
        assert f"cannot read {table}" in run_with(gossamer, tmp_path, f"sim.{key}={table}")
    for name in ("latency", "jitter", "bandwidth", "nodes"):
        sparse(tmp_path / f"{name}.txt", b"1\n", 256 << 20)
    assert "latency.txt" in run_with(gossamer, tmp_path, f"sim.probe={tmp_path}")


def test_messages_quote_a_part_of_a_file(gossamer: Path, tmp_path: Path) -> None:
    """`refused` bounds the length of every message."""
    graph, config = tmp_path / "graph.edges", tmp_path / "run.toml"
    graph.write_bytes(b"1" * (20 << 20))
    run_with(gossamer, tmp_path, "topology.kind=file", f"topology.path={graph}")
    config.write_text("[run]\n" + "k" * 1_900_000 + " = 1\n", encoding="utf-8")
    message = refused(gossamer, "run", config)
    assert "kkk…kkk" in message
    assert "unknown" in message
    table = tmp_path / "table.csv"
    table.write_bytes(b"1,2,class\n1," + b"x" * (20 << 20) + b",1\n")
    run_with(gossamer, tmp_path, "data.kind=csv", f"data.path={table}", "data.header=true")


def test_links_that_lead_to_themselves(gossamer: Path, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "there is no such folder" in refused(
        gossamer, "run", "--out", tmp_path / "out", "--resume", loop
    )
    long_name = tmp_path / ("n" * 300)
    refused(gossamer, "run", "--out", tmp_path / "out", "--resume", long_name)
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log-0.jsonl").symlink_to("log-0.jsonl")
    for options in ([], ["--resume", "auto"]):
        assert "log-0.jsonl" in refused(gossamer, "run", "--quiet", "--out", folder, *options)


def test_texts_with_a_null_character(gossamer: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('[local]\nout = "a\\u0000b"\n', encoding="utf-8")
    assert "local.out: the text has a null character" in refused(gossamer, "run", config)


@pytest.mark.parametrize("kind", ["edges", "graphml"])
def test_graphs_of_many_edges(gossamer: Path, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"graph.{kind}"
    if kind == "edges":
        path.write_bytes(b"0 1\n" * 5_000_000)
    else:
        path.write_bytes(b"<graphml><graph>" + b'<edge source="0" target="1"/>' * 4_100_000)
    assert f"{path}:" in run_with(gossamer, tmp_path, "topology.kind=file", f"topology.path={path}")


def test_pipes_do_not_block(gossamer: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    message = f"cannot read {re.escape(str(pipe))}: it is a device or a pipe"
    for refusal in (
        refused(gossamer, "run", pipe),
        run_with(gossamer, tmp_path, "topology.kind=file", f"topology.path={pipe}"),
        run_with(gossamer, tmp_path, "data.kind=csv", f"data.path={pipe}"),
        run_with(gossamer, tmp_path, "data.kind=idx", f"data.path={pipe}", "data.labels=x"),
        run_with(gossamer, tmp_path, f"sim.latency_file={pipe}"),
        refused(gossamer, "average", pipe, "--output", tmp_path / "mean"),
    ):
        assert re.search(message, refusal), refusal


@pytest.mark.parametrize("kind", ["pipe", "link that leads to itself"])
def test_no_file_in_the_place_of_an_address(gossamer: Path, tmp_path: Path, kind: str) -> None:
    """A peer that waits for another's address times out; it does not block on the pipe."""
    (tmp_path / "meet").mkdir()
    place = tmp_path / "meet" / "peer-1.addr"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to(place)
    config = tmp_path / "run.toml"
    config.write_text(
        '[run]\npeers = 2\nrounds = 1\n[net]\nlisten = "127.0.0.1:0"\nrendezvous = "meet"\n'
        "join_timeout = 1\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [gossamer, "peer", config, "--id", "0", "--out", tmp_path / "out"],
        preexec_fn=limit_time,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 4, done.stderr
    assert "peer-1.addr" in done.stderr


def readelf(program: Path, *options: str) -> str:
    return subprocess.run(
        ["readelf", "--wide", *options, program], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize(
    ("options", "words", "meaning"),
    [
        (["--file-header"], "DYN (Position-Independent Executable file)", "PIE"),
        (["--program-headers"], "GNU_RELRO", "RELRO"),
        (["--dynamic"], "BIND_NOW", "full RELRO"),
        (["--dyn-syms"], "__stack_chk_fail", "a stack protector"),
        (["--dyn-syms"], "_chk@GLIBC", "FORTIFY"),
    ],
)
def test_program_is_hardened(gossamer: Path, options: list[str], words: str, meaning: str) -> None:
    assert words in readelf(gossamer, *options), f"{gossamer} has no {meaning}"


def test_names_in_a_file_do_not_reach_the_terminal(gossamer: Path, tmp_path: Path) -> None:
    evil = "\\u001b[2J\\u009b31m\\u202e"
    config = tmp_path / "run.toml"
    for text, named in (
        (f'[run]\n"{evil}x" = 1\n', "run."),
        (f'[topology]\nkind = "{evil}ring"\n', "topology.kind"),
        (f'[run]\nid = "{evil}"\n', "run.id"),
        (f'[run]\npeers = 2\n[net]\npeers = ["{evil}host:1", "b:2"]\n', "is no address"),
    ):
        config.write_text(text, encoding="utf-8")
        assert named in refused(gossamer, "peer", config, "--id", "0")
    graph = tmp_path / "graph.txt"
    graph.write_bytes(b"0 1\n1 \x1b]0;title\x07\xff\n")
    assert "graph.txt:2" in run_with(
        gossamer, tmp_path, "run.peers=2", "topology.kind=file", f"topology.path={graph}"
    )


@pytest.mark.parametrize(
    "model",
    [
        "[[operation]]\nkind = 'dense'\n" * 60_000,
        "[[operation]]\nkind = 'add'\ninputs = [" + "'samples'," * 200_000 + "]",
        "[[operation]]\nkind = 'dense'\nunits = 10000000\n" * 2,
        "[[operation]]\nkind = 'convolution'\nchannels = 10000000\nkernel = 9999999\n"
        "padding = 9999998\n",
        "[[operation]]\nkind = 'reshape'\n" + "a." * 100_000 + "b = 1",
        "[[operation]]\nkind = 'dense'\nname = '" + "\u202e" * 100_000 + "'",
    ],
    ids=["operations", "inputs", "parameters", "padding", "key", "name"],
)
def test_model_files(gossamer: Path, tmp_path: Path, model: str) -> None:
    file = tmp_path / "model.toml"
    file.write_text(model, encoding="utf-8")
    assert "model.toml" in refused(gossamer, "model", file)


def test_a_pipe_is_no_model_file(gossamer: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.toml")
    assert "model.toml" in refused(gossamer, "model", tmp_path / "model.toml")
