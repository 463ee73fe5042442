#include "peer/probe/process_list.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/tokens.hpp"

namespace gossamer::peer {

ProcessList::ProcessList(std::vector<int> hosted, int nodes)
    : nodes_(static_cast<std::size_t>(nodes)), processes_{std::move(hosted)} {}

std::string ProcessList::contribution() const {
  return fmt::format("{}", fmt::join(processes_.front(), " "));
}

Status ProcessList::merge(const std::string& contribution) {
  std::vector<int> hosted;
  for (const std::string_view word : tokens_of(contribution)) {
    const auto node = number_in<int>(word);
    if (!node || *node < 0 || static_cast<std::size_t>(*node) >= nodes_ ||
        (!hosted.empty() && *node <= hosted.back()))
      return Error{ErrorKind::lost_peer, "its list of the peers that it hosts is none"};
    hosted.push_back(*node);
  }
  if (hosted.empty()) return Error{ErrorKind::lost_peer, "it hosts no peer"};
  for (const std::vector<int>& known : processes_) {
    if (known == hosted) return {};
    for (const int node : hosted)
      if (std::ranges::binary_search(known, node))
        return Error{ErrorKind::lost_peer,
                     fmt::format("it hosts peer {}, as another process does", node)};
  }
  processes_.push_back(std::move(hosted));
  return {};
}

Result<std::vector<std::vector<int>>> ProcessList::processes() const {
  std::vector<std::vector<int>> sorted = processes_;
  std::ranges::sort(sorted);
  std::vector<bool> found(nodes_);
  for (const std::vector<int>& hosted : sorted)
    for (const int node : hosted) found[static_cast<std::size_t>(node)] = true;
  for (std::size_t node = 0; node < nodes_; ++node)
    if (!found[node])
      return Error{ErrorKind::lost_peer, fmt::format("no process hosts peer {}", node)};
  return sorted;
}

}  // namespace gossamer::peer
