# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# attacks: runs attacks of attack.py, each against a new daemon with two bricks. After tests/lib/own-root.sh.
#
#   attacks_run MODULES NAMES     the attacks of the modules whose names match, both extended regular expressions; each attack
#                                 counts as a test, the daemon's end and the state of the rest of the root file system as
#                                 further tests
#
# KILN_ATTACK_SIZE=full: attacks of the full size. KILN_ATTACKS=REGEX: only these attacks.

# The ports lie below the ports that the kernel gives to the attackers' thousands of connections.
next_port=20000

attacks_sanitizer() {
    case $(ldd "$KILND" 2>&1) in
    *libtsan*) echo thread ;;
    *libasan*) echo address ;;
    esac
}

attacks_list() {
    python3 "$tests_dir/wire/attack.py" --list
}

# More than 64 KiB of addresses, and behind them the address to reject.
attacks_long_list() {
    local number list=
    for ((number = 0; number < 6000; number++)); do
        list+="10.$((number / 250)).$((number % 250)).77 "
    done
    echo "${list// /,}127.0.0.1"
}

# A program that starts the daemon with fewer descriptors, because this shell could not raise a lowered limit again.
attack_few_files() {
    printf '#!/bin/bash\nulimit -n %d && exec "%s" "$@"\n' "$2" "$KILND" >"$T/$1.start-it"
    chmod 755 "$T/$1.start-it"
    echo "$T/$1.start-it"
}

attack_start() {
    local name=$1 options=$2 nofile=$3 KILND=$KILND
    options=${options/LONG-LIST/$(attacks_long_list)}
    options=${options/BRICK/$T/$name/b0}
    volume_daemon=$name
    BRICK_SERVER_OPTIONS=$options volume_new "$name" 1x1
    volume_new "$name-other" 1x1
    [[ -z $nofile ]] || KILND=$(attack_few_files "$name" "$nofile")
    volume_start "$name"
}

# SIGTERM has to end the daemon with status 0, during any work for any client.
attack_stop() {
    local daemon=$1 pid=${daemon_pid[$1]} status=0
    unset "daemon_pid[$daemon]"
    kill -TERM "$pid"
    if ! wait_for 60 "$daemon to end" process_gone "$pid"; then
        { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
        return 1
    fi
    wait "$pid" || status=$?
    [[ $status -eq 0 ]] || { tail -n 30 "$T/log/$daemon.out"; echo "status $status"; return 1; }
}

attack_run() {
    local name=$1 options=$2 nofile=$3 devices=$4
    mount -o "remount,$([[ -n $devices ]] && echo dev || echo nodev)" "$T"
    if ! attack_start "$name" "$options" "$nofile" 2>"$T/$name.start"; then
        # A list that cannot be taken may keep the brick from being served at all; nothing else may.
        if [[ -n $options ]]; then
            t "$name: the daemon starts, or says that it refuses the option" \
                grep -q "${options%% *}" "$T/log/$name.out" "$T/log/$name.log" "$T/$name.start"
        else
            tap_not_ok "$name: the daemon starts"
            diag "$(cat "$T/$name.start")"
        fi
        unset "daemon_pid[$name]"
        return
    fi
    [[ -z $nofile ]] ||
        is "$(awk '/^Max open files/ { print $4, $5 }' "/proc/${daemon_pid[$name]}/limits")" "$nofile $nofile" "$name: descriptors are few"
    KILN_TEST_PID=${daemon_pid[$name]} KILN_TEST_DIR=$T KILN_SANITIZER=$(attacks_sanitizer) include "$name: held" \
        timeout -k 5 "${attack_seconds:-300}" python3 "$tests_dir/wire/attack.py" "$(cat "$T/$name.port")" "$T/$name/b0" "$T/$name-other/b0" "$name"
    t_here "$name: the daemon ends on SIGTERM" attack_stop "$name"
    own_root_check "$name: "
    rm -rf "${T:?}/$name" "${T:?}/$name-other" "$T"/*.dump.*
}

attacks_run() {
    local modules=$1 names=$2 name options nofile devices module
    while IFS='|' read -r name options nofile devices module; do
        [[ $module =~ $modules && $name =~ $names ]] || continue
        attack_run "$name" "$options" "$nofile" "$devices"
    done < <(attacks_list)
}
