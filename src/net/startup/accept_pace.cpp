#include "net/startup/accept_pace.hpp"

#include <algorithm>
#include <chrono>

namespace gossamer::net {

bool AcceptPace::admit(const std::string& host, gossip::Time now) {
  // A process at one of very many addresses makes room at the one that was silent longest.
  if (hosts_.size() >= kMaxHosts && !hosts_.contains(host))
    hosts_.erase(
        std::ranges::min_element(hosts_, {}, [](const auto& entry) { return entry.second.last; }));
  Host& of = hosts_.try_emplace(host, Host{0, now}).first->second;
  const std::chrono::duration<double> since = now - of.last;
  of.last = now;
  of.count = std::max(0.0, of.count - per_second_ * since.count());
  if (of.count + 1 > most_) return false;
  of.count += 1;
  return true;
}

void AcceptPace::on_member(const std::string& host) {
  if (const auto found = hosts_.find(host); found != hosts_.end())
    found->second.count = std::max(0.0, found->second.count - 1);
}

}  // namespace gossamer::net
