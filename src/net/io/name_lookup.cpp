#include "net/io/name_lookup.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <array>
#include <cctype>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace gossamer::net {

struct NameLookup::State : std::enable_shared_from_this<State> {
  State(Post post_in, Lookup lookup_in) : post(std::move(post_in)), lookup(std::move(lookup_in)) {}

  /// With the lock held.
  void start(const std::string& name) {
    try {
      std::thread([self = shared_from_this(), name] { self->run(name); }).detach();
      ++threads;
    } catch (const std::system_error& error) {
      report(name, Error{ErrorKind::network, error.what()});
    }
  }

  void run(std::string name) {
    while (true) {
      const Result<Addresses> found = lookup(name);
      const std::lock_guard lock(mutex);
      report(name, found);
      if (waiting.empty()) {
        --threads;
        return;
      }
      name = std::move(waiting.front());
      waiting.pop_front();
    }
  }

  /// With the lock held.
  void report(const std::string& name, const Result<Addresses>& found) {
    if (!post) return;
    post([self = shared_from_this(), name, found] {
      std::vector<Done> users;
      {
        const std::lock_guard lock(self->mutex);
        if (!self->post) return;
        users = std::move(self->users.extract(name).mapped());
      }
      for (const Done& done : users) done(found);
    });
  }

  std::mutex mutex;
  Post post;  ///< empty: the owner is gone
  const Lookup lookup;
  std::map<std::string, std::vector<Done>> users;  ///< of names that are looked up, or wait for it
  std::deque<std::string> waiting;
  std::size_t threads = 0;
};

NameLookup::NameLookup(Post post, Lookup lookup)
    : state_(std::make_shared<State>(std::move(post), std::move(lookup))) {}

NameLookup::~NameLookup() {
  const std::lock_guard lock(state_->mutex);
  state_->post = nullptr;
  state_->users.clear();
  state_->waiting.clear();
}

void NameLookup::resolve(const std::string& name, Done done) {
  const std::lock_guard lock(state_->mutex);
  std::vector<Done>& users = state_->users[name];
  users.push_back(std::move(done));
  if (users.size() > 1) return;
  if (state_->threads < kMostThreads) state_->start(name);
  else state_->waiting.push_back(name);
}

Result<NameLookup::Addresses> NameLookup::system_lookup(const std::string& name) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  if (const int failed = ::getaddrinfo(name.c_str(), nullptr, &hints, &found); failed != 0) {
    std::string why = failed == EAI_SYSTEM ? std::system_category().message(errno)
                                           : std::string(::gai_strerror(failed));
    why[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(why[0])));
    return Error{ErrorKind::network, std::move(why)};
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  Addresses addresses;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(each->ai_addr, each->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      addresses.emplace_back(text.data());
  }
  return addresses;
}

}  // namespace gossamer::net
