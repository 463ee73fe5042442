#include "peer/privacy/privacy_account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "peer/storage/files.hpp"
#include "peer/storage/json.hpp"

namespace gossamer::peer {
namespace {

constexpr std::size_t kMaxAccountBytes = 4 << 20;  // 65,535 peers

/// A file may have any number.
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) {
  return a + b < a ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

Error damaged(const std::filesystem::path& file) {
  return data_error(fmt::format(
      "{} is damaged, and says how much privacy was spent: choose another folder with --out",
      file.string()));
}

}  // namespace

Status PrivacyAccount::keep_in(const std::filesystem::path& file, const std::string& run_id,
                               const std::string& settings) {
  file_ = file, run_id_ = run_id, settings_ = settings;
  std::error_code error;
  const bool there = std::filesystem::exists(file, error);
  if (error) return data_error(fmt::format("{}: {}", file.string(), error.message()));
  if (!there) return write();
  GOSSAMER_TRY(const std::string content, read_file(file, kMaxAccountBytes));
  const auto json = parse_json(content);
  if (!json.ok() || !json->is_object() || !json->contains("run_id") ||
      !json->contains("settings") || !json->contains("gradients") ||
      !json->at("gradients").is_array() || json->at("gradients").size() != spent_.size())
    return damaged(file);
  if (json->at("run_id") != run_id || json->at("settings") != settings)
    return data_error(
        fmt::format("{} is of a run with another id or other settings: choose another folder with "
                    "--out",
                    file.string()));
  for (std::size_t peer = 0; peer < spent_.size(); ++peer) {
    const Json& gradients = json->at("gradients").at(peer);
    if (!gradients.is_number_unsigned()) return damaged(file);
    spent_[peer] = reserved_[peer] = gradients.get<std::uint64_t>();
  }
  found_ = !empty();
  return {};
}

bool PrivacyAccount::empty() const {
  return std::ranges::all_of(spent_, [](std::uint64_t gradients) { return gradients == 0; }) &&
         std::ranges::all_of(reserved_, [](std::uint64_t gradients) { return gradients == 0; });
}

void PrivacyAccount::add(int peer, std::uint64_t gradients) {
  std::uint64_t& spent = spent_.at(static_cast<std::size_t>(peer));
  spent = saturated_sum(spent, gradients);
}

bool PrivacyAccount::spend(int peer, std::uint64_t count) {
  const auto index = static_cast<std::size_t>(peer);
  const std::uint64_t after = saturated_sum(spent_.at(index), count);
  if (after > reserved_[index]) {
    reserved_[index] = saturated_sum(after, kBlock);
    // Peers train at about the same pace: one write serves all.
    for (std::size_t other = 0; other < spent_.size(); ++other)
      if (spent_[other] > 0 && other != index)
        reserved_[other] = std::max(reserved_[other], saturated_sum(spent_[other], kBlock));
    if (!failed_) {
      status_ = write();
      failed_ = !status_.ok();
    }
  }
  if (failed_) return false;
  spent_[index] = after;
  return true;
}

Status PrivacyAccount::close() {
  reserved_ = spent_;
  return write();
}

double PrivacyAccount::epsilon(int peer, double sampling) {
  const double noise = plan_.effective_noise.at(static_cast<std::size_t>(peer));
  const auto accountant = accountants_.try_emplace({sampling, noise}, sampling, noise).first;
  return accountant->second.epsilon(spent(peer), plan_.options.delta);
}

Status PrivacyAccount::write() const {
  if (file_.empty()) return {};
  const Json json{
      {"schema", 1}, {"run_id", run_id_}, {"settings", settings_}, {"gradients", reserved_}};
  return write_file(file_, text_of(json) + "\n");
}

}  // namespace gossamer::peer
