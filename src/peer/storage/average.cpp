#include "peer/storage/average.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "peer/storage/safetensors.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

namespace fs = std::filesystem;

/// The node that a tensor such as "peer3.0.dense.weights" belongs to.
struct TensorOwner {
  bool is_server = false;
  int node = 0;
  std::string_view tensor = {};
};
std::optional<TensorOwner> owner_of(std::string_view name) {
  for (const std::string_view role : {"peer", "server"}) {
    if (!name.starts_with(role)) continue;
    TensorOwner owner{.is_server = role == "server"};
    const auto [end, error] =
        std::from_chars(name.data() + role.size(), name.data() + name.size(), owner.node);
    if (error != std::errc() || end == name.data() + name.size() || *end != '.') continue;
    owner.tensor = std::string_view(end + 1, name.data() + name.size());
    return owner;
  }
  return {};
}

/// One model in a file: its tensors, by their names in the mean, in file order.
struct Model {
  std::string name;  ///< "a.safetensors", or "a.safetensors, peer 3"
  SafetensorsFile* file = nullptr;
  std::vector<std::pair<std::string, const TensorInfo*>> tensors;
  std::map<std::string, const TensorInfo*, std::less<>> by_name;

  void add(std::string_view tensor, const TensorInfo* info) {
    tensors.emplace_back(tensor, info);
    by_name.emplace(tensor, info);
  }
  const TensorInfo* find(const std::string& tensor) const {
    const auto found = by_name.find(tensor);
    return found == by_name.end() ? nullptr : found->second;
  }
};

/// The tensors of a checkpoint that are no parameters.
std::set<std::string, std::less<>> states_in(const SafetensorsFile& file) {
  std::set<std::string, std::less<>> states;
  const auto found = file.header().metadata.find(kStateTensors);
  if (found == file.header().metadata.end()) return states;
  std::istringstream names(found->second);
  for (std::string name; std::getline(names, name, ',');) states.insert(name);
  return states;
}

std::vector<Model> models_in(SafetensorsFile& file) {
  const auto states = states_in(file);
  Model whole{file.path().string(), &file, {}, {}};
  std::map<int, Model> peers;
  bool has_nodes = false;
  for (const TensorInfo& info : file.header().tensors) {
    whole.add(info.name, &info);
    const auto owner = owner_of(info.name);
    if (!owner) continue;
    has_nodes = true;
    if (owner->is_server || states.contains(info.name)) continue;
    Model& model = peers[owner->node];
    model.name = fmt::format("{}, peer {}", file.path().string(), owner->node);
    model.file = &file;
    model.add(owner->tensor, &info);
  }
  if (!has_nodes) return {std::move(whole)};
  std::vector<Model> models;
  for (auto& [peer, model] : peers) models.push_back(std::move(model));
  return models;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Every model has the same tensor names and shapes as the first one.
Status check_same_tensors(const std::vector<Model>& models) {
  const Model& first = models.front();
  for (const Model& model : models) {
    for (const auto& [name, info] : first.tensors) {
      const TensorInfo* other = model.find(name);
      if (other == nullptr)
        return data_error(
            fmt::format("{} has no tensor {}, but {} has", model.name, name, first.name));
      if (other->shape != info->shape)
        return data_error(fmt::format("{}: tensor {} has the shape {}, but {} in {}", model.name,
                                      name, shape_text(other->shape), shape_text(info->shape),
                                      first.name));
    }
    for (const auto& [name, info] : model.tensors)
      if (first.find(name) == nullptr)
        return data_error(
            fmt::format("{} has no tensor {}, but {} has", first.name, name, model.name));
  }
  return {};
}

Result<std::vector<float>> mean_of(const std::vector<Model>& models, const std::string& name,
                                   std::size_t length) {
  std::vector<double> sum(length);
  std::vector<float> values(length);
  for (const Model& model : models) {
    GOSSAMER_TRY_STATUS(model.file->read(*model.find(name), 0, values));
    for (std::size_t k = 0; k < length; ++k) sum[k] += values[k];
  }
  for (std::size_t k = 0; k < length; ++k)
    values[k] = static_cast<float>(sum[k] / static_cast<double>(models.size()));
  return values;
}

/// Each file counts once, and remains as it is.
Status check_paths(const std::vector<fs::path>& paths, const fs::path& output) {
  std::error_code ignored;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (fs::equivalent(paths[i], output, ignored))
      return invalid_error(fmt::format(
          "{} is one of the files to average: give the mean another name", output.string()));
    for (std::size_t k = 0; k < i; ++k)
      if (fs::equivalent(paths[i], paths[k], ignored))
        return invalid_error(
            fmt::format("{} is given twice, and its models would count twice", paths[i].string()));
  }
  return {};
}

}  // namespace

Result<Averaged> average(const std::vector<fs::path>& paths, const fs::path& output) {
  GOSSAMER_TRY_STATUS(check_paths(paths, output));
  std::vector<SafetensorsFile> files;
  for (const fs::path& path : paths) {
    GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(path));
    files.push_back(std::move(file));
  }
  std::vector<Model> models;
  for (SafetensorsFile& file : files) {
    std::vector<Model> here = models_in(file);
    if (here.empty() || here.front().tensors.empty())
      return data_error(
          fmt::format("{} contains no model: it has only tensors of servers and of states",
                      file.path().string()));
    models.insert(models.end(), std::make_move_iterator(here.begin()),
                  std::make_move_iterator(here.end()));
  }
  GOSSAMER_TRY_STATUS(check_same_tensors(models));

  Averaged averaged{.models = models.size(), .tensors = models.front().tensors.size()};
  std::vector<std::vector<float>> means;
  std::vector<Tensor> tensors;
  for (const auto& [name, info] : models.front().tensors) {
    GOSSAMER_TRY(std::vector<float> mean, mean_of(models, name, info->values));
    averaged.parameters += mean.size();
    means.push_back(std::move(mean));
    tensors.push_back({name, info->shape, means.back()});
  }
  const Metadata metadata{
      {"format", "pt"}, {"gossamer", kVersion}, {"models", std::to_string(models.size())}};
  GOSSAMER_TRY_STATUS(write_safetensors(output, tensors, metadata));
  return averaged;
}

}  // namespace gossamer::peer
