// cuda.h: of the driver's interface the one type that kernels take, the tensor map
#pragma once
#include "labkit_host.h"

typedef struct CUtensorMap_st {
    alignas(64) uint64_t opaque[16];
} CUtensorMap;
