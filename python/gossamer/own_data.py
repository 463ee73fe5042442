"""Moments of the peers' own data: what they tell each other, in place of samples, to scale it.

moments = gossamer.moments(inputs)      # of this peer's samples
...                                     # the peers exchange them before the first round
scales(inputs)                          # mean 0 and deviation 1 over the samples of all peers
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
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

    `a + b` are the moments of the samples of both, for data that are read file by file. Where a
    sample has several values of a feature (moments() with an axis), all samples have as many.
    """

    samples: int
    means: Sequence[float]
    variances: Sequence[float]
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.samples, bool) or not isinstance(self.samples, Integral):
            raise _core.Error(f"moments: {self.samples!r} is no number of samples; it is an int")
        if not 0 < self.samples < 2**63:
            raise _core.Error(f"moments: of {self.samples} samples; a peer has one at least")
        try:
            means, variances = (tuple(map(float, each)) for each in (self.means, self.variances))
        except (TypeError, ValueError) as error:
            raise _core.Error("moments: means and variances are numbers, one by feature") from error
        features = len(means)
        object.__setattr__(self, "means", means)
        object.__setattr__(self, "variances", variances)
        object.__setattr__(self, "shape", tuple(self.shape) or (features,))
        if features == 0 or len(self.variances) != features or math.prod(self.shape) != features:
            raise _core.Error(
                f"moments: there are {features} means, {len(self.variances)} variances and the "
                f"shape {self.shape}; each feature has one of both"
            )

    def __radd__(self, other: Any) -> "Moments":
        """For sum(), which begins with 0."""
        return self if other == 0 else NotImplemented

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
    as samples do: of their float dtype (computed in float32 at least), or of float32 if they are
    integers (computed in double).
    """

    def __init__(
        self, means: Sequence[float], deviations: Sequence[float], shape: tuple[int, ...]
    ) -> None:
        self.means, self.deviations, self.shape = tuple(means), tuple(deviations), shape
        self._converted: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, values: Any) -> Any:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            result = values.dtype if values.is_floating_point() else torch.float32
            small = values.is_floating_point() and values.dtype != torch.float64
            inner = torch.float32 if small else torch.float64
            means, deviations = self._tensors(inner, values.device)
            return ((values.to(inner) - means) / deviations).to(result)
        kind = str(values.dtype)
        result = values.dtype if "float" in kind else "float32"
        inner = "float32" if "float" in kind and kind != "float64" else "float64"
        means, deviations = self._arrays(inner)
        return ((values.astype(inner) - means) / deviations).astype(result)

    def _tensors(self, dtype: Any, device: Any) -> tuple[Any, Any]:
        """Means and deviations as tensors."""
        import torch

        if (dtype, device) not in self._converted:
            with torch.inference_mode(False):  # they are used by other calls, too
                means = torch.tensor(self.means, dtype=dtype, device=device)
                deviations = torch.tensor(self.deviations, dtype=dtype, device=device)
                deviations[deviations == 0] = math.inf  # too small for the type: it is constant
                self._converted[dtype, device] = (
                    means.reshape(self.shape),
                    deviations.reshape(self.shape),
                )
        return self._converted[dtype, device]

    def _arrays(self, dtype: str) -> tuple[Any, Any]:
        """Means and deviations as arrays."""
        import numpy

        if dtype not in self._converted:
            deviations = numpy.array(self.deviations, dtype)
            deviations[deviations == 0] = math.inf  # too small for the type: it is constant
            self._converted[dtype] = (
                numpy.array(self.means, dtype).reshape(self.shape),
                deviations.reshape(self.shape),
            )
        return self._converted[dtype]
