"""The rooms of the house: a folder of src/ includes only the folders it may, and the rooms that must be the same wherever
they run know no clock, thread, lock or container without an order."""

import re
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src"

MAY_INCLUDE = {
    "base": set(),
    "topology": {"base"},
    "theory": {"base", "topology"},
    "gpu": {"base"},
    "train": {"base", "gpu"},
    "gossip": {"base", "topology", "gpu"},
    "net": {"base", "gossip"},
    "peer": {"base", "topology", "theory", "gpu", "train", "gossip", "net"},
}
FORBIDDEN_IN_PROTOCOL = re.compile(
    r"std::(jthread|thread|mutex|shared_mutex|recursive_mutex|condition_variable|atomic|future|async|lock_guard|unique_lock|"
    r"scoped_lock|unordered_\w+|chrono::(steady|system|high_resolution)_clock|random_device|this_thread|rand\b)"
    r"|#include\s*<(thread|mutex|shared_mutex|condition_variable|atomic|future|unordered_map|unordered_set|random|ctime)>"
    r"|\b(pthread_\w+|clock_gettime|gettimeofday)\b|\b(asio::|kj::|capnp::)"
)
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def sources(room: str) -> list[Path]:
    return sorted(
        path
        for path in (SRC / room).rglob("*")
        if path.suffix in (".hpp", ".cpp", ".cu", ".cuh", ".h")
    )


def code(path: Path) -> str:
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def test_every_folder_is_a_known_room() -> None:
    rooms = {path.name for path in SRC.iterdir() if path.is_dir()}
    assert rooms <= MAY_INCLUDE.keys(), "a new room needs its place in CMakeLists.txt and here"


@pytest.mark.parametrize("room", MAY_INCLUDE)
def test_room_includes_only_rooms_above_it(room: str) -> None:
    faults = []
    for path in sources(room):
        for included in INCLUDE.findall(code(path)):
            if included.endswith(".capnp.h") and room == "net":
                continue  # generated
            target = included.split("/")[0]
            if "/" not in included or included.startswith(".."):
                faults.append(f"{path.relative_to(SRC)}: '{included}' is not rooted at src/")
            elif target in MAY_INCLUDE and target != room and target not in MAY_INCLUDE[room]:
                faults.append(
                    f"{path.relative_to(SRC)} includes {included}: {room} may not know {target}"
                )
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("room", ["topology", "theory", "gossip", "train"])
def test_protocol_and_learning_reach_the_world_through_interfaces_only(room: str) -> None:
    faults = [
        f"{path.relative_to(SRC)}: {match[0]}"
        for path in sources(room)
        for match in FORBIDDEN_IN_PROTOCOL.finditer(code(path))
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("room", [room for room in MAY_INCLUDE if room not in ("net", "peer")])
def test_sockets_and_wire_format_stay_in_net(room: str) -> None:
    faults = [
        f"{path.relative_to(SRC)}: {match[0]}"
        for path in sources(room)
        for match in re.finditer(r"#include\s*<(asio|capnp|kj|sys/socket)\b[^>]*>", code(path))
    ]
    assert not faults, "\n".join(faults)


def test_no_file_is_too_long_to_have_one_purpose() -> None:
    long = [
        f"{path.relative_to(SRC)}: {lines} lines"
        for room in MAY_INCLUDE
        for path in sources(room)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 400
    ]
    assert not long, "\n".join(long)
