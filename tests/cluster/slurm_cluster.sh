#!/bin/bash
# A Slurm cluster of four virtual nodes on this host, for tests: munged, slurmctld and four slurmd on
# ports of 127.0.0.1, all below one folder. Needs root and the packages slurm-wlm and munge.
# usage: slurm_cluster.sh start DIR | stop DIR
# After start: SLURM_CONF=DIR/slurm.conf for srun, sbatch, squeue, scancel, scontrol.
set -euo pipefail
command=${1:?start or stop}
dir=$(realpath -m "${2:?folder}")
conf=$dir/slurm.conf
nodes=4
base_port=17800

stop() {
    for file in "$dir"/*.pid; do
        [ -e "$file" ] && kill "$(cat "$file")" 2>/dev/null || true
    done
    for _ in $(seq 50); do
        local alive=no
        for file in "$dir"/*.pid; do
            [ -e "$file" ] && kill -0 "$(cat "$file")" 2>/dev/null && alive=yes
        done
        [ "$alive" = no ] && break
        sleep 0.1
    done
}

start() {
    rm -rf "$dir"
    mkdir -p "$dir/state"
    chmod 755 "$dir"
    dd if=/dev/urandom of="$dir/munge.key" bs=128 count=1 status=none
    chmod 400 "$dir/munge.key"
    munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
    cat >"$conf" <<EOF
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$((base_port - 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=30
KillWait=5
SchedulerParameters=sched_interval=2,sched_min_interval=100000,batch_sched_delay=1,bf_interval=2
MinJobAge=300
EOF
    for i in $(seq $nodes); do
        echo "NodeName=n$i NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((base_port + i)) CPUs=4 RealMemory=8000" >>"$conf"
    done
    echo "PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP" >>"$conf"
    export SLURM_CONF=$conf
    slurmctld
    for i in $(seq $nodes); do
        mkdir -p "$dir/spool-n$i"
        slurmd -N "n$i"
    done
    for _ in $(seq 100); do
        [ "$(sinfo -h -o %T -t idle -N 2>/dev/null | wc -l)" -ge $nodes ] && return
        sleep 0.2
    done
    sinfo -N >&2
    tail -n 5 "$dir"/*.log >&2
    echo "slurm_cluster: the nodes did not come up" >&2
    exit 1
}

case $command in
start) start ;;
stop) stop ;;
*) exit 1 ;;
esac
