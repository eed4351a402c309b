# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# wait: for a condition instead of for a time.
#
#   wait_for SECONDS WHAT CMD...   runs CMD every 50 ms until it succeeds; fails, and says what it waited for,
#                                  when it has not after SECONDS. A limit is for what will never happen: it costs nothing
#                                  when all is well, so it is many times what a busy machine may need

wait_for() {
    local limit=$1 what=$2 deadline
    shift 2
    deadline=$((${EPOCHREALTIME/./} + limit * 1000000))
    until "$@" >/dev/null 2>&1; do
        if [[ ${EPOCHREALTIME/./} -ge $deadline ]]; then
            echo "waited $limit s in vain for: $what" >&2
            return 1
        fi
        sleep 0.05
    done
}

port_answers() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

process_gone() {
    ! kill -0 "$1" 2>/dev/null
}
