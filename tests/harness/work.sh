# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# work: a workload on all volumes at once, its costs, and a check of the written data.
#
#   mode_work     runs the workload of the row

# Runs the pass of a volume's worker. Each worker has its own folder, $T/mN/work.
worker_run() {
    local pass=$1 vol=$2 dir=$T/m${2#v}/work manifest=$T/$2.manifest
    case ${conf[workload]} in
    seed) "$seed_work" "$pass" "$dir" "${conf[files]}" $([[ $pass != keep ]] || echo "$vol") ;;
    tree | smallfile) python3 "$harness_dir/work.py" "${conf[workload]}" "$dir" "$manifest" "${conf[files]}" "${vol#v}" ;;
    fio) fio_run "$dir" ;;
    *) "${conf[workload]}" "$dir" "${conf[files]}" ;;
    esac
}

# Writes 64 KiB for each of the row's files. fio reads the data back and compares.
fio_run() {
    mkdir "$1"
    fio --name=harness --directory="$1" --rw=randwrite --bs=4k --size="$((conf[files] * 64))k" --ioengine=psync --fsync_on_close=1 \
        --verify=crc32c --do_verify=1 --verify_fatal=1 --minimal --aux-path="$T"
}

passes() {
    [[ ${conf[workload]} == seed ]] && echo create write keep || echo work
}

# Writes the expected contents of the folder, for workloads whose worker writes no manifest.
manifest_make() {
    local vol=$1
    case ${conf[workload]} in
    seed) python3 "$harness_dir/work.py" seed "$T/$vol.manifest" "${conf[files]}" "$vol" ;;
    tree | smallfile) ;;
    *) python3 "$harness_dir/work.py" list "$T/m${vol#v}/work" "$T/$vol.manifest" ;;
    esac
}

mode_work() {
    local pass vol
    mounts_begin
    rest 0.5
    for vol in $(volumes_list); do
        [[ ${conf[workload]} != seed && ${conf[workload]} != */* ]] || mkdir "$T/m${vol#v}/work"
    done
    note rss_idle_kb "$(proc_rss_kb "${brick_pids[@]}")"
    note threads_idle "$(proc_threads "${brick_pids[@]}")"
    rpcs_before=$(count_rpcs "${client_pids[@]}")
    for pass in $(passes); do
        pass_run "$pass"
    done
    note rss_kb "$(proc_rss_kb "${brick_pids[@]}")"
    note rss_peak_kb "$(proc_status_sum VmHWM "${brick_pids[@]}")"
    note threads "$(proc_threads "${brick_pids[@]}")"
    note fds "$(proc_fds "${brick_pids[@]}")"
    note client_rss_kb "$(proc_rss_kb "${client_pids[@]}")"
    note client_threads "$(proc_threads "${client_pids[@]}")"
    work_check
    pools_note
}

pass_run() {
    local pass=$1 vol pid wall brick client rpcs bad=0
    local -a workers=()
    brick=$(cpu_us "${brick_pids[@]}")
    client=$(cpu_us "${client_pids[@]}")
    wall=${EPOCHREALTIME/./}
    for vol in $(volumes_list); do
        worker_run "$pass" "$vol" >"$T/log/$pass-$vol.out" 2>&1 &
        workers+=($!)
    done
    for pid in "${workers[@]}"; do
        wait "$pid" || bad=$((bad + 1))
    done
    wall=$((${EPOCHREALTIME/./} - wall))
    rest
    note "pass.$pass.wall_ms" $((wall / 1000))
    note "pass.$pass.brick_cpu_ms" $((($(cpu_us "${brick_pids[@]}") - brick) / 1000))
    note "pass.$pass.client_cpu_ms" $((($(cpu_us "${client_pids[@]}") - client) / 1000))
    rpcs=$(count_rpcs "${client_pids[@]}")
    note "pass.$pass.rpcs" $((rpcs - rpcs_before))
    rpcs_before=$rpcs
    say "$pass: $(seconds $((wall / 1000)))"
    [[ $bad -eq 0 ]] || error "$pass: $bad workers failed: $(grep -h '^first error' "$T/log/$pass-"*.out | sort | uniq -c | head -n 1)"
}

# Waits first for the client's last post-ops, which the replicas still need.
work_check() {
    local vol checked=0 wrong=0 bricks_hold=${conf[layout]}
    local -a bricks
    [[ ${conf[kind]} != disperse ]] || bricks_hold=pieces
    for vol in $(volumes_list); do
        manifest_make "$vol" || error "$vol cannot be listed"
        mapfile -t bricks < <(bricks_of "$vol" | tr ' ' '\n')
        check_one "$vol: bricks" "$bricks_hold" "$T/$vol.manifest" "${bricks[@]/%//work}"
        check_one "$vol: mount" mount "$T/$vol.manifest" "$T/m${vol#v}/work"
        [[ ${conf[layout]#*x} == 1 ]] || wait_for 60 "$vol to have nothing pending" nothing_pending "${bricks[@]}" ||
            error "$vol waits for heal: $(for one in "${bricks[@]}"; do brick_pending "$one"; done | wc -l) entries"
    done
    note checked "$checked"
    note wrong "$wrong"
    say "$checked files checked on every replica and on the mounts, $wrong wrong"
}

# Adds to checked and wrong. Files are counted once, on the bricks.
check_one() {
    local what=$1 layout=$2 text good=yes
    shift
    text=$(python3 "$harness_dir/work.py" check "$@" 2>&1) || good=no
    [[ $layout == mount ]] || checked=$((checked + $(awk '$1 == "files" { print $2 }' <<<"$text")))
    [[ $good == no ]] || return 0
    wrong=$((wrong + $(awk '$1 == "files" { n = $4 } END { print n ? n : 1 }' <<<"$text")))
    error "$what: $(head -n 5 <<<"$text" | tr '\n' ' ')"
}

# Notes the pools of the first process; with a process for each brick the other processes are alike.
pools_note() {
    local dump pid=${brick_pids[0]} dir=$T
    [[ ${conf[brick]} == kiln ]] || return 0
    [[ ${conf[manager]} == files ]] || dir=/proc/$pid/root/run/gluster
    dump=$(dump_take "$pid" "$dir") || { error "no statedump"; return 0; }
    dump_pools "$dump" >"$row_dir/pools" || error "no pools in the statedump"
}
