//! What nvcc's host code calls: `__cudaRegister*`, `__cudaPushCallConfiguration`, `__cudaLaunchKernel`.
