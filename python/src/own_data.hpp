// What a Python program says of its own data.
#pragma once

#include <nanobind/ndarray.h>

#include <cstdint>
#include <tuple>
#include <vector>

#include "peer/storage/shards_file.hpp"

namespace gossamer::python {

/// By peer: the number of samples, and the mean and the variance of each feature.
using ShardTuples =
    std::vector<std::tuple<std::uint64_t, std::vector<double>, std::vector<double>>>;

peer::Shards shards_of(const ShardTuples& tuples);

/// Mean and variance of each column of an array of shape (rows, columns), none of which is 0;
/// without Python's lock.
std::tuple<std::vector<double>, std::vector<double>> moments(
    const nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig,
                            nanobind::device::cpu>& rows);

}  // namespace gossamer::python
