// Vocabulary of the tests of learners: one that has to be made, and one that is refused.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

#include "gpu/cpu_device.hpp"
#include "train/learner.hpp"

namespace gossamer::train {

template <class Real>
std::unique_ptr<Learner<Real>> learner(LearnerRequest request, gpu::BasicDevice<Real>& device) {
  auto made = make_learner<Real>(std::move(request), device);
  if (!made.ok()) FAIL(made.error().message);
  return std::move(made).value();
}

/// The message of the error.
inline std::string refusal(LearnerRequest request) {
  gpu::CpuDevice device(1);
  const auto made = make_learner<float>(std::move(request), device);
  REQUIRE_FALSE(made.ok());
  return made.error().message;
}

}  // namespace gossamer::train
