// The names and shapes under which the parameters of nodes are stored in safetensors files.
#pragma once

#include <string>
#include <vector>

#include "peer/setup/row_views.hpp"
#include "peer/setup/setup.hpp"
#include "peer/storage/safetensors.hpp"

namespace gossamer::peer {

/// The first part of the names of a node's tensors: "peer<i>" or "server<i>".
std::string tensor_prefix(const Setup& setup, int node);

/// The parameters of `nodes` as tensors "peer<i>.<block>": "peer<i>.<layer>.<block>", or
/// "peer<i>.x" where nothing is trained. `rows`: the parameters of each node, in host memory; the
/// tensors point into them.
std::vector<Tensor> parameter_tensors(const Setup& setup, const std::vector<int>& nodes,
                                      const RowViews& rows);

}  // namespace gossamer::peer
