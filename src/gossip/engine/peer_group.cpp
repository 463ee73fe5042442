#include "gossip/engine/peer_group.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "gossip/process/options.hpp"

namespace gossamer::gossip {
namespace {

ExchangeOptions completed(const GroupRequest& request, std::function<int(int)> gpu_of) {
  ExchangeOptions options = request.exchange;
  options.channels = channels_of(request.algorithm.rows(request.schedule), request.layout.length);
  options.gpu_of = std::move(gpu_of);
  return options;
}

}  // namespace

PeerGroup::PeerGroup(GroupRequest request, EngineHooks& hooks, Exchange::OnFault on_fault)
    : algorithm_(request.algorithm),
      hosted_(request.hosted),
      memory_(request.memory, request.algorithm.rows(request.schedule), request.layout, hosted_,
              request.initialise),
      exchange_(request.scheduler, request.compute, request.schedule,
                completed(request, [this](int node) { return gpu_of(node); }), hosted_,
                std::move(on_fault)),
      donors_(request.schedule) {
  for (std::size_t index = 0; index < hosted_.size(); ++index) {
    NodeMemory memory = memory_.of(index);
    memory.counters = algorithm_.counters(hosted_[index], request.schedule);
    engines_.push_back(std::make_unique<PeerEngine>(
        exchange_, algorithm_, hosted_[index], std::move(memory), request.engine, donors_, hooks));
  }
}

PeerGroup::~PeerGroup() {
  for (const auto& engine : engines_) engine->end();
}

bool PeerGroup::hosts(int node) const { return std::ranges::binary_search(hosted_, node); }

std::size_t PeerGroup::index_of(int node) const {
  GOSSAMER_CHECK(hosts(node), "a node of another process");
  return static_cast<std::size_t>(std::ranges::lower_bound(hosted_, node) - hosted_.begin());
}

int PeerGroup::gpu_of(int node) const { return hosts(node) ? memory_.gpu_of(index_of(node)) : 0; }

void PeerGroup::connect_hosted(MakeLink make) {
  exchange_.connect_hosted([this, make = std::move(make)](int from, int to) -> Link& {
    return *links_.emplace_back(make(from, to));
  });
}

void PeerGroup::tolerate_loss(const std::function<Membership::Options(int node)>& plan) {
  const bool both_ways = topology::is_undirected(exchange_.schedule());
  for (const auto& engine : engines_) {
    Membership::Options options = plan(engine->id());
    options.exchanges_both_ways = both_ways;
    engine->tolerate_loss(std::move(options));
  }
}

void PeerGroup::join(const std::vector<std::pair<int, int>>& connected) {
  for (const auto& engine : engines_) engine->join();
  for (const auto& [here, there] : connected) engine(here).membership().on_link_restored(there);
  for (const int here : hosted_)
    for (const int there : algorithm_.partners(here, exchange_.schedule()))
      if (hosts(there)) engine(here).membership().on_link_restored(there);
}

void PeerGroup::reset_link(int a, int b, const std::string& why) {
  engine(a).membership().on_link_lost(b, why);
  engine(b).membership().on_link_lost(a, why);
  engine(a).membership().on_link_restored(b);
  engine(b).membership().on_link_restored(a);
}

void PeerGroup::interrupt() {
  if (stop_after_) return;
  Round furthest = 0;
  for (const auto& engine : engines_) furthest = std::max(furthest, engine->begun());
  stop_after_ = furthest;
  for (const auto& engine : engines_) engine->stop_after(furthest);
}

bool PeerGroup::finished() const {
  return std::ranges::all_of(engines_, [](const auto& engine) { return engine->finished(); });
}

Round PeerGroup::rounds_done() const {
  Round least = engines_.front()->round();
  for (const auto& engine : engines_) least = std::min(least, engine->round());
  return least;
}

Round PeerGroup::rounds_left_out() const {
  Round most = 0;
  for (const auto& engine : engines_)
    most = std::max(most, engine->participation().rounds_left_out());
  return most;
}

std::shared_ptr<const std::vector<std::vector<int>>> partners_of_all(
    const Algorithm& algorithm, const topology::MixingSchedule& schedule, int nodes) {
  std::vector<std::vector<int>> partners;
  for (int node = 0; node < nodes; ++node) partners.push_back(algorithm.partners(node, schedule));
  return std::make_shared<const std::vector<std::vector<int>>>(std::move(partners));
}

}  // namespace gossamer::gossip
