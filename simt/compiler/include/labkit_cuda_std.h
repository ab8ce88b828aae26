// labkit_cuda_std.h: includes LABKIT_HEADER, a header of CUDA's own library
// It defines some macros of labkit_host.h again, which is no news to a student.
#pragma nv_diagnostic push
#pragma nv_diag_suppress 47
#include LABKIT_HEADER
#pragma nv_diagnostic pop
#undef LABKIT_HEADER
