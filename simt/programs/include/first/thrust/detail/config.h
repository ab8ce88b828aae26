/* Thrust, with the bases of function objects that CCCL 3 (CUDA 13) has no longer, so that older programs build
   unchanged. Every header of Thrust includes this one. */
#include_next <thrust/detail/config.h>
#ifndef LABKIT_THRUST_CONFIG_H
#define LABKIT_THRUST_CONFIG_H
#include <cuda/version>
#if CCCL_MAJOR_VERSION >= 3
namespace thrust {
template <class Argument, class Result> struct unary_function {
    typedef Argument argument_type;
    typedef Result result_type;
};
template <class First, class Second, class Result> struct binary_function {
    typedef First first_argument_type;
    typedef Second second_argument_type;
    typedef Result result_type;
};
template <class Value = void> struct identity {
    typedef Value argument_type;
    typedef Value result_type;
    _CCCL_HOST_DEVICE constexpr const Value &operator()(const Value &value) const { return value; }
};
template <> struct identity<void> {
    template <class Value> _CCCL_HOST_DEVICE constexpr Value &&operator()(Value &&value) const {
        return static_cast<Value &&>(value);
    }
};
} // namespace thrust
#endif
#endif
