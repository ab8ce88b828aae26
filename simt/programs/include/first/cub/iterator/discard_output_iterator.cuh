/* An iterator that CUB had until CCCL 3. */
#if __has_include_next(<cub/iterator/discard_output_iterator.cuh>)
#include_next <cub/iterator/discard_output_iterator.cuh>
#endif
#include <cub/labkit_iterators.cuh>
