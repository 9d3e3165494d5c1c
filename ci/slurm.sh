#!/bin/bash
# usage: slurm.sh up DIR [PID] | down DIR        then: export SLURM_CONF=DIR/slurm.conf
# A Slurm of one node on loopback (slurmctld, slurmd, munged; Debian's packages), without systemd and without installing
# anything: state, logs, key and sockets are in DIR. The node has two GPUs for --gres; they are device files that Slurm only
# counts, since all that it does with them is to set CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES.
# With PID, everything stops by itself when that process is gone, and DIR is removed. `down` ends jobs, then daemons.
set -eu
usage() { sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
case ${1:-} in up | down) ;; *) usage ;; esac
[ -n "${2:-}" ] || usage
D=$(realpath -m "$2")
H=$(hostname -s)
export SLURM_CONF=$D/slurm.conf
# The daemons must see nothing of a caller's preloads, devices or Slurm job.
unset LD_PRELOAD LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES "${!SLURM_JOB@}" "${!SLURM_STEP@}"
PATH=$PATH:/usr/sbin:/sbin

# Whether the daemon of a pid file runs (and its number was not given to something else meanwhile).
alive() { [ -s "$1" ] && [ "$(cat "/proc/$(cat "$1")/comm" 2>/dev/null)" = "$(basename "$1" .pid)" ]; }

stop() {
  if alive "$D/slurmctld.pid" && alive "$D/slurmd.pid"; then
    timeout 5 scancel --partition=all 2>/dev/null || true
    for _ in $(seq 50); do [ -n "$(timeout 5 squeue -h 2>/dev/null)" ] || break; sleep 0.1; done
  fi
  for pid in "$D"/slurmd.pid "$D"/slurmctld.pid "$D"/munged.pid; do
    alive "$pid" || continue
    kill "$(cat "$pid")" 2>/dev/null || true
    for _ in $(seq 50); do alive "$pid" || break; sleep 0.1; done
    ! alive "$pid" || kill -9 "$(cat "$pid")" 2>/dev/null || true
    rm -f "$pid"
  done
}

# Two neighbouring ports that nobody listens on, below the range that the kernel hands out by itself.
free_ports() {
  local port
  for _ in $(seq 50); do
    port=$((20000 + RANDOM % 6000 * 2))
    if ! (: < "/dev/tcp/127.0.0.1/$port") 2>/dev/null && ! (: < "/dev/tcp/127.0.0.1/$((port + 1))") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  echo "slurm.sh: no free port" >&2
  return 1
}

start() {
  local port
  port=$(free_ports)
  mkdir -p "$D"/{state,spool,log,munge}
  chmod 755 "$D"
  chmod 700 "$D/munge"
  [ -s "$D/munge/key" ] || (umask 077 && head -c 1024 /dev/urandom > "$D/munge/key")
  if ! getent hosts "$H" > /dev/null; then
    echo "127.0.0.1 $H" >> /etc/hosts || { echo "slurm.sh: the host's name $H has no address; add it to /etc/hosts" >&2; return 1; }
  fi
  # --force: the folder's parents may be open to others, which is no danger to a cluster of one user.
  munged --force --num-threads=1 --socket="$D/munge.socket" --key-file="$D/munge/key" --pid-file="$D/munged.pid" \
    --log-file="$D/munge/log" --seed-file="$D/munge/seed" 2> "$D/log/munged.start" || { cat "$D/log/munged.start" >&2; return 1; }
  cat > "$SLURM_CONF" <<C
ClusterName=regauge
SlurmctldHost=$H(127.0.0.1)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$D/munge.socket
CredType=cred/munge
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool
SlurmctldPidFile=$D/slurmctld.pid
SlurmdPidFile=$D/slurmd.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
MpiDefault=none
ReturnToService=2
InactiveLimit=0
KillWait=1
SlurmdTimeout=300
PropagateResourceLimits=NONE
GresTypes=gpu
NodeName=$H NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=1000 Gres=gpu:2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
C
  printf 'NodeName=%s Name=gpu File=/dev/null\nNodeName=%s Name=gpu File=/dev/zero\n' "$H" "$H" > "$D/gres.conf"
  # slurmd of 22.05 exits without a cgroup plugin, though nothing here uses one.
  if [ -d /sys/fs/cgroup/freezer ]; then
    printf 'CgroupPlugin=cgroup/v1\n' > "$D/cgroup.conf"
  else
    printf 'CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n' > "$D/cgroup.conf"
  fi
  slurmctld -f "$SLURM_CONF" < /dev/null > "$D/log/slurmctld.start" 2>&1 || return 1
  slurmd -f "$SLURM_CONF" < /dev/null > "$D/log/slurmd.start" 2>&1 || return 1
  for _ in $(seq 100); do
    if timeout 5 sinfo -h -o %T 2> /dev/null | grep -qx idle; then return 0; fi
    sleep 0.1
  done
  return 1
}

case $1 in
down) stop ;;
up)
  for attempt in 1 2 3; do
    # A port taken between the look and the start, or a slow machine: another try with other ports.
    if start; then
      if [ -n "${3:-}" ]; then
        setsid bash -c 'tail --pid="$1" -f /dev/null; bash "$2" down "$3"; rm -rf "$3"' watch "$3" "$(realpath "$0")" "$D" \
          < /dev/null > /dev/null 2>&1 &
      fi
      exit 0
    fi
    stop
  done
  echo "slurm.sh: the node is not ready after $attempt attempts:" >&2
  tail -n 5 "$D"/log/* >&2 || true
  exit 1 ;;
esac
