// What a learner has on each GPU of the device beside rows: the samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/device_rows.hpp"
#include "gpu/training.hpp"
#include "train/dataset.hpp"

namespace gossamer::train {

/// Memory of one GPU of the device, filled from the host.
template <class Value>
class DeviceCopy {
 public:
  DeviceCopy(gpu::Memory& device, int gpu_index, const std::vector<Value>& values)
      : row_(gpu::DeviceRows<Value>::on_gpu(device, gpu_index, 1, values.size())) {
    if (!values.empty()) device.upload(get(), values.data(), values.size() * sizeof(Value));
  }
  Value* get() const { return row_.row(0).data(); }

 private:
  gpu::DeviceRows<Value> row_;
};

/// The samples on one GPU of the device.
class DeviceTable {
 public:
  DeviceTable(gpu::Memory& device, int gpu_index, const Dataset& data)
      : features_(device, gpu_index, data.features),
        labels_(device, gpu_index, data.labels),
        targets_(device, gpu_index, data.targets) {}
  gpu::SampleTable get() const {
    return {.features = features_.get(), .labels = labels_.get(), .targets = targets_.get()};
  }

 private:
  DeviceCopy<float> features_;
  DeviceCopy<std::int32_t> labels_;
  DeviceCopy<float> targets_;
};

}  // namespace gossamer::train
