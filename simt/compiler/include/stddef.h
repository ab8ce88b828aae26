// stddef.h
#pragma once
#include "labkit_host.h"
#ifndef NULL
#define NULL 0
#endif
using max_align_t = double2;
