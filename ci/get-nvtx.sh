#!/bin/bash
# usage: get-nvtx.sh DIR
# Unpacks the headers of NVIDIA's Tools Extension (NVTX 3, which is headers only) into DIR/include, from a PyPI package (0.1 MB). For building
# test programs; never committed. Needs python3 with pip, and unzip.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); work=$dir/.download
[ ! -e "$dir/.complete" ] || exit 0

mkdir -p "$work"
python3 -m pip download -q --no-deps -d "$work" nvidia-nvtx-cu12==12.9.79
unzip -qo "$work"/*.whl -d "$work/t"
cp -a "$work/t/nvidia/nvtx/include" "$dir/"
rm -rf "$work"; touch "$dir/.complete"; echo "NVTX 12.9"
