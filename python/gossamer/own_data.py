"""Moments of the peers' own data: what they tell each other, in place of samples, to scale it.

moments = gossamer.moments(inputs)      # of this peer's samples
...                                     # the peers exchange them before the first round
scales(inputs)                          # mean 0 and deviation 1 over the samples of all peers
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gossamer import _core


@dataclass(frozen=True)
class Moments:
    """Mean and variance (of the population) of each feature over the samples of one peer.

    samples    their number, at least 1
    means      by feature
    variances  by feature; of a feature that has one value only, exactly 0
    shape      of the features, as it broadcasts over values: (64,), or (3, 1, 1) for images of 3
               channels; default: (number of features,)

    `a + b` are the moments of the samples of both, for data that are read file by file.
    """

    samples: int
    means: Sequence[float]
    variances: Sequence[float]
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(self.shape) or (len(self.means),))
        features = len(self.means)
        if features == 0 or len(self.variances) != features or math.prod(self.shape) != features:
            raise _core.Error(
                f"moments: there are {features} means, {len(self.variances)} variances and the "
                f"shape {self.shape}; each feature has one of both"
            )

    def __add__(self, other: "Moments") -> "Moments":
        if self.shape != other.shape:
            raise _core.Error(
                f"moments: features of the shapes {self.shape} and {other.shape} have no sum"
            )
        samples = self.samples + other.samples
        own, others = self.samples / samples, other.samples / samples
        means, variances = [], []
        for features in zip(self.means, self.variances, other.means, other.variances, strict=True):
            mean, variance = mean_and_variance(*features, own, others)
            means.append(mean)
            variances.append(variance)
        return Moments(samples, means, variances, self.shape)


def mean_and_variance(
    mean: float, variance: float, other_mean: float, other_variance: float, own: float, other: float
) -> tuple[float, float]:
    """Of a feature in two groups that have the parts `own` and `other` of the samples."""
    if mean == other_mean:  # exactly, so that a constant feature stays constant
        return mean, own * variance + other * other_variance
    both = own * mean + other * other_mean
    return both, (
        own * (variance + (mean - both) ** 2) + other * (other_variance + (other_mean - both) ** 2)
    )


def moments(samples: Any, axis: int | None = None) -> Moments:
    """The moments of an array or tensor whose first axis numbers the samples, in double precision.

    samples  of NumPy, PyTorch, or anything that numpy.asarray() takes; of shape (samples, …)
    axis     None: each value of a sample is a feature. 1 for images of shape (samples, channels,
             height, width): each channel is a feature, over all its pixels; -1 if channels are last

    The samples are copied as double; add the moments of parts where memory is short.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(samples, torch.Tensor):
        values: Any = samples.detach().cpu().double()
        to_last = torch.movedim
    else:
        import numpy

        values = numpy.asarray(samples, numpy.float64)
        to_last = numpy.moveaxis
    if values.ndim == 0:
        raise _core.Error("moments: give an array of samples; this is one number")
    count, *shape = values.shape
    if axis is not None:
        if not -values.ndim < axis < values.ndim or axis % values.ndim == 0:
            raise _core.Error(
                f"moments: samples of {values.ndim} axes, the first of which numbers the samples, "
                f"have no features along axis {axis}"
            )
        values = to_last(values, axis, -1)
        shape = [1] * len(shape)
        shape[axis % (len(shape) + 1) - 1] = values.shape[-1]
    width = math.prod(shape)
    if count == 0 or width == 0 or math.prod(values.shape) == 0:
        raise _core.Error(f"moments: samples of shape {tuple(values.shape)} have no value")
    means, variances = _core.moments(values.reshape(-1, width))
    return Moments(int(count), means, variances, tuple(int(size) for size in shape))


class Scales:
    """Mean and standard deviation of each feature over the samples of all peers.

    means       by feature, in double precision
    deviations  by feature; infinite for a feature that has one value only, which becomes 0
    shape       of the features, as that of Moments

    scales(values) is (values − means) / deviations, for values of NumPy or PyTorch whose shape ends
    as samples do: of their float dtype, or of float32 if they are integers.
    """

    def __init__(
        self, means: Sequence[float], deviations: Sequence[float], shape: tuple[int, ...]
    ) -> None:
        self.means, self.deviations, self.shape = tuple(means), tuple(deviations), shape
        self._converted: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, values: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            values = values if values.is_floating_point() else values.float()
            key: Any = values.dtype, values.device
            if key not in self._converted:
                self._converted[key] = (
                    torch.tensor(self.means, dtype=key[0], device=key[1]).reshape(self.shape),
                    torch.tensor(self.deviations, dtype=key[0], device=key[1]).reshape(self.shape),
                )
        else:
            import numpy

            whole = numpy.issubdtype(values.dtype, numpy.integer) or values.dtype == bool
            values = values.astype("float32") if whole else values
            key = values.dtype
            if key not in self._converted:
                self._converted[key] = (
                    numpy.array(self.means, key).reshape(self.shape),
                    numpy.array(self.deviations, key).reshape(self.shape),
                )
        means, deviations = self._converted[key]
        return (values - means) / deviations
