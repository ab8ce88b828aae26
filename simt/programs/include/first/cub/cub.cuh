/* All of CUB, with the iterators that it had until CCCL 3. */
#include_next <cub/cub.cuh>
#include <cub/labkit_iterators.cuh>
