"""Cut models with a codec: parts that are encoded one by one, in one process and apart."""

import pytest
from network_test_util import NetworkFactory
from test_whole_checkpoint import KEPT, checkpoint_after_8_rounds, resume_in_one_process
from test_workers import MLP, SLICED, start

CODED = (*MLP, "algorithm.kind=choco", "algorithm.consensus_rate=0.2")


@pytest.mark.parametrize(
    ("replicas", "layers", "sets"),
    [
        (3, 2, (*MLP, "codec.kind=int8", "run.init=different")),
        (2, 1, (*CODED, SLICED, "codec.kind=sign")),
        (2, 2, (*CODED, SLICED, "codec.kind=topk")),
        (2, 2, (*CODED, "codec.kind=randk", "codec.fraction=0.2")),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else " ".join(value),
)
def test_parts_that_are_encoded_one_by_one_have_the_bits_of_one_process(
    network: NetworkFactory, replicas: int, layers: int, sets: tuple[str, ...]
) -> None:
    cut = (*sets, f"split.layers={layers}", "topology.kind=complete", "run.rounds=4")
    net = network(replicas, *cut, "split.encode=part")
    one = net.run_in_one_process()
    workers = layers * (2 if SLICED in sets else 1)
    start(net, replicas, workers)
    assert net.wait() == [0] * replicas * workers, [peer.stderr for peer in net.processes]
    assert net.summary()["final_hash"] == one["final_hash"]
    # The whole row has other blocks and selections.
    whole = network(replicas, *cut).run_in_one_process()
    assert whole["final_hash"] != one["final_hash"]


def test_a_worker_apart_with_a_codec_of_whole_rows_is_refused(network: NetworkFactory) -> None:
    net = network(2, *MLP, "split.layers=2", "codec.kind=int8")
    refused = net.start("0.0")
    assert refused.wait() == 2
    assert "split.encode: 'int8' makes messages of whole rows of a model" in refused.stderr
    assert "set split.encode = part" in refused.stderr


def test_a_checkpoint_of_parts_that_are_encoded_goes_on_with_the_same_cut_only(
    network: NetworkFactory,
) -> None:
    cut = ("split.layers=3", "split.encode=part", "codec.kind=int8")
    net = network(2, *MLP, "topology.kind=complete", *KEPT, *cut)
    checkpoint = checkpoint_after_8_rounds(net, 3, "split.layers=3")
    resumed = resume_in_one_process(net, checkpoint)
    assert resumed["final_hash"] == net.run_in_one_process()["final_hash"]
    for other in ("split.layers=2", "split.encode=model"):
        with pytest.raises(
            AssertionError, match=f"another configuration: {other[: other.index('=')]} is"
        ):
            resume_in_one_process(net, checkpoint, other)
