/* CUB, with the function objects that CCCL 3 (CUDA 13) has no longer, so that older programs build unchanged. Every
   header of CUB includes this one. */
#include_next <cub/config.cuh>
#ifndef LABKIT_CUB_CONFIG_CUH
#define LABKIT_CUB_CONFIG_CUH
#include <cuda/std/type_traits>
#include <cuda/version>
#if CCCL_MAJOR_VERSION >= 3
namespace cub {
struct Equality {
    template <class A, class B> _CCCL_HOST_DEVICE constexpr bool operator()(A &&a, B &&b) const { return a == b; }
};
struct Inequality {
    template <class A, class B> _CCCL_HOST_DEVICE constexpr bool operator()(A &&a, B &&b) const { return a != b; }
};
struct Sum {
    template <class A, class B> _CCCL_HOST_DEVICE constexpr auto operator()(A &&a, B &&b) const { return a + b; }
};
struct Difference {
    template <class A, class B> _CCCL_HOST_DEVICE constexpr auto operator()(A &&a, B &&b) const { return a - b; }
};
struct Division {
    template <class A, class B> _CCCL_HOST_DEVICE constexpr auto operator()(A &&a, B &&b) const { return a / b; }
};
struct Max {
    template <class A, class B>
    _CCCL_HOST_DEVICE constexpr ::cuda::std::common_type_t<A, B> operator()(A &&a, B &&b) const {
        return b > a ? b : a;
    }
};
struct Min {
    template <class A, class B>
    _CCCL_HOST_DEVICE constexpr ::cuda::std::common_type_t<A, B> operator()(A &&a, B &&b) const {
        return b < a ? b : a;
    }
};
} // namespace cub
#endif
#endif
