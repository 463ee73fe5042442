"""Models of one's own: model.kind=graph in runs and networks, and `gossamer model`."""

import json
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from network_test_util import NetworkFactory

ROOT = Path(__file__).resolve().parents[3]
RESIDUAL = ROOT / "experiments" / "models" / "residual.toml"
TRANSFORMER = ROOT / "experiments" / "models" / "transformer.toml"
MLP = """
[[operation]]
kind = "dense"
units = 128
activation = "relu"
[[operation]]
kind = "dense"
"""


def call(gossamer: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([gossamer, *arguments], capture_output=True, text=True, check=False)


def shown(gossamer: Path, *arguments: str | Path) -> dict[str, Any]:
    result = call(gossamer, "model", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def refused(gossamer: Path, *arguments: str | Path) -> str:
    result = call(gossamer, "model", *arguments)
    assert result.returncode in (2, 3), result
    assert not result.stdout
    return result.stderr


def run(gossamer: Path, out: Path, *sets: str) -> dict[str, Any]:
    overrides = [argument for each in sets for argument in ("--set", each)]
    result = call(gossamer, "run", "--quiet", "--out", out, "--set", "run.peers=4", *overrides)
    assert result.returncode == 0, result.stderr
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def graph(file: Path) -> tuple[str, str]:
    return "model.kind=graph", f"model.file={file}"


def test_a_model_in_a_file_has_the_bits_of_the_same_model_of_the_library(
    gossamer: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mlp.toml"
    file.write_text(MLP, encoding="utf-8")
    sets = ("run.rounds=20", "optimizer.momentum=0.9")
    own = run(gossamer, tmp_path / "own", *sets, "model.kind=mlp")
    assert run(gossamer, tmp_path / "file", *sets, *graph(file))["final_hash"] == own["final_hash"]


@pytest.mark.parametrize("file", [RESIDUAL, TRANSFORMER], ids=lambda file: file.stem)
def test_a_network_trains_the_models_of_the_experiments_with_the_bits_of_one_process(
    gossamer: Path, network: NetworkFactory, tmp_path: Path, file: Path
) -> None:
    sets = ("optimizer.rate=0.02", "optimizer.momentum=0.9", "data.batch=16", *graph(file))
    trained = run(gossamer, tmp_path / "one", "run.rounds=150", *sets)
    assert trained["final"]["averaged_accuracy"] > 0.9, trained["final"]
    short = ("run.rounds=12", *sets)
    expected = run(gossamer, tmp_path / "short", *short)["final_hash"]
    net = network(4, *short)
    for peer in "0123":
        net.start(peer)
    assert net.wait() == [0] * 4
    assert net.summary()["final_hash"] == expected


def test_a_run_keeps_its_model(gossamer: Path, network: NetworkFactory, tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    file.write_text(MLP, encoding="utf-8")
    net = network(2, "run.rounds=4", *graph(file))
    net.start("0"), net.start("1")
    assert net.wait() == [0, 0]
    file.write_text("the file has changed", encoding="utf-8")
    expected = net.summary()["final_hash"]  # of collect, which evaluates the averaged model
    again = tmp_path / "again"
    repeated = call(gossamer, "run", "--quiet", net.out / "resolved-1.toml", "--out", again)
    assert repeated.returncode == 0, repeated.stderr
    summary = json.loads((again / "summary.json").read_text(encoding="utf-8"))
    assert summary["final_hash"] == expected
    assert (again / "model-0.toml").read_text(encoding="utf-8") == MLP


def test_the_place_of_a_model_file_is_no_part_of_the_run(
    network: NetworkFactory, tmp_path: Path
) -> None:
    net = network(2, "run.rounds=4", "model.kind=graph")
    for peer in "01":
        file = tmp_path / peer / "model.toml"
        file.parent.mkdir()
        file.write_text(MLP + f"# of peer {peer}", encoding="utf-8")
        net.start(peer, f"model.file={file}")
    assert net.wait() == [0, 0]
    net.summary()


def test_processes_with_other_files_are_refused(network: NetworkFactory, tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(MLP, encoding="utf-8")
    other.write_text(MLP.replace("relu", "tanh"), encoding="utf-8")  # the same tensors
    net = network(2, "net.join_timeout=3", "run.id=one", "model.kind=graph")
    net.start("0", f"model.file={one}")
    net.start("1", f"model.file={other}")
    assert 6 in net.wait()
    assert any("model" in process.stderr for process in net.processes)


def test_shapes_and_costs(gossamer: Path) -> None:
    model = shown(gossamer, RESIDUAL, "--input", "8x8x1", "--batch", "4")
    operations = {operation["name"]: operation for operation in model["operations"]}
    assert operations["stem"]["output"] == [8, 8, 8]
    assert operations["stem"]["parameters"] == 9 * 8 + 8
    assert operations["stem"]["settings"]["padding"] == 1
    assert operations["stem"]["tensors"] == {"stem.weights": [3, 3, 1, 8], "stem.bias": [8]}
    assert operations["first"]["inputs"] == ["first.b.norm", "stem.norm"]
    assert operations["first.a"]["forward_flops"] == 2 * 9 * 8 * 8 * 64
    assert operations["classes"]["output"] == [1, 1, 10]
    assert model["parameters"] == sum(each["parameters"] for each in model["operations"])
    edges = {(edge["from"], edge["to"]): edge["bytes"] for edge in model["edges"]}
    assert edges["samples", "stem"] == 4 * 4 * 64
    assert edges["halved", "projection"] == 4 * 4 * 4 * 4 * 8
    assert shown(gossamer, TRANSFORMER, "--input", "8x8x1")["batch"] == 32


def test_the_model_of_a_run(gossamer: Path, tmp_path: Path) -> None:
    config = tmp_path / "run.toml"
    config.write_text('[model]\nkind = "cnn"\n[data]\nbatch = 5\n', encoding="utf-8")
    model = shown(gossamer, config)
    assert (model["input"], model["classes"], model["batch"]) == ([8, 8, 1], 10, 5)
    assert [each["kind"] for each in model["operations"][:3]] == [
        "convolution",
        "group_norm",
        "max_pool",
    ]
    assert shown(gossamer, config, "--set", "model.kind=softmax")["parameters"] == 650
    config.write_text('[model]\nkind = "external"\n', encoding="utf-8")
    assert "task in Python" in refused(gossamer, config)


def test_the_batch_of_a_run_with_whole_shards_is_the_largest_one(
    gossamer: Path, tmp_path: Path
) -> None:
    config = tmp_path / "run.toml"
    config.write_text("[run]\npeers = 4\n[data]\nbatch = 0\n", encoding="utf-8")
    whole = shown(gossamer, config)["batch"]
    half = shown(gossamer, config, "--set", "data.validation=0.5")["batch"]
    assert half == pytest.approx(whole / 2, abs=1)
    unequal = shown(gossamer, config, "--set", "data.size_exponent=1")["batch"]
    assert unequal == pytest.approx(4 * whole / (1 + 1 / 2 + 1 / 3 + 1 / 4), abs=2)


def test_the_model_of_a_run_with_own_data(gossamer: Path, tmp_path: Path) -> None:
    for peer, samples in enumerate((3, 7)):
        lines = [f"{sample},{sample * sample}" for sample in range(samples)]
        (tmp_path / f"{peer}.csv").write_text("\n".join(["x,y", *lines, ""]), encoding="utf-8")
    config = tmp_path / "run.toml"
    config.write_text(
        '[run]\npeers = 2\n[data]\nkind = "csv"\npartition = "own"\npath = "{peer}.csv"\n'
        'target = "y"\ntask = "regression"\ntest_fraction = 0\nbatch = 0\n'
        '[model]\nkind = "linear"\n',
        encoding="utf-8",
    )
    assert shown(gossamer, config)["batch"] == 7


def test_the_text_names_every_operation(gossamer: Path) -> None:
    result = call(gossamer, "model", TRANSFORMER, "--input", "8x8x1")
    assert result.returncode == 0, result.stderr
    for name in ("embedded", "second.heads", "8 × 1 × 96", "heads = 4", "all"):
        assert name in result.stdout


def test_the_drawing_is_svg_with_every_operation(gossamer: Path, tmp_path: Path) -> None:
    drawing = tmp_path / "model.svg"
    assert call(gossamer, "model", RESIDUAL, "--draw", drawing).returncode == 0
    texts = [element.text for element in ET.parse(drawing).iter("{http://www.w3.org/2000/svg}text")]
    for name in ("samples", "first.b.norm", "projection", "classes", "28 × 28 × 8"):
        assert name in texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "28"), "pool does not fit"),
        (("--input", "28x28"), "write HEIGHTxWIDTHxCHANNELS"),
        (("--input", "0x1x1"), "write HEIGHTxWIDTHxCHANNELS"),
        (("--input", "1x1x1"), "pool does not fit"),
        (("--set", "run.peers=4"), "this file is a model"),
        (("--classes", "-1"), "--classes"),
        (("--draw", "model.pdf"), "--draw: model.pdf: drawings are SVG, and not '.pdf'"),
    ],
)
def test_bad_arguments(gossamer: Path, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(gossamer, RESIDUAL, *arguments)


@pytest.mark.parametrize("option", ["--input=8x8x1", "--classes=10", "--batch=4"])
def test_a_run_has_its_samples_in_its_configuration(gossamer: Path, option: str) -> None:
    quickstart = ROOT / "experiments" / "quickstart.toml"
    assert "a run has its samples" in refused(gossamer, quickstart, option)


def test_bad_files(gossamer: Path, tmp_path: Path) -> None:
    assert "nowhere.toml" in refused(gossamer, tmp_path / "nowhere.toml")
    file = tmp_path / "model.toml"
    file.write_text(MLP + "inputs = ['dence']\n", encoding="utf-8")
    assert "takes 'dence', which does not exist" in refused(gossamer, file)
    file.write_text(MLP.replace("128", "0.5"), encoding="utf-8")
    assert "model.toml:4: 0.dense.units" in refused(gossamer, file)


def test_the_documentation_shows_what_the_command_prints_and_draws(
    gossamer: Path, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "MODELS.md").read_text(encoding="utf-8")
    drawing = tmp_path / "residual.svg"
    command = [gossamer, "model", "experiments/models/residual.toml", "--draw", drawing]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert f"$ gossamer model experiments/models/residual.toml\n{printed}```" in page
    assert drawing.read_bytes() == (ROOT / "docs" / "images" / "residual.svg").read_bytes()


def test_the_documentation_describes_every_operator_and_its_parameters(gossamer: Path) -> None:
    page = (ROOT / "docs" / "MODELS.md").read_text(encoding="utf-8")
    operators = json.loads(call(gossamer, "list", "--json").stdout)["operator"]
    assert "attention" in operators
    for name, operator in operators.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        for parameter in operator["parameters"]:
            assert f"`{parameter}`" in row.rpartition("|")[0].rpartition("|")[2], (name, parameter)
