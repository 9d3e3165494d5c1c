#!/bin/bash
# usage: get-ucx.sh DIR
# Makes DIR/libucx: UCX 1.22 with its CUDA transports, from the PyPI package libucx-cu12. The package brings a private copy of NVIDIA's
# libcudart under a mangled name; here the libraries ask for libcudart.so.12 instead, as a system's own UCX does.
# Needs python3 with pip, unzip and patchelf.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); mkdir -p "$dir"
[ ! -e "$dir/.complete" ] || exit 0

python3 -m pip download -q --no-deps -d "$dir/.download" libucx-cu12==1.22.0
unzip -qo "$dir"/.download/libucx_cu12-1.22.0*.whl -d "$dir"
for library in "$dir"/libucx/lib/ucx/*.so.0.0.0; do
  for private in $(patchelf --print-needed "$library" | grep '^libcudart-.*\.so\.12' || true); do
    patchelf --replace-needed "$private" libcudart.so.12 "$library"
  done
done
# The wheel holds each library once per name; patched copies and unpatched ones must not mix.
for name in "$dir"/libucx/lib/ucx/*.so "$dir"/libucx/lib/ucx/*.so.0; do ln -sfn "$(basename "${name%.so*}").so.0.0.0" "$name"; done
rm -rf "$dir/.download" "$dir"/libucx_cu12.libs/libcudart-*; chmod +x "$dir"/libucx/bin/*
touch "$dir/.complete"; echo "UCX 1.22.0"
