"""`gossamer simulate`: hundreds of seeds with faults, repeated from their numbers and from files."""

import json
import subprocess
from pathlib import Path


# How often each property is looked at in seeds 0 to 499: about two thirds of what was found, so that none goes unlooked at unseen.
LEAST_CHECKED = {
    "replay": 1_000_000,
    "log": 1_800_000,
    "chain": 1_000_000,
    "edges": 400_000,
    "mean": 40_000,
    "drift": 3_000,
    "totals": 200,
    "reach": 30_000,
    "restarts": 60_000,
    "sums": 600,
    "healing": 300_000,
    "reuse": 4_000,
    "consensus": 20,
    "descent": 35,
    "optimum": 50,
    "faults": 500,
    "disk": 800,
    "progress": 5_000,
    "queues": 8_000,
    "repeats": 500,
    "bits": 60,
    "session": 40_000,
}


def simulate(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), "simulate", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_500_seeds_with_faults_violate_nothing(gossamer: Path) -> None:
    done = simulate(gossamer, "--seeds", "0..499", "--faults", "swarm", "--json")
    report = json.loads(done.stdout)
    assert report["failed"] == []
    assert done.returncode == 0
    assert report["seeds"] == 500
    assert report["with_losses"] > 250
    assert report["with_returns"] > 150
    assert report["joins"] > 100
    for name, least in LEAST_CHECKED.items():
        assert report["checked"].get(name, 0) >= least, name


def test_the_hash_does_not_depend_on_threads(gossamer: Path) -> None:
    reports = [
        simulate(gossamer, "--seeds", "3..22", "--threads", threads, "--json") for threads in (1, 3)
    ]
    hashes = {json.loads(report.stdout)["hash"] for report in reports}
    assert len(hashes) == 1


def test_a_scenario_can_be_repeated_from_its_file(gossamer: Path, tmp_path: Path) -> None:
    shown = simulate(gossamer, "--seeds", 17, "--print")
    assert shown.returncode == 0
    file = tmp_path / "scenario.toml"
    file.write_text(shown.stdout, encoding="utf-8")
    assert simulate(gossamer, "--scenario", file, "--print").stdout == shown.stdout
    assert simulate(gossamer, "--scenario", file).returncode == 0


def test_a_scenario_that_fails_does_so_again_and_is_made_smaller(
    gossamer: Path, tmp_path: Path
) -> None:
    # A step size that gradient tracking does not bear on what is left of the ring: a path comes to its optimum later than it must.
    file, smaller = tmp_path / "scenario.toml", tmp_path / "smaller.toml"
    file.write_text(
        'topology = "ring"\npeers = 6\nhomes = [0, 1, 2, 3, 4, 5]\nalgorithm = "gradient_tracking"\nrounds = 200\n'
        'rate = 1.0\nfaults = ["crash process=2 at=0.1", "delay process=4 other=5 at=0.2 lasts=0.1 amount=0.02"]\n',
        encoding="utf-8",
    )
    failed = simulate(gossamer, "--scenario", file)
    assert failed.returncode == 1
    assert failed.stdout.startswith("  optimum: gradient_tracking's peers 0, 1, 3, 4, 5 are "), (
        failed.stdout
    )
    assert simulate(gossamer, "--scenario", file).stdout == failed.stdout

    shrunk = simulate(gossamer, "--scenario", file, "--shrink")
    assert shrunk.returncode == 1
    smaller.write_text(shrunk.stdout, encoding="utf-8")
    assert 'faults = [\n  "crash process=2 at=0.1",\n]\n' in shrunk.stdout, (
        "what has no part in it is left out"
    )
    again = simulate(gossamer, "--scenario", smaller)
    assert again.returncode == 1
    assert again.stdout.startswith(shrunk.stderr) and shrunk.stderr.startswith("  optimum: "), (
        "what was said of it is what it does"
    )


def test_what_cannot_be_is_said_in_words(gossamer: Path, tmp_path: Path) -> None:
    wrong = (
        (("--seeds", "9..3"), "--seeds 9..3"),
        (("--faults", "flood"), "flood"),
        (("--faults", "none,crash"), "none"),
    )
    for words, part in wrong:
        done = simulate(gossamer, *words)
        assert (done.returncode, part in done.stderr) == (2, True), done.stderr
    file = tmp_path / "scenario.toml"
    file.write_text('algorithm = "allreduce"\n', encoding="utf-8")
    assert simulate(gossamer, "--scenario", file).returncode == 2


def test_the_bugs_that_it_is_to_find_can_still_be_planted() -> None:
    root = Path(__file__).resolve().parents[2]
    for patch in sorted((root / "tests" / "bugs").glob("*.patch")):
        done = subprocess.run(
            ["git", "apply", "--check", str(patch)],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{patch.name}: {done.stderr}"
