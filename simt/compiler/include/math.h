// math.h: constants, and what nvcc's host adds to CUDA's functions: whole numbers are taken as double
#pragma once
#include "labkit_host.h"

#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000LL)
#define HUGE_VALF INFINITY

namespace labkit_math {
// Which types are numbers; same: both are float, or both double, and CUDA has that function.
template <class T> struct number { static constexpr bool whole = false, value = false; };
template <> struct number<float> { static constexpr bool whole = false, value = true; };
template <> struct number<double> { static constexpr bool whole = false, value = true; };
#define LABKIT_WHOLE(T) template <> struct number<T> { static constexpr bool whole = true, value = true; };
LABKIT_WHOLE(bool) LABKIT_WHOLE(char) LABKIT_WHOLE(signed char) LABKIT_WHOLE(unsigned char)
LABKIT_WHOLE(short) LABKIT_WHOLE(unsigned short) LABKIT_WHOLE(int) LABKIT_WHOLE(unsigned)
LABKIT_WHOLE(long) LABKIT_WHOLE(unsigned long) LABKIT_WHOLE(long long) LABKIT_WHOLE(unsigned long long)
#undef LABKIT_WHOLE
template <class A, class B> struct mixed {
    static constexpr bool value = number<A>::value && number<B>::value;
};
template <> struct mixed<float, float> { static constexpr bool value = false; };
template <> struct mixed<double, double> { static constexpr bool value = false; };
template <bool> struct as_double {};
template <> struct as_double<true> { using type = double; };
}  // namespace labkit_math

#define LABKIT_ONE(f)                                                                                \
    template <class T>                                                                               \
    __host__ __device__ typename labkit_math::as_double<labkit_math::number<T>::whole>::type f(T x) { \
        return f(double(x));                                                                         \
    }
#define LABKIT_TWO(f)                                                                                \
    template <class A, class B>                                                                      \
    __host__ __device__ typename labkit_math::as_double<labkit_math::mixed<A, B>::value>::type f(A a, B b) { \
        return f(double(a), double(b));                                                              \
    }
LABKIT_ONE(acos) LABKIT_ONE(acosh) LABKIT_ONE(asin) LABKIT_ONE(asinh) LABKIT_ONE(atan) LABKIT_ONE(atanh)
LABKIT_ONE(cbrt) LABKIT_ONE(ceil) LABKIT_ONE(cos) LABKIT_ONE(cosh) LABKIT_ONE(erf) LABKIT_ONE(erfc)
LABKIT_ONE(exp) LABKIT_ONE(exp2) LABKIT_ONE(expm1) LABKIT_ONE(floor) LABKIT_ONE(lgamma) LABKIT_ONE(log)
LABKIT_ONE(log10) LABKIT_ONE(log1p) LABKIT_ONE(log2) LABKIT_ONE(logb) LABKIT_ONE(nearbyint)
LABKIT_ONE(rint) LABKIT_ONE(round) LABKIT_ONE(sin) LABKIT_ONE(sinh) LABKIT_ONE(sqrt) LABKIT_ONE(tan)
LABKIT_ONE(tanh) LABKIT_ONE(tgamma) LABKIT_ONE(trunc)
LABKIT_TWO(atan2) LABKIT_TWO(copysign) LABKIT_TWO(fdim) LABKIT_TWO(fmax) LABKIT_TWO(fmin)
LABKIT_TWO(fmod) LABKIT_TWO(hypot) LABKIT_TWO(nextafter) LABKIT_TWO(pow) LABKIT_TWO(remainder)
#undef LABKIT_ONE
#undef LABKIT_TWO
