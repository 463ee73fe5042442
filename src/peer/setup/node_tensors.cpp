#include "peer/setup/node_tensors.hpp"

#include <fmt/format.h>

namespace gossamer::peer {

std::string tensor_prefix(const Setup& setup, int node) {
  return fmt::format("{}{}", setup.is_server(node) ? "server" : "peer", node);
}

std::vector<Tensor> parameter_tensors(const Setup& setup, const std::vector<int>& nodes,
                                      const RowViews& rows) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const train::ParameterBlock& block : setup.workload->spec().blocks)
      tensors.push_back({fmt::format("{}.{}", tensor_prefix(setup, nodes[i]), block.name),
                         {block.shape.begin(), block.shape.end()},
                         rows[i].subspan(block.offset, block.length)});
  return tensors;
}

}  // namespace gossamer::peer
