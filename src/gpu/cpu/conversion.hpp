// Rows in fewer bytes, on the CPU. gpu/device.hpp tells the formats.
#pragma once

#include "gpu/device.hpp"

namespace gossamer::gpu {

void to_bf16(const Bf16Request& request);
void from_bf16(const Bf16Request& request);
void to_int8(const Int8Request& request);
void from_int8(const Int8Request& request);
void to_signs(const SignRequest& request);
void from_signs(const SignRequest& request);

}  // namespace gossamer::gpu
