#include "gossip/node/node_rows.hpp"

#include <algorithm>

namespace gossamer::gossip {

NodeRows::NodeRows(Exchange& exchange, int id, int peers, const std::vector<RowSpec>& rows,
                   const NodeMemory& memory)
    : exchange_(exchange),
      endpoint_(exchange.endpoint(id)),
      specs_(rows),
      memory_(memory),
      id_(id),
      peers_(peers),
      counters_(memory.counters) {
  GOSSAMER_CHECK(rows.size() <= exchange.options().channels.size(), "a row without a channel");
  for (std::size_t k = 0; k < rows.size(); ++k) {
    rows_.push_back(std::make_unique<MixedRow>());
    rows_.back()->front().attach(exchange.scheduler(), memory.front[k]);
    if (rows[k].mixed) rows_.back()->back().attach(exchange.scheduler(), memory.back[k]);
  }
  gradient_row_.attach(exchange.scheduler(), memory.gradient);
}

float NodeRows::value(int k, std::size_t index) {
  float value = 0;
  exchange_.compute().device().download(&value, &row(k)[index], sizeof(float));
  return value;
}

task<void> NodeRows::reinitialise_rows() {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].survives && specs_[k].rejoin != RowSpec::Rejoin::from_donor)
      co_await reinitialise(k);
}

task<void> NodeRows::reinitialise_sums() {
  for (std::size_t k = 0; k < specs_.size(); ++k)
    if (specs_[k].survives && specs_[k].rejoin == RowSpec::Rejoin::reinitialise)
      co_await reinitialise(k);
}

task<void> NodeRows::reinitialise(std::size_t k) {
  const std::span<float> row = this->row(static_cast<int>(k)),
                         values = row.first(row.size() - specs_[k].extra);
  co_await fill(row.subspan(values.size()), specs_[k].extra_initial);
  if (specs_[k].initial == RowSpec::Initial::parameters)
    co_await copy(x().first(values.size()), values);
  else co_await fill(values, 0.0F);
}

bool NodeRows::conserves_sums() const {
  return std::ranges::any_of(specs_, [](const RowSpec& row) { return row.conserved_sum; });
}

}  // namespace gossamer::gossip
