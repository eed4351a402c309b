# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# wait: for a condition instead of for a time.
#
#   wait_for SECONDS EVENT CMD...  runs CMD until it succeeds, with a pause of 50 ms, or of twice the time that CMD
#                                  took, between two runs: an expensive CMD (the gluster CLI) then takes a third of a core
#                                  at most. After SECONDS the function fails and names EVENT. A limit is for a condition
#                                  that never comes; a test that passes does not pay for a limit, so the limit is many
#                                  times as long as a busy machine may need

wait_for() {
    local limit=$1 what=$2 deadline now begin pause
    shift 2
    begin=${EPOCHREALTIME/./}
    deadline=$((begin + limit * 1000000))
    until "$@" >/dev/null 2>&1; do
        now=${EPOCHREALTIME/./}
        if [[ $now -ge $deadline ]]; then
            echo "waited $limit s in vain for: $what" >&2
            return 1
        fi
        pause=$((2 * (now - begin)))
        ((pause >= 50000)) || pause=50000
        ((pause <= 500000)) || pause=500000
        printf -v pause '%d.%06d' $((pause / 1000000)) $((pause % 1000000))
        sleep "$pause"
        begin=${EPOCHREALTIME/./}
    done
}

port_answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

process_gone() {
    ! kill -0 "$1" 2>/dev/null
}
