#include "labkit_host.h"
