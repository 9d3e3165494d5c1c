#!/bin/bash
# usage: make-rocr-root.sh DIR SUITE      (SUITE: bookworm, trixie or sid)
# Unpacks ROCr with its headers, comgr, rocminfo and all they need, from Debian's SUITE, into DIR: nothing is installed on this machine.
# The archive is the one this machine's apt already uses. Needs apt and dpkg. A finished DIR holds the file .complete.
set -euo pipefail
case ${1:--h} in -h|--help) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2 ;; esac
dir=$(realpath -m "$1"); suite=${2:?make-rocr-root.sh: which Debian suite?}; apt=$dir/.apt
[ ! -e "$dir/.complete" ] || exit 0

uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p)
uri=${uri:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | sed -n 1p)}
[ -n "$uri" ] || { echo "make-rocr-root.sh: apt knows no Debian archive (run apt-get update?)" >&2; exit 1; }
mkdir -p "$apt"/{lists/partial,archives/partial,etc}; : > "$apt/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" > "$apt/etc/sources.list"
# A private apt: its own sources, lists, status and cache, so the machine's state is neither read nor changed.
options=(-o "Dir::Etc::sourcelist=$apt/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" -o "Dir::Cache::archives=$apt/archives"
  -o "Dir::Cache::pkgcache=" -o "Dir::Cache::srcpkgcache=" -o "APT::Sandbox::User=$(id -un)" -o APT::Architecture=amd64
  -o Acquire::Retries=3)
apt-get "${options[@]}" update -qq
comgr=$(apt-cache "${options[@]}" pkgnames libamd-comgr | grep -v dev | sort -V | tail -1)
apt-get "${options[@]}" install -y -qq --download-only --no-install-recommends \
  libhsa-runtime64-1 libhsa-runtime-dev "$comgr" rocminfo libdrm-amdgpu1 > /dev/null
for package in "$apt"/archives/*.deb; do dpkg -x "$package" "$dir"; done
dpkg -I "$apt"/archives/libhsa-runtime64-1_*.deb | sed -n 's/^ Version: /ROCr /p'
dpkg -I "$apt"/archives/"${comgr}"_*.deb | sed -n "s/^ Version: /$comgr /p"
rm -rf "$apt/archives" "$apt/lists"; touch "$dir/.complete"
