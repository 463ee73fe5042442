#include "peer/watch/link_traffic.hpp"

namespace gossamer::peer {
namespace {

class CountedLink final : public gossip::Link {
 public:
  CountedLink(gossip::Link& link, std::uint64_t& bytes, std::unique_ptr<gossip::Link> owned = {})
      : owned_(std::move(owned)), link_(link), bytes_(bytes) {}

  void send(gossip::Chunk chunk) override {
    bytes_ += gossip::frame_bytes(chunk);
    link_.send(std::move(chunk));
  }
  bool delays_writer() const override { return link_.delays_writer(); }

 private:
  std::unique_ptr<gossip::Link> owned_;
  gossip::Link& link_;
  std::uint64_t& bytes_;
};

}  // namespace

std::unique_ptr<gossip::Link> LinkTraffic::counted(int from, int to,
                                                   std::unique_ptr<gossip::Link> link) {
  gossip::Link& inner = *link;
  return std::make_unique<CountedLink>(inner, bytes_[{from, to}], std::move(link));
}

gossip::Link& LinkTraffic::counted(int from, int to, gossip::Link& link) {
  links_.push_back(std::make_unique<CountedLink>(link, bytes_[{from, to}]));
  return *links_.back();
}

Json LinkTraffic::sent_by(int node) const {
  Json sent;
  for (auto link = bytes_.lower_bound({node, 0}); link != bytes_.end() && link->first.first == node;
       ++link) {
    if (link->second == 0) continue;
    if (sent.size() == kMostListed) return {};
    sent.push_back({link->first.second, link->second});
  }
  return sent;
}

}  // namespace gossamer::peer
