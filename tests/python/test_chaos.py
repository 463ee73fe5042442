"""The scripts of tests/chaos, for a few seconds each: that they work, and that what they hold the network to is true; and that they
would see it if it were not."""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from network_test_util import Peer
from standing import NEAR, Record, Undisturbed

CHAOS = Path(__file__).resolve().parents[1] / "chaos"
sys.path.insert(0, str(CHAOS))
from chaos_test_util import Seen, Trial, parser, run


@pytest.mark.parametrize(
    "words",
    [
        ("kill_and_restart", "--kills", "3", "--seed", "1"),
        ("bad_links", "--faults", "6"),
        ("partitions", "--partitions", "2"),
        ("full_disk", "--times", "1"),
    ],
    ids=lambda words: words[0],
)
def test_a_network_bears_it(gossamer: Path, words: tuple[str, ...]) -> None:
    script, *options = words
    command = [
        sys.executable,
        str(CHAOS / f"{script}.py"),
        "--program",
        str(gossamer),
        "--peers",
        "4",
        "--every",
        "50",
        *options,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            found, said = running.communicate(timeout=1200)  # beyond the script's own patience
        finally:
            running.send_signal(
                signal.SIGINT
            )  # where it still runs it ends its processes, and what else it made
    if running.returncode == 77:
        pytest.skip(said.strip())
    assert running.returncode == 0, found + said
    report = json.loads(found)
    assert (
        max(
            report["largest_distance"],
            report["largest_loss_difference"],
            report["largest_distance_meanwhile"] or 0,
        )
        <= NEAR
    )
    if (
        script == "kill_and_restart"
    ):  # this seed stops one for longer than the silence, which is not among the kills
        assert (report["kills"], report["stops"], report["stops_beyond_silence"]) == (3, 1, 1)
        assert report["longest_detection_seconds"] < 2  # the silence


class OfAnotherAlgorithm(Trial):
    """Nothing is done to it, but its peers do not track gradients, so each ends beside the optimum."""

    def launch(self, peer: int) -> Peer:
        return self.net.start(str(peer), "algorithm.kind=dpsgd")


def test_who_ends_elsewhere_is_found(gossamer: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with OfAnotherAlgorithm(
        parser(None).parse_args(["--program", str(gossamer), "--peers", "4", "--every", "50"])
    ) as trial:
        trial.start()
        trial.wait(0.5)
        assert trial.settle({}) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["largest_loss_difference"] < NEAR < report["largest_distance"], (
        "the loss would not have told"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_is_stopped_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial() -> int:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            signal.raise_signal(number)
        return 0

    before = signal.getsignal(signal.SIGTERM)
    try:
        assert run(trial) == 130
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "interrupted\n"
    assert not list(tmp_path.iterdir())


def test_a_tenth_beside_the_optimum_is_not_near() -> None:
    standings = {
        peer: {
            0: Record((0.0, 0.0), 2.0, 0.0, frozenset()),
            10: Record((3.0, 4.0), 1.0, 0.0, frozenset()),
        }
        for peer in range(2)
    }
    undisturbed = Undisturbed(standings)
    assert undisturbed.rounds_needed() == 10
    beside = undisturbed.difference(
        {0: standings[0][10], 1: Record((3.3, 4.4), 1.005, 0.0, frozenset())}
    )
    assert beside.distance == pytest.approx(0.1)
    assert beside.loss == pytest.approx(0.005)


def test_a_pause_is_what_the_records_say_however_late_one_looks(tmp_path: Path) -> None:
    log = tmp_path / "log-0.jsonl"

    def write(*seconds: float, end: str = "") -> None:
        with log.open("a", encoding="utf-8") as file:
            file.writelines(
                f'{{"record":"round","round":1,"peer":0,"seconds":{each},"train_loss":null}}\n'
                for each in seconds
            )
            file.write('{"record":"deviations","round":1,"peer":0,"deviations":[]}\n' + end)

    write(1)
    seen = Seen(log.stat().st_size, when=100)
    write()
    assert seen.read(log, now=104) == 4, (
        "one that goes on, though others than records of rounds have come"
    )
    write(6, 7, end='{"record":"round","round":1,"peer":0,"seconds":9')
    assert seen.read(log, now=130) == 1, "who looked was late"
    with log.open("a", encoding="utf-8") as file:
        file.write("5,\n")
    assert seen.read(log, now=131) == 88, (
        "from the last one looked at, to one that has come in two halves"
    )
    write(96)
    assert seen.read(log, now=150) == 1
    assert seen.when == 150
