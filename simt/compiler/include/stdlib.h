// stdlib.h: short names of types that Linux has there
#pragma once
#include "labkit_host.h"
using uint = unsigned int;
using ushort = unsigned short;
using ulong = unsigned long;
#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
