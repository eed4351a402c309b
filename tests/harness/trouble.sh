# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# trouble: the modes of a row without a workload: bricks killed under load, a host cut off, volumes created and deleted.
#
#   mode_kill, mode_cut, mode_churn

load_py=$source_dir/tests/faults/load.py
declare -A load_pid=()

loads_start() {
    local vol
    for vol in $(volumes_list); do
        mkdir "$T/m${vol#v}/load"
        : >"$T/$vol.progress"
        python3 "$load_py" run "$T/m${vol#v}/load" "$T/$vol.progress" "$T/stop" "$T/$vol.state" 2>"$T/log/load-$vol.out" &
        load_pid[$vol]=$!
    done
}

# Every load goes on for so many tens of operations from now on, or ends.
loads_work_on() {
    local vol
    for vol in $(volumes_list); do
        wait_for 300 "the load of $vol to go on" load_went_on "$vol" $(($(stat -c %s "$T/$vol.progress") + $1)) ||
            error "the load of $vol does not go on"
    done
}

load_went_on() {
    [[ $(stat -c %s "$T/$1.progress") -ge $2 ]] || process_gone "${load_pid[$1]}"
}

# Ends the loads. Their state files have the results of all calls, failed calls included.
loads_end() {
    local must=$1 vol failed=0 operations=0
    touch "$T/stop"
    for vol in $(volumes_list); do
        wait "${load_pid[$vol]}" || failed=$((failed + 1))
        operations=$((operations + $(stat -c %s "$T/$vol.progress") * 10))
    done
    note operations "$operations"
    note loads_with_error "$failed"
    say "about $operations operations, $failed of ${conf[volumes]} loads met an error"
    [[ $must == may-fail || $failed -eq 0 ]] || error "$failed loads met an error: $(tail -qn 1 "$T"/log/load-*.out | sort -u | head -n 3)"
}

heal_is_done() {
    local text
    text=$(gl volume heal "$1" info) || return 1
    [[ $(grep -c '^Number of entries: 0$' <<<"$text") -eq $(volume_brick_count "${conf[layout]}") ]]
}

# Checks every acknowledged change on every replica.
healed_check() {
    local vol brick checked=0
    local -a bricks
    for vol in $(volumes_list); do
        wait_for 400 "heal info of $vol to be empty" heal_is_done "$vol" || error "$vol: heal info is not at 0"
        mapfile -t bricks < <(bricks_of "$vol")
        replicas_check "$vol" "${bricks[@]}"
        for brick in "${bricks[@]}"; do
            brick_handles_hold "$brick" >"$T/log/handles.out" || error "$brick: $(head -n 3 "$T/log/handles.out")"
        done
        mount_begin "$vol" "$T/fresh-$vol"
        mount_arrive "$vol" "$T/fresh-$vol"
        python3 "$load_py" verify "$T/fresh-$vol/load" "$T/$vol.state" >"$T/log/verify.out" ||
            error "$vol: $(head -n 3 "$T/log/verify.out" | tr '\n' ' ')"
        checked=$((checked + $(awk '/entries$/ { print $1 }' "$T/log/verify.out")))
        mount_end "$T/fresh-$vol"
    done
    note checked "$checked"
    say "$checked entries are as they were acknowledged"
}

