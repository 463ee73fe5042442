#include "peer/replica/whole_replica.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "peer/runtime/run.hpp"
#include "peer/setup/node_tensors.hpp"
#include "peer/storage/files.hpp"
#include "peer/storage/safetensors.hpp"
#include "peer/version.hpp"

namespace gossamer::peer {
namespace {

constexpr std::size_t kPieceValues = std::size_t{1} << 18;  // 1 MiB of a part, in one message

/// The file of a whole model, which no worker has room for: its values come in pieces of parts.
class WholeModelFile {
 public:
  static Result<WholeModelFile> create(const Setup& setup, const Config& config,
                                       const WorkerPlace& worker) {
    const std::string prefix = tensor_prefix(setup, worker.replica);
    std::vector<Tensor> tensors;
    for (const train::ParameterBlock& block : setup.workload->spec().split->blocks())
      tensors.push_back(
          {fmt::format("{}.{}", prefix, block.name), {block.shape.begin(), block.shape.end()}, {}});
    const SafetensorsHeader header =
        make_safetensors_header(tensors, {{"format", "pt"},
                                          {"gossamer", kVersion},
                                          {"run_id", config.run_id()},
                                          {"rounds", std::to_string(config.run.rounds)}});
    GOSSAMER_TRY(AtomicFile file,
                 AtomicFile::create(run_folder(config) /
                                    fmt::format("final-{}.safetensors", worker.replica)));
    GOSSAMER_TRY_STATUS(file.write(0, header.bytes));
    return WholeModelFile(std::move(file), header.bytes.size());
  }

  /// Writes values of a worker's row, from value `first` on, to their places.
  Status put(const train::ModelPart& part, std::size_t first, std::span<const float> values) {
    Status status;
    part.for_each_run([&](std::size_t in_whole, std::size_t in_own, std::size_t count) {
      const std::size_t begin = std::max(in_own, first),
                        end = std::min(in_own + count, first + values.size());
      if (begin >= end || !status.ok()) return;
      const auto bytes = std::as_bytes(values.subspan(begin - first, end - begin));
      status = file_.write(values_begin_ + (in_whole + begin - in_own) * sizeof(float),
                           {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    });
    return status;
  }
  Status commit() { return file_.commit(); }

 private:
  WholeModelFile(AtomicFile file, std::uint64_t values_begin)
      : file_(std::move(file)), values_begin_(values_begin) {}

  AtomicFile file_;
  std::uint64_t values_begin_;  ///< the blocks of a model follow each other without gaps
};

/// Calls use(first, values) for each piece of a part.
void for_each_piece(std::size_t parameters, auto&& use) {
  for (std::size_t first = 0; first < parameters; first += kPieceValues)
    use(first, std::min(kPieceValues, parameters - first));
}

/// A piece is sent when worker 0 asks for it. Before the first, that worker may wait for what the
/// others answer in the agreement on a step, which would be behind the piece; and pieces that
/// nobody has asked for would fill memory.
void send_pieces(ReplicaLinks& links, std::span<const float> row) {
  for_each_piece(row.size(), [&](std::size_t first, std::size_t count) {
    double asked = 0;
    train::receive_numbers<float>(links, 0, std::span(&asked, 1));
    links.send(0, row.subspan(first, count));
  });
}

/// If the file cannot be written, the pieces are received all the same: the other workers have
/// trained to the end, and leave in peace.
Status write_whole(const Setup& setup, const Config& config, const WorkerPlace& worker,
                   ReplicaLinks& links, std::span<const float> row) {
  auto file = WholeModelFile::create(setup, config, worker);
  Status status = file.ok() ? Status() : Status(file.error());
  const std::vector<train::ModelPart>& parts = setup.workload->spec().split->parts();
  std::vector<float> received;
  for (std::size_t w = 0; w < parts.size(); ++w)
    for_each_piece(parts[w].parameters, [&](std::size_t first, std::size_t count) {
      std::span<const float> piece = row;
      if (w == 0) {
        piece = row.subspan(first, count);
      } else {
        const double asked = 1;
        train::send_numbers<float>(links, static_cast<int>(w), std::span(&asked, 1));
        received.resize(count);
        links.receive(static_cast<int>(w), received);
        piece = received;
      }
      if (status.ok()) status = file->put(parts[w], first, piece);
    });
  return status.ok() ? file->commit() : status;
}

}  // namespace

Status collect_replica(const Setup& setup, const Config& config, const WorkerPlace& worker,
                       ReplicaLinks& links, std::span<const float> row) {
  try {
    if (worker.part == 0) return write_whole(setup, config, worker, links, row);
    send_pieces(links, row);
    return {};
  } catch (const train::WorkerLost& lost) {
    return Error{ErrorKind::lost_peer, lost.what()};
  }
}

}  // namespace gossamer::peer
