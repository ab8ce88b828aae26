// float.h: the limits that labkit_host.h has not
#pragma once
#include "labkit_host.h"
#if __cplusplus >= 201703L && __has_include(<cuda/std/cstdint>)
#define LABKIT_HEADER <cuda/std/cfloat>
#include "labkit_cuda_std.h"
#endif