replicas_check() {
    local vol=$1 size=$((${conf[layout]#*x})) i
    shift
    for ((i = 1; i <= $#; i++)); do
        # An arbiter's files are empty; heal info has shown that the arbiter's names are healed.
        [[ $(((i - 1) % size)) -gt 0 && (${conf[layout]} != *+* || $((i % size)) -ne 0) ]] || continue
        bricks_get_equal "${@:i - 1:1}" "${@:i:1}" >"$T/log/equal.out" 2>&1 ||
            error "$vol: bricks $((i - 2)) and $((i - 1)) differ: $(head -n 5 "$T/log/equal.out" | tr '\n' ' ')"
    done
}

# The brick processes of the second replica of each set; with multiplexing on that of all bricks (of the second host, where there are
# several).
victims() {
    local vol i size=$((${conf[layout]#*x}))
    if [[ ${conf[mux]} == on ]]; then
        [[ ${conf[hosts]} -eq 1 ]] && glusterd_brick_pids || cat "/proc/${host_pid[2]}/root/run/gluster/vols/"*/*.pid
        return
    fi
    for vol in $(volumes_list); do
        for ((i = 1; i < $(volume_brick_count "${conf[layout]}"); i += size)); do
            gl volume status "$vol" --xml | python3 -c '
import sys, xml.etree.ElementTree as xml
print(*[n.findtext("pid") for n in xml.parse(sys.stdin).iter("node") if n.findtext("path") == sys.argv[1]])' "$(gl_brick_path "$vol" "$i")"
        done
    done
}

not_all_online() {
    ! all_online
}

settled() {
    local vol
    for vol in $(volumes_list); do
        client_is_settled "$T/m${vol#v}" "$vol" "${conf[layout]/2+1/3}" "${mount_pid[$T/m${vol#v}]}" || return 1
    done
}

mode_kill() {
    local vol pid
    local -a pids
    mounts_begin
    loads_start
    loads_work_on 10
    mapfile -t pids < <(victims | sort -u)
    say "kill -9 of ${#pids[@]} brick process(es)"
    note killed "${#pids[@]}"
    for pid in "${pids[@]}"; do
        kill -KILL "$pid"
    done
    wait_for 120 "glusterd to see it" not_all_online || error "glusterd shows the killed bricks online"
    loads_work_on 10
    for vol in $(volumes_list); do
        gl volume start "$vol" force >/dev/null || error "$vol: start force"
    done
    wait_for 120 "all bricks to be online again" all_online || error "$(bricks_online all) of $(bricks_wanted) bricks came back"
    wait_for 120 "the clients to be connected to all bricks" settled || error "clients are not connected to all bricks"
    loads_work_on 10
    # With all bricks killed a call had to fail; with one brick of each set killed no call may fail.
    if [[ ${conf[mux]} == on && ${conf[hosts]} -eq 1 ]]; then
        loads_end may-fail
    else
        loads_end must-not-fail
    fi
    healed_check
    find_brick_pids
}

mode_cut() {
    local host=${conf[cut_host]}
    mounts_begin
    loads_start
    loads_work_on 10
    say "host $host is off the network for ${conf[cut_seconds]} s"
    host_cut "$host"
    sleep "${conf[cut_seconds]}"
    loads_work_on 10
    host_join "$host"
    wait_for 240 "the clients to be connected to all bricks" settled || error "clients are not connected to all bricks"
    loads_work_on 10
    loads_end must-not-fail
    wait_for 240 "the hosts to be peers again" hosts_are_peers "${conf[hosts]}" || error "the hosts are no peers"
    wait_for 120 "all bricks to be online" all_online || error "$(bricks_online all) of $(bricks_wanted) bricks are online"
    healed_check
}

# Keeps a volume busy without a growing number of files.
busy() {
    local dir=$T/m${1#v}/busy
    mkdir "$dir"
    while [[ ! -e $T/stop ]]; do
        "$seed_work" create "$dir" 50
        "$seed_work" write "$dir" 50
        sleep "${conf[pause]}"
    done
}

busy_start() {
    local vol
    rm -f "$T/stop"
    busy_pids=()
    for vol in $(volumes_list); do
        busy "$vol" >"$T/log/busy-$vol.out" 2>&1 &
        busy_pids+=($!)
    done
}

busy_end() {
    local pid vol
    touch "$T/stop"
    for pid in "${busy_pids[@]}"; do
        wait "$pid" || error "a busy volume met an error: $(grep -h '^first error' "$T"/log/busy-*.out | head -n 1)"
    done
    for vol in $(volumes_list); do
        rmdir "$T/m${vol#v}/busy" || error "files are left on the busy volume $vol"
    done
}

churn_round() {
    local mnt=$T/guest bad=0
    volume_make guest || return 1
    wait_for 90 "the bricks of the guest" guest_online || bad=1
    mount_begin guest "$mnt"
    mount_arrive guest "$mnt" || return 1
    seq 1000 >"$mnt/file" && mkdir "$mnt/d" && cp "$mnt/file" "$mnt/d/copy" && cmp "$mnt/file" "$mnt/d/copy" || bad=1
    mount_end "$mnt"
    gl volume stop guest >/dev/null || bad=1
    gl volume delete guest >/dev/null || bad=1
    rm -rf "$T"/bricks/guest-* "$T"/bricks/disk*/guest-*
    rm -f "$T"/log/client-guest.*
    return "$bad"
}

guest_online() {
    [[ $(bricks_online guest) -eq $(volume_brick_count "${conf[layout]}") ]]
}

rounds_run() {
    local round
    for ((round = 1; round <= $1; round++)); do
        churn_round || error "round $round failed"
        [[ $((round % 20)) -ne 0 ]] || say "round $round: RSS $(kilobytes "$(proc_rss_kb "${brick_pids[@]}")")"
    done
}

# As "threads fds rss_kb".
bricks_cost() {
    echo "$(proc_threads "${brick_pids[@]}") $(proc_fds "${brick_pids[@]}") $(proc_rss_kb "${brick_pids[@]}")"
}

# Workers that were added for blocked workers leave after ten idle seconds, and pools return cached memory.
cost_is_back() {
    local -a was now
    read -r -a was <<<"$1"
    read -r -a now <<<"$(bricks_cost)"
    [[ ${now[0]} -le ${was[0]} && ${now[1]} -le ${was[1]} && $((now[2] * 100)) -le $((was[2] * 103)) ]]
}

# True when the costs have been the same for longer than the idle time of surplus workers and than two sweeps, which free unused
# memory. The caller asks again and again.
cost_is_steady() {
    local now
    now=$(bricks_cost)
    if [[ $now != "$steady_cost" ]]; then
        steady_cost=$now
        steady_since=$SECONDS
    fi
    [[ $((SECONDS - steady_since)) -ge 25 ]]
}

mode_churn() {
    local before after pids="${brick_pids[*]}"
    mounts_begin
    busy_start
    rounds_run 20 # the first ones warm up pools, tables and the allocator: 5 were not enough
    busy_end
    steady_cost=
    wait_for 300 "the bricks to come to rest" cost_is_steady || error "the bricks do not come to rest"
    before=$(bricks_cost)
    busy_start
    rounds_run "${conf[rounds]}"
    busy_end
    wait_for 120 "threads, descriptors and RSS as before" cost_is_back "$before" || true # what they are is said and judged below
    after=$(bricks_cost)
    say "threads, descriptors, RSS in KiB: before $before, after ${conf[rounds]} rounds $after"
    note rounds "${conf[rounds]}"
    note before "$before"
    note after "$after"
    cost_is_back "$before" || error "not as before: $before, then $after"
    find_brick_pids
    [[ ${brick_pids[*]} == "$pids" ]] || error "the brick processes are others than at first"
}
