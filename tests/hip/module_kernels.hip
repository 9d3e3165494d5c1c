// The code object that module.hip loads.
#include <hip/hip_runtime.h>
#include "module_kernels.h"
