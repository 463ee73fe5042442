#include "train/scoring/scoring.hpp"

#include <utility>

#include "train/device_data.hpp"

namespace gossamer::train {
namespace {

/// Losses and hits of the jobs on one GPU of the device.
struct DeviceScores {
  DeviceScores(gpu::Memory& device, int gpu_index, std::size_t jobs)
      : losses(jobs),
        hits(jobs),
        device_losses(device, gpu_index, losses),
        device_hits(device, gpu_index, hits) {}
  void download(gpu::Memory& device) {
    device.download(losses.data(), device_losses.get(), losses.size() * sizeof(double));
    device.download(hits.data(), device_hits.get(), hits.size() * sizeof(std::int64_t));
  }

  std::vector<double> losses;
  std::vector<std::int64_t> hits;
  DeviceCopy<double> device_losses;
  DeviceCopy<std::int64_t> device_hits;
};

}  // namespace

template <class Real>
void score(gpu::BasicDevice<Real>& device, const gpu::Task& task,
           std::span<ScoreRequest<Real>> requests) {
  // A request's results lie on the GPU of its parameters; `place` is its first job's among the jobs
  // of that GPU.
  std::vector<std::size_t> gpu_of, place, jobs_on(static_cast<std::size_t>(device.gpu_count()));
  for (const ScoreRequest<Real>& request : requests) {
    gpu_of.push_back(static_cast<std::size_t>(device.gpu_of(request.parameters)));
    std::size_t& jobs = jobs_on[gpu_of.back()];
    place.push_back(std::exchange(jobs, jobs + request.pieces.size()));
  }
  std::vector<DeviceScores> scores;
  for (std::size_t p = 0; p < jobs_on.size(); ++p)
    scores.emplace_back(device, static_cast<int>(p), jobs_on[p]);
  std::vector<gpu::Job<Real>> jobs;
  for (std::size_t r = 0; r < requests.size(); ++r)
    for (std::size_t i = 0; i < requests[r].pieces.size(); ++i)
      jobs.push_back({.parameters = const_cast<Real*>(
                          requests[r].parameters),  // Pass::evaluate only reads them
                      .samples = requests[r].pieces[i].data(),
                      .batch = static_cast<int>(requests[r].pieces[i].size()),
                      .loss = scores[gpu_of[r]].device_losses.get() + place[r] + i,
                      .hits = scores[gpu_of[r]].device_hits.get() + place[r] + i});
  device.train(task, gpu::Pass::evaluate, jobs);
  for (DeviceScores& some : scores) some.download(device);
  for (std::size_t r = 0; r < requests.size(); ++r)
    for (std::size_t i = 0; i < requests[r].pieces.size(); ++i)
      requests[r].scores.push_back(
          {scores[gpu_of[r]].losses[place[r] + i], scores[gpu_of[r]].hits[place[r] + i]});
}

template void score(gpu::BasicDevice<float>&, const gpu::Task&, std::span<ScoreRequest<float>>);
template void score(gpu::BasicDevice<double>&, const gpu::Task&, std::span<ScoreRequest<double>>);

}  // namespace gossamer::train
