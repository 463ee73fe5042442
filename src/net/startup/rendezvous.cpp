#include "net/startup/rendezvous.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

#include "base/input_file.hpp"
#include "net/wire/hello.hpp"

namespace gossamer::net {

namespace {

constexpr std::uint64_t kMaxFileBytes = 4096 + kMaxSettingsBytes;  // beside an address and a run id

}  // namespace

namespace fs = std::filesystem;

Rendezvous::Rendezvous(fs::path folder, std::string run_id, std::string settings)
    : folder_(std::move(folder)), run_id_(std::move(run_id)), settings_(std::move(settings)) {
  std::ranges::replace(run_id_, '\n', ' ');
  if (settings_.size() > kMaxSettingsBytes) settings_.clear();
}

Rendezvous::~Rendezvous() {
  for (int peer : announced_) {
    const auto found = find(peer);
    std::error_code ignored;
    if (found.ok() && *found == address_) fs::remove(file(peer), ignored);
  }
}

fs::path Rendezvous::file(int peer) const { return folder_ / fmt::format("peer-{}.addr", peer); }

Status Rendezvous::announce(const std::vector<int>& peers, const Address& address) {
  address_ = address;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_, error))
    return data_error(fmt::format("net.rendezvous: cannot make the folder {}: {}", folder_.string(),
                                  error ? error.message() : "there is a file of that name"));
  for (int peer : peers) {
    // Written to another file, then renamed: no process reads half an address.
    const fs::path whole = file(peer);
    fs::path part = whole;
    part += fmt::format(".{}.part", ::getpid());
    {
      errno = EIO;  // where the stream does not know why
      std::ofstream out(part);
      out << to_string(address) << '\n' << run_id_ << '\n' << settings_;
      out.close();
      if (!out) error = {errno, std::generic_category()};
    }
    if (!error) fs::rename(part, whole, error);
    if (error) {
      std::error_code ignored;
      fs::remove(part, ignored);
      return data_error(
          fmt::format("net.rendezvous: cannot write {}: {}", whole.string(), error.message()));
    }
    announced_.push_back(peer);
  }
  return {};
}

void Rendezvous::restore(bool overwrite) {
  std::error_code ignored;
  std::vector<int> missing;
  for (int peer : announced_) {
    bool ours = fs::exists(file(peer), ignored);
    if (ours && overwrite) {
      const auto found = find(peer);
      ours = !found.ok() || *found == address_;  // a file of another run stays
    }
    if (!ours) missing.push_back(peer);
  }
  for (int peer : missing) std::erase(announced_, peer);
  if (!missing.empty())
    (void)announce(missing, address_);  // if the folder cannot be written, join_timeout reports it
}

Result<Rendezvous::Entry> Rendezvous::read(int peer) const {
  const auto content = read_file(file(peer), kMaxFileBytes);
  if (!content.ok() && has_entry(file(peer)))  // a pipe, say, or a file of another kind
    return Error{ErrorKind::network, content.error().message};
  const std::string_view text = content.ok() ? std::string_view(*content) : std::string_view();
  const std::size_t first = text.find('\n'), second = text.find('\n', first + 1);
  if (first == text.npos || second == text.npos)
    return Error{ErrorKind::network, fmt::format("{} is not there yet", file(peer).string())};
  return Entry{std::string(text.substr(0, first)),
               std::string(text.substr(first + 1, second - first - 1)),
               std::string(text.substr(second + 1))};
}

std::string Rendezvous::other_run(int peer, const Entry& entry) const {
  if (entry.run_id == run_id_) return {};
  const std::string difference = first_difference(entry.settings, settings_);
  return fmt::format(
      "{} belongs to another run: {}", file(peer).string(),
      difference.empty() ? "is the configuration the same on both machines?" : difference);
}

std::string Rendezvous::other_run(int peer) const {
  const auto entry = read(peer);
  return entry.ok() ? other_run(peer, *entry) : std::string();
}

Result<Address> Rendezvous::find(int peer) const {
  GOSSAMER_TRY(const Entry entry, read(peer));
  if (std::string other = other_run(peer, entry); !other.empty())
    return Error{ErrorKind::network, std::move(other)};
  auto found = parse_address(entry.address);
  if (found.ok() && found->port == 0)
    return Error{ErrorKind::network,
                 fmt::format("{} has an address without a port", file(peer).string())};
  return found;
}

}  // namespace gossamer::net
