#include "peer/launch/host_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <span>

#include "base/input_file.hpp"
#include "net/io/address.hpp"

namespace gossamer::peer {
namespace {

constexpr std::uint64_t kMaxHostFileBytes = 1 << 20;
constexpr int kMaxSlots = 65535;

bool is_name(std::string_view text) {
  constexpr std::string_view kOthers = ".-_";
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kOthers.find(c) != std::string_view::npos;
  });
}

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  for (std::size_t begin = 0;
       (begin = line.find_first_not_of(kBlanks, begin)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// A name or a number, an IPv6 number with brackets or without; empty if it is neither.
std::string address_in(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']')
    text = text.substr(1, text.size() - 2);
  const std::string address(text);
  return is_name(text) || net::is_numeric(address) ? address : "";
}

/// One line that is not empty. `where` names it.
Result<LaunchHost> read_host(const std::vector<std::string_view>& words, const std::string& where) {
  const std::size_t at = words.front().find('@');
  const std::string_view name =
      at == std::string_view::npos ? words.front() : words.front().substr(at + 1);
  if (!is_name(name) || (at != std::string_view::npos && !is_name(words.front().substr(0, at))))
    return invalid_error(
        fmt::format("{}: '{}' is no host; write [user@]name, then slots=N for several processes, "
                    "and address=NUMBER for the address that the peers call",
                    where, words.front()));
  LaunchHost host;
  host.login = words.front();
  host.address = name;
  std::set<std::string_view> seen;
  for (const std::string_view word : std::span(words).subspan(1)) {
    const std::string_view key = word.substr(0, word.find('=')),
                           value = word.substr(std::min(word.size(), key.size() + 1));
    if (!seen.insert(key).second)
      return invalid_error(fmt::format("{}: '{}' is there twice", where, key));
    if (key == "slots") {
      const auto [end, failure] =
          std::from_chars(value.data(), value.data() + value.size(), host.slots);
      if (failure != std::errc() || end != value.data() + value.size() || host.slots < 1 ||
          host.slots > kMaxSlots)
        return invalid_error(
            fmt::format("{}: '{}' is not slots=1 to slots={}", where, word, kMaxSlots));
    } else if (key == "address" && !address_in(value).empty()) {
      host.address = address_in(value);
    } else {
      return invalid_error(fmt::format(
          "{}: '{}' is neither slots=N nor address=NAME; put each host on a line of its own", where,
          word));
    }
  }
  return host;
}

}  // namespace

bool LaunchHost::is_loopback() const { return net::is_loopback({address, 0}); }

Result<std::vector<LaunchHost>> parse_hosts(std::string_view text, const std::string& origin) {
  std::vector<LaunchHost> hosts;
  int number = 0;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // some editors begin a file of UTF-8 with it
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto words = words_of(text.substr(begin, end - begin));
    begin = end + 1;
    if (words.empty()) continue;
    GOSSAMER_TRY(LaunchHost host, read_host(words, fmt::format("{}:{}", origin, number + 1)));
    hosts.push_back(std::move(host));
  }
  if (hosts.empty())
    return invalid_error(fmt::format("{}: there is no host in it; write one a line", origin));
  const auto local = std::ranges::count_if(hosts, &LaunchHost::is_local);
  const auto here = std::ranges::find_if(hosts, &LaunchHost::is_loopback);
  if (here != hosts.end() && (!std::ranges::all_of(hosts, &LaunchHost::is_loopback) ||
                              (local > 0 && local < std::ssize(hosts))))
    return invalid_error(
        fmt::format("{}: other machines cannot reach {}; write the name of this machine", origin,
                    here->address));
  return hosts;
}

Result<std::vector<LaunchHost>> read_hosts(const std::filesystem::path& path) {
  GOSSAMER_TRY(const std::string text, read_file(path, kMaxHostFileBytes));
  return parse_hosts(text, path.string());
}

}  // namespace gossamer::peer
