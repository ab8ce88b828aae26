// stdint.h: the types and limits of whole numbers that labkit_host.h has not
#pragma once
#include "labkit_host.h"
#if __cplusplus >= 201703L && __has_include(<cuda/std/cstdint>)
#define LABKIT_HEADER <cuda/std/climits>
#include "labkit_cuda_std.h"
#define LABKIT_HEADER <cuda/std/cstdint>
#include "labkit_cuda_std.h"
using cuda::std::int_fast8_t, cuda::std::int_fast16_t, cuda::std::int_fast32_t, cuda::std::int_fast64_t,
    cuda::std::uint_fast8_t, cuda::std::uint_fast16_t, cuda::std::uint_fast32_t,
    cuda::std::uint_fast64_t, cuda::std::int_least8_t, cuda::std::int_least16_t,
    cuda::std::int_least32_t, cuda::std::int_least64_t, cuda::std::uint_least8_t,
    cuda::std::uint_least16_t, cuda::std::uint_least32_t, cuda::std::uint_least64_t,
    cuda::std::intptr_t, cuda::std::uintptr_t, cuda::std::intmax_t, cuda::std::uintmax_t;
#endif
#ifndef SIZE_MAX
#define SIZE_MAX 0xffffffffffffffffUL
#endif
