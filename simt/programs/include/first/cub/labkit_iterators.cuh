/* The iterators that CUB had until CCCL 3 (CUDA 13): Thrust has the same ones. */
#ifndef LABKIT_CUB_ITERATORS_CUH
#define LABKIT_CUB_ITERATORS_CUH
#pragma GCC system_header /* Thrust's own iterators are deprecated: the program need not hear of it */
#include <cub/config.cuh>
#if CCCL_MAJOR_VERSION >= 3
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/transform_iterator.h>
namespace cub {
template <class Value, class Offset = ptrdiff_t> using CountingInputIterator = thrust::counting_iterator<Value>;
template <class Value, class Offset = ptrdiff_t> using ConstantInputIterator = thrust::constant_iterator<Value>;
template <class Offset = ptrdiff_t> using DiscardOutputIterator = thrust::discard_iterator<>;
template <class Value, class Function, class Input, class Offset = ptrdiff_t>
using TransformInputIterator = thrust::transform_iterator<Function, Input, Value>;
} // namespace cub
#endif
#endif
