#!/bin/bash
# usage: get-audit-packages.sh DIR [all]
# Unpacks packages built for CUDA into DIR, for symbol-audit to read: nothing in them is run. CI takes CuPy (140 MB) and PyTorch's vision
# and audio extensions (10 MB); `all` takes NVIDIA's NCCL, NVSHMEM and cuBLAS instead (1.2 GB). UCX comes with get-ucx.sh.
# Needs python3 with pip, and unzip. NVIDIA's files are never committed.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); mkdir -p "$dir"
[ ! -e "$dir/.complete" ] || exit 0

packages="cupy-cuda12x==14.2.0 torchvision==0.24.1 torchaudio==2.9.1"
[ "${2:-}" != all ] || packages="nvidia-nccl-cu12==2.32.3 nvidia-nvshmem-cu12==3.8.0 nvidia-cublas-cu12==12.9.3.13"
for package in $packages; do
  python3 -m pip download -q --no-deps -d "$dir/.download" "$package"
  unzip -qo "$dir"/.download/*.whl -d "$dir/${package%%=*}"
  rm -rf "$dir/.download"
done
touch "$dir/.complete"; echo "$packages"
