# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# measure: the costs of a run. Sourced after kiln.sh.
#
#   seed_work_build              builds tests/bench/seed-work.c as $seed_work, which the other functions need
#   cpu_us PID...                the processes' CPU clocks added up, in microseconds
#   wait_for_rest INTERVAL MS PID...     waits until the processes use at most MS of CPU in INTERVAL seconds, half a minute at
#                                        most
#   count_rpcs PID...            the calls that these clients, stock or Kiln, have sent (msgs_sent of every protocol/client in their
#                                statedumps)
#   count_joined PID             the calls of a kiln-mount process that were behind another call in a record
#   calls_take PID FILE          lines `FOP COUNT`: the calls of a kiln-mount process to all bricks until now
#   machine                      a line that describes the machine
#   kilobytes N, seconds MS      formatted for people

seed_work_build() {
    seed_work=$T/seed-work
    gcc -std=gnu17 -O2 -D_GNU_SOURCE -Wall -Wextra -Werror -o "$seed_work" "$tests_dir/bench/seed-work.c"
}

cpu_us() {
    "$seed_work" cpu "$@"
}

# Post-ops of replicate come up to a second after the last write, so an interval of less says nothing after writes.
wait_for_rest() {
    local interval=$1 limit_us=$(($2 * 1000)) before now
    local -i tries=0
    shift 2
    now=$(cpu_us "$@")
    while ((tries++ < 20)); do
        before=$now
        sleep "$interval"
        now=$(cpu_us "$@")
        [[ $((now - before)) -gt $limit_us ]] || return 0
    done
    echo "  warning: the processes did not come to rest within 30 s"
}

# The dumps are taken side by side.
count_rpcs() {
    local pid
    for pid in "$@"; do
        rpcs_of "$pid" &
    done | awk '{ n += $1; seen++ } END { print n + 0; exit seen != '$#' }'
}

rpcs_of() {
    local file
    file=$(dump_take "$1" /run/gluster) && awk -F= '/^msgs_sent=/ { n += $2 } END { print n + 0 }' "$file"
}

count_joined() {
    awk -F= '$1 ~ /calls-joined$/ { n += $2 } END { print n + 0 }' "$(dump_take "$1" /run/gluster)"
}

calls_take() {
    awk -F'[.=]' '/^calls-sent/ { n[$2] += $3 } END { for (one in n) print one, n[one] }' "$(dump_take "$1" /run/gluster)" >"$2"
}

machine() {
    echo "$(nproc) cores ($(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)), $(awk '/^MemTotal/ \
        { printf "%.0f GB", $2 / 1048576 }' /proc/meminfo), Linux $(uname -r), $(glusterfs --version | head -n 1)"
}

kilobytes() {
    awk -v kb="$1" 'BEGIN { printf "%.1f MB", kb / 1024 }'
}

seconds() {
    awk -v ms="$1" 'BEGIN { printf "%.2f s", ms / 1000 }'
}
