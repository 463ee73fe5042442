#include "peer/checkpoint/saved_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace gossamer::peer {
namespace {

/// Calls run(whole, own, values) for all values of row `row` of a part that are adjacent in the
/// model's row too: where they begin in the model's row and in the part's.
void for_each_run(const Setup& setup, int part, std::size_t row, auto&& run) {
  const train::ModelPart& held =
      setup.workload->spec().split->parts().at(static_cast<std::size_t>(part));
  const std::size_t whole_parameters = setup.workload->spec().split->parameters();
  const auto specs = setup.algorithm->rows(*setup.schedule);
  const gossip::RowSpec spec = row < specs.size() ? specs[row] : gossip::RowSpec{};
  const auto multiples = static_cast<std::size_t>(spec.parts);
  for (std::size_t m = 0; m < multiples; ++m)
    held.for_each_run([&](std::size_t whole, std::size_t own, std::size_t values) {
      run(m * whole_parameters + whole, m * held.parameters + own, values);
    });
  if (spec.extra > 0) run(multiples * whole_parameters, multiples * held.parameters, spec.extra);
}

std::size_t extra_of(const Setup& setup, std::size_t row) {
  const auto specs = setup.algorithm->rows(*setup.schedule);
  return row < specs.size() ? specs[row].extra : 0;
}

Result<const TensorInfo*> tensor_in(const SafetensorsFile& file, const StateTensor& tensor) {
  const TensorInfo* place = file.header().find(tensor.name);
  if (place == nullptr || place->values != tensor.length)
    return data_error(fmt::format("{} has no tensor {} of {} values", file.path().string(),
                                  tensor.name, tensor.length));
  return place;
}

}  // namespace

Result<SavedRows> SavedRows::open(const Setup& setup, const SavedStates::Node& saved) {
  GOSSAMER_TRY(SafetensorsFile file, SafetensorsFile::open(saved.tensors));
  SavedRows rows(setup, std::move(file));
  if (setup.part && !saved.part) rows.whole_ = state_tensors(setup, saved.state.node, std::nullopt);
  return rows;
}

Status SavedRows::read(const StateTensor& tensor, std::span<float> values) const {
  if (whole_.empty()) {
    GOSSAMER_TRY(const TensorInfo* const place, tensor_in(file_, tensor));
    return file_.read(*place, 0, values);
  }
  Status status;
  for_each_run(*setup_, *setup_->part, tensor.row,
               [&](std::size_t whole, std::size_t own, std::size_t count) {
                 if (!status.ok() || own < tensor.first || own >= tensor.first + tensor.length)
                   return;
                 status = read_run(tensor.row, whole, values.subspan(own - tensor.first, count));
               });
  return status;
}

/// Reads adjacent values of a whole row. They are of one tensor.
Status SavedRows::read_run(std::size_t row, std::size_t first, std::span<float> values) const {
  const auto tensor = std::ranges::find_if(whole_, [&](const StateTensor& each) {
    return each.row == row && each.first <= first && first < each.first + each.length;
  });
  if (tensor == whole_.end() || first + values.size() > tensor->first + tensor->length)
    return data_error(fmt::format("{} has not all values of row {}", file_.path().string(), row));
  GOSSAMER_TRY(const TensorInfo* const place, tensor_in(file_, *tensor));
  return file_.read(*place, first - tensor->first, values);
}

Result<std::vector<std::vector<float>>> whole_rows(
    const Setup& setup, int node, std::span<const std::filesystem::path> tensors_of_parts) {
  std::vector<std::vector<float>> rows;
  for (const StateTensor& tensor : state_tensors(setup, node, std::nullopt)) {
    rows.resize(std::max(rows.size(), tensor.row + 1));
    std::vector<float>& row = rows[tensor.row];
    row.resize(std::max(row.size(), tensor.first + tensor.length));
  }
  for (std::size_t part = 0; part < tensors_of_parts.size(); ++part) {
    GOSSAMER_TRY(const SafetensorsFile file, SafetensorsFile::open(tensors_of_parts[part]));
    std::vector<std::vector<float>> own(rows.size());
    for (const StateTensor& tensor : state_tensors(setup, node, static_cast<int>(part))) {
      GOSSAMER_TRY(const TensorInfo* const place, tensor_in(file, tensor));
      std::vector<float>& row = own.at(tensor.row);
      row.resize(std::max(row.size(), tensor.first + tensor.length));
      GOSSAMER_TRY_STATUS(
          file.read(*place, 0, std::span(row).subspan(tensor.first, tensor.length)));
    }
    for (std::size_t k = 0; k < rows.size(); ++k) {
      if (rows[k].empty()) continue;
      const std::size_t extra_begin = rows[k].size() - extra_of(setup, k);
      bool agree = true;
      for_each_run(setup, static_cast<int>(part), k,
                   [&](std::size_t whole, std::size_t at, std::size_t count) {
                     float* const to = rows[k].data() + whole;
                     const float* const from = own[k].data() + at;
                     if (part > 0 && whole >= extra_begin)
                       agree = std::memcmp(to, from, count * sizeof(float)) == 0;
                     else std::copy_n(from, count, to);
                   });
      if (!agree)
        return data_error(fmt::format(
            "{}: the workers of replica {} have different weights, which depend on the timing of "
            "an "
            "asynchronous run, and on the rounds in which the network of each part lost peers; "
            "resume with the same [split] and --resume auto",
            file.path().string(), node));
    }
  }
  return rows;
}

}  // namespace gossamer::peer
