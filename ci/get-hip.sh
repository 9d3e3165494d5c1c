#!/bin/bash
# usage: get-hip.sh DIR
# Unpacks AMD's HIP, the bench's yardstick, from Debian 12 into DIR: the runtime (libamdhip64 5.2) with its headers, the built-ins of its
# run-time compiler, the device libraries, and the clang 15 that it was made for. (Newer ones let a kernel that prints ask for a device
# queue, which this runtime does not have.) It runs over the ROCr 5.2.3 that make-rocr-root.sh unpacks; nothing is installed on this
# machine. The archive is the one this machine's apt already uses. Needs apt and dpkg.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); work=$dir/.download
[ ! -e "$dir/.complete" ] || exit 0

mkdir -p "$work/partial" "$work/lists/partial"; : > "$work/status"
uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
uri=${uri:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sed -n 1p)}
[ -n "$uri" ] || { echo "get-hip.sh: apt knows no Debian archive (run apt-get update?)" >&2; exit 1; }
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri bookworm main" > "$work/sources.list"
# A private apt: the machine's own sources, lists and status are neither read nor changed.
options=(-o "Dir::Etc::sourcelist=$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State::lists=$work/lists"
  -o "Dir::State::status=$work/status" -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o "APT::Sandbox::User=$(id -un)"
  -o APT::Architecture=amd64 -o Acquire::Retries=3)
apt-get "${options[@]}" update -qq
cd "$work"
apt-get "${options[@]}" download -qq libamdhip64-5 libamdhip64-dev libhiprtc-builtins5 rocm-device-libs \
  clang-15 clang-tools-15 libclang-cpp15 libclang-common-15-dev libllvm15 lld-15
for package in ./*.deb; do dpkg -x "$package" "$dir"; done
dpkg -I libamdhip64-5_*.deb | sed -n 's/^ Version: /HIP /p'
llvm=$dir/usr/lib/llvm-15
rm -rf "$llvm"/lib/libPolly* "$llvm"/lib/clang/*/lib "$llvm"/bin/c-index-test "$dir"/usr/share/{doc,man}        # half of it, and of no use here
cd /; rm -rf "$work"; touch "$dir/.complete"
