"""The fault simulator: hundreds of seeds, repeated from their numbers and from scenario files."""

import json
import subprocess
from pathlib import Path

# The least number of checks of each property in seeds 0 to 149: about two thirds of the present
# number, so that a property that is no longer checked is noticed.
LEAST_CHECKED = {
    "replay": 430_000,
    "log": 700_000,
    "continuity": 440_000,
    "agreement": 165_000,
    "mean": 15_500,
    "drift": 950,
    "totals": 74,
    "reachability": 13_000,
    "reinitialisation": 22_500,
    "sums": 220,
    "liveness": 178_000,
    "freshness": 690,
    "consensus": 4,
    "descent": 8,
    "optimum": 16,
    "errors": 107,
    "durability": 540,
    "termination": 1_540,
    "queues": 4_200,
    "determinism": 200,
    "bits": 15,
    "session": 12_000,
    "replica": 100_000,
    "replica_return": 110,
}


def simulate(program: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *map(str, options)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_150_seeds_with_faults_have_no_violation(simulator: Path) -> None:
    done = simulate(simulator, "--seeds", "0..149", "--faults", "swarm", "--json")
    report = json.loads(done.stdout)
    assert report["failed"] == []
    assert done.returncode == 0
    assert report["seeds"] == 150
    assert report["with_losses"] > 75
    assert report["with_restorations"] > 45
    assert report["joins"] > 50
    for name, least in LEAST_CHECKED.items():
        assert report["checked"].get(name, 0) >= least, name


def test_the_hash_does_not_depend_on_threads(simulator: Path) -> None:
    reports = [
        simulate(simulator, "--seeds", "3..22", "--threads", threads, "--json")
        for threads in (1, 3)
    ]
    hashes = {json.loads(report.stdout)["hash"] for report in reports}
    assert len(hashes) == 1


def test_a_scenario_can_be_repeated_from_its_file(simulator: Path, tmp_path: Path) -> None:
    shown = simulate(simulator, "--seeds", 17, "--print")
    assert shown.returncode == 0
    file = tmp_path / "scenario.toml"
    file.write_text(shown.stdout, encoding="utf-8")
    assert simulate(simulator, "--scenario", file, "--print").stdout == shown.stdout
    assert simulate(simulator, "--scenario", file).returncode == 0


def test_a_failing_scenario_is_reproducible_and_can_be_shrunk(
    simulator: Path, tmp_path: Path
) -> None:
    # With this step size, gradient tracking converges too slowly on a path, which is what remains
    # of the ring after the crash.
    file, smaller = tmp_path / "scenario.toml", tmp_path / "smaller.toml"
    file.write_text(
        'topology = "ring"\npeers = 6\nplacement = [0, 1, 2, 3, 4, 5]\n'
        'algorithm = "gradient_tracking"\nrounds = 200\nrate = 1.0\n'
        'faults = ["crash process=2 at=0.1", '
        '"delay process=4 other=5 at=0.2 lasts=0.1 amount=0.02"]\n',
        encoding="utf-8",
    )
    failed = simulate(simulator, "--scenario", file)
    assert failed.returncode == 1
    assert failed.stdout.startswith("  optimum: gradient_tracking's peers 0, 1, 3, 4, 5 are "), (
        failed.stdout
    )
    assert simulate(simulator, "--scenario", file).stdout == failed.stdout

    shrunk = simulate(simulator, "--scenario", file, "--shrink")
    assert shrunk.returncode == 1
    smaller.write_text(shrunk.stdout, encoding="utf-8")
    assert 'faults = [\n  "crash process=2 at=0.1",\n]\n' in shrunk.stdout, (
        "the irrelevant fault is removed"
    )
    again = simulate(simulator, "--scenario", smaller)
    assert again.returncode == 1
    assert again.stdout.startswith(shrunk.stderr) and shrunk.stderr.startswith("  optimum: "), (
        "the shrunk scenario has the reported violation"
    )


def test_invalid_options_are_rejected_with_a_message(simulator: Path, tmp_path: Path) -> None:
    wrong = (
        (("--seeds", "9..3"), "--seeds 9..3"),
        (("--faults", "flood"), "flood"),
        (("--faults", "none,crash"), "none"),
    )
    for options, named in wrong:
        done = simulate(simulator, *options)
        assert (done.returncode, named in done.stderr) == (2, True), done.stderr
    file = tmp_path / "scenario.toml"
    file.write_text('algorithm = "allreduce"\n', encoding="utf-8")
    assert simulate(simulator, "--scenario", file).returncode == 2


def test_every_planted_bug_still_applies() -> None:
    root = Path(__file__).resolve().parents[2]
    for patch in sorted((root / "tests" / "bugs").rglob("*.patch")):
        done = subprocess.run(
            ["git", "apply", "--check", str(patch)],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"
