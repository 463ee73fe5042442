// Random numbers by their place in a stream, and the sketch, whose signs are such numbers, on the
// CPU.
#pragma once

#include "gpu/device.hpp"

namespace gossamer::gpu {

void integers(const RandomRequest<std::uint32_t>& request);
void uniforms(const RandomRequest<float>& request);

template <class Real>
void sketch(const SketchRequest<Real>& request);

}  // namespace gossamer::gpu
