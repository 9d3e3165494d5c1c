#!/bin/bash
# usage: get-nvcc.sh DIR
# Makes DIR/bin/nvcc that targets libcudart.so.12: nvcc 13.5 (driver, cudafe++, cicc, ptxas, fatbinary) with the headers, crt and
# libcudart.so.12 of CUDA 12.9, from PyPI packages. x86-64 Debian, no root, no GPU. Targets compute_75 and above.
# Needs python3 with pip, unzip and gcc <= 15. NVIDIA's files are for building and testing; they are never committed.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); work=$dir/.download; mkdir -p "$work"
[ ! -e "$dir/.complete" ] || exit 0

wheel() { echo "$work/$(echo "${1%%==*}" | tr - _)-${1##*==}"; }          # NAME==VERSION -> path of the wheel without its tags
get() { local p; for p; do compgen -G "$(wheel "$p")*.whl" > /dev/null || python3 -m pip download -q --no-deps -d "$work" "$p"; done; }
unpack() { local to=$1 p; shift; mkdir -p "$to"; for p; do unzip -qo "$(wheel "$p")"*.whl -d "$to"; done; }

mkdir -p "$dir"/{bin,nvvm,include,lib64}; ln -sfn lib64 "$dir/lib"
tools="nvidia-cuda-nvcc==13.5.37 nvidia-nvvm==13.5.37"
headers="nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-cccl-cu12==12.9.27"
get $tools $headers; unpack "$work/t" $tools; unpack "$work/h" $headers
cp -a "$work"/t/nvidia/cu13/bin/. "$dir/bin/"; cp -a "$work"/t/nvidia/cu13/nvvm/. "$dir/nvvm/"
# crt/ must be the 12.9 one (it is in nvcc-cu12).
for part in cuda_runtime cuda_nvcc cuda_cccl; do cp -a "$work"/h/nvidia/$part/include/. "$dir/include/"; done
find "$dir/include" -name __init__.py -delete
cp -a "$work"/h/nvidia/cuda_runtime/lib/*.so.12 "$work"/h/nvidia/cuda_runtime/lib/*.a "$dir/lib64/"
ln -sfn libcudart.so.12 "$dir/lib64/libcudart.so"; chmod -R u+x "$dir/bin" "$dir"/nvvm/bin
"$dir/bin/nvcc" --version | tail -1
rm -rf "$work"; touch "$dir/.complete"
