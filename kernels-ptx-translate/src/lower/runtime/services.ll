; What CUDA's device runtime offers to kernels: printf, malloc and free, assert.

