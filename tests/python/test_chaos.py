"""Runs the scripts of tests/chaos for a few seconds each, and tests that they detect violations."""

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from network_test_util import PeerProcess
from reference_run import TOLERANCE, PeerRecord, ReferenceRun

CHAOS = Path(__file__).resolve().parents[1] / "chaos"
sys.path.insert(0, str(CHAOS))
from chaos_test_util import LogPosition, Trial, argument_parser, run


@pytest.mark.xdist_group("chaos")  # one after the other: they measure pauses
@pytest.mark.parametrize(
    "arguments",
    [
        ("kill_and_restart", "--kills", "3", "--seed", "1"),
        ("bad_links", "--faults", "6"),
        ("partitions", "--partitions", "2"),
        ("full_disk", "--times", "1"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_network_survives(gossamer: Path, arguments: tuple[str, ...]) -> None:
    script, *options = arguments
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
            stdout, stderr = running.communicate(timeout=1200)  # longer than the script waits
        finally:
            running.send_signal(signal.SIGINT)  # a running script then cleans up
    if running.returncode == 77:
        pytest.skip(stderr.strip())
    assert running.returncode == 0, stdout + stderr
    report = json.loads(stdout)
    assert (
        max(
            report["largest_distance"],
            report["largest_loss_difference"],
            report["largest_distance_during_faults"] or 0,
        )
        <= TOLERANCE
    )
    if script == "kill_and_restart":  # with this seed, one stop exceeds the failure timeout
        assert (report["kills"], report["stops"], report["stops_beyond_timeout"]) == (3, 1, 1)
        assert report["longest_detection_seconds"] < 2  # the failure timeout


@pytest.mark.xdist_group("chaos")
def test_newcomers_join_while_others_are_killed(gossamer: Path) -> None:
    command = [sys.executable, str(CHAOS / "newcomers.py"), "--program", str(gossamer)]
    command += ["--peers", "4", "--every", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["kills"] == 4


@pytest.mark.xdist_group("chaos")
def test_machines_that_cannot_be_called_train_through_others(gossamer: Path) -> None:
    command = [sys.executable, str(CHAOS / "nat.py"), "--program", str(gossamer), "--machines", "1"]
    command += ["--kinds", "public", "rejecting firewall", "restricted cone", "symmetric", "public"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["relays_killed"], report["relayed_links"]) == (2, 3)
    assert report["ways"]["restricted cone – symmetric"] == {"relayed": 1}


class DpsgdTrial(Trial):
    """A trial without faults and without gradient tracking: no peer converges to the optimum."""

    def launch(self, peer: int) -> PeerProcess:
        return self.net.start(str(peer), "algorithm.kind=dpsgd")


def test_peers_beside_the_optimum_are_detected(
    gossamer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with DpsgdTrial(
        argument_parser(None).parse_args(
            ["--program", str(gossamer), "--peers", "4", "--every", "50"]
        )
    ) as trial:
        trial.start()
        trial.wait(0.5)
        assert trial.finish({}) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["largest_loss_difference"] < TOLERANCE < report["largest_distance"], (
        "the loss alone would not detect the deviation"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_script_removes_its_files(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial() -> int:
        with tempfile.TemporaryDirectory(dir=tmp_path):
            signal.raise_signal(number)
        return 0

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert run(trial) == 130
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert capsys.readouterr().err == "interrupted\n"
    assert not list(tmp_path.iterdir())


def test_a_deviation_of_a_tenth_exceeds_the_tolerance() -> None:
    records = {
        peer: {
            0: PeerRecord((0.0, 0.0), 2.0, 0.0, frozenset()),
            10: PeerRecord((3.0, 4.0), 1.0, 0.0, frozenset()),
        }
        for peer in range(2)
    }
    reference = ReferenceRun(records)
    assert reference.rounds_to_converge() == 10
    deviation = reference.deviation(
        {0: records[0][10], 1: PeerRecord((3.3, 4.4), 1.005, 0.0, frozenset())}
    )
    assert deviation.distance == pytest.approx(0.1)
    assert deviation.loss == pytest.approx(0.005)


def test_pauses_are_measured_by_the_times_in_the_records(tmp_path: Path) -> None:
    log = tmp_path / "log-0.jsonl"

    def write(*seconds: float, end: str = "") -> None:
        with log.open("a", encoding="utf-8") as file:
            file.writelines(
                f'{{"record":"round","round":1,"peer":0,"seconds":{each},"train_loss":null}}\n'
                for each in seconds
            )
            file.write('{"record":"deviations","round":1,"peer":0,"deviations":[]}\n' + end)

    write(1)
    position = LogPosition(log.stat().st_size, when=100)
    write()
    assert position.read(log, now=104) == 4, "a pause continues until the next round record"
    write(6, 7, end='{"record":"round","round":1,"peer":0,"seconds":9')
    assert position.read(log, now=130) == 1, "a late read does not lengthen the pause"
    with log.open("a", encoding="utf-8") as file:
        file.write("5,\n")
    assert position.read(log, now=131) == 88, (
        "from the last record that was read to one that was written in two parts"
    )
    write(96)
    assert position.read(log, now=150) == 1
    assert position.when == 150
