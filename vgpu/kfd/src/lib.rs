//! A virtual AMD GPU: the amdgpu/KFD system calls under unmodified ROCr.
