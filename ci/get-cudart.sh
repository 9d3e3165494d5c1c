#!/bin/bash
# usage: get-cudart.sh DIR VERSION      (VERSION: 11.8, 12.0 to 12.9, or 13.0)
# Unpacks NVIDIA's runtime of that version, lib/libcudart.so.11.0, .12 or .13, and its headers into DIR, from PyPI packages (1 MB each). The
# headers lack crt/, which get-nvcc.sh has. NVIDIA's files are for building and testing; they are never committed. Needs python3 with pip, and unzip.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); work=$dir/.download
[ ! -e "$dir/.complete" ] || exit 0
case ${2:?get-cudart.sh: which version?} in
  11.8) package=nvidia-cuda-runtime-cu11==11.8.89 folder=cuda_runtime ;;
  12.0) patch=146 ;; 12.1) patch=105 ;; 12.2) patch=140 ;; 12.3) patch=101 ;; 12.4) patch=127 ;;
  12.5) patch=82 ;; 12.6) patch=77 ;; 12.8) patch=90 ;; 12.9) patch=79 ;;
  13.0) package=nvidia-cuda-runtime==13.0.96 folder=cu13 ;;
  *) echo "get-cudart.sh: $2: not 11.8, 12.0 to 12.6, 12.8, 12.9 or 13.0" >&2; exit 2 ;;
esac
[ -z "${patch:-}" ] || { package=nvidia-cuda-runtime-cu12==$2.$patch; folder=cuda_runtime; }

mkdir -p "$work"
python3 -m pip download -q --no-deps -d "$work" "$package"
unzip -qo "$work"/*.whl -d "$work/t"
cp -a "$work/t/nvidia/$folder/include" "$work/t/nvidia/$folder/lib" "$dir/"
rm -rf "$work"; touch "$dir/.complete"; echo "CUDA runtime $2"
