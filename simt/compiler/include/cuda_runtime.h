// cuda_runtime.h: nvcc has the headers of C with it
#pragma once
#include "float.h"
#include "limits.h"
#include "math.h"
#include "stddef.h"
#include "stdint.h"
#include "stdlib.h"
#include "string.h"
