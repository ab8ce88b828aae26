/* What courses and CUB use of NVTX's C++ interface, version 1: ranges that last as long as a scope, and what describes
   them. They do nothing. */
#ifndef LABKIT_NVTX3_HPP
#define LABKIT_NVTX3_HPP
#define NVTX3_CPP_DEFINITIONS_V1_0 /* CUB warns where a header does not say so */
#include "nvToolsExt.h"
#include <new> /* CUB makes its ranges in place */
namespace nvtx3 {
inline namespace v1 {
/* A value that describes a range: it takes anything, and keeps nothing. */
struct described {
    template <class... Arguments> constexpr explicit described(const Arguments &...) noexcept {}
};
struct domain {
    struct global {};
};
using color = described;
using rgb = described;
using argb = described;
using category = described;
using message = described;
using payload = described;
using event_attributes = described;
template <class Domain = domain::global> using registered_string_in = described;
template <class Domain = domain::global> using named_category_in = described;

template <class Domain = domain::global> class scoped_range_in {
  public:
    template <class... Arguments> explicit scoped_range_in(const Arguments &...) noexcept {}
    scoped_range_in(const scoped_range_in &) = delete;
    scoped_range_in &operator=(const scoped_range_in &) = delete;
    ~scoped_range_in() {}
};
using scoped_range = scoped_range_in<>;

template <class Domain = domain::global> class unique_range_in {
  public:
    template <class... Arguments> explicit unique_range_in(const Arguments &...) noexcept {}
    unique_range_in(unique_range_in &&) = default;
    unique_range_in &operator=(unique_range_in &&) = default;
    ~unique_range_in() {}
};
using unique_range = unique_range_in<>;

template <class Domain = domain::global, class... Arguments> void mark_in(const Arguments &...) noexcept {}
template <class... Arguments> void mark(const Arguments &...) noexcept {}
} // namespace v1
} // namespace nvtx3
#define NVTX3_FUNC_RANGE() ::nvtx3::scoped_range const labkit_nvtx3_range_{__func__}
#define NVTX3_FUNC_RANGE_IN(DOMAIN) ::nvtx3::scoped_range_in<DOMAIN> const labkit_nvtx3_range_{__func__}
#endif
