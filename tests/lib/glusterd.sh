# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# glusterd: a stock management daemon inside the sandbox, with its state in the sandbox's empty /var/lib/glusterd.
#
#   glusterd_start               starts it; afterwards `gluster` works, the host's name is $glusterd_host
#   glusterd_brick_pids          the brick processes it started

glusterd_host=10.99.0.1

glusterd_start() {
    ip addr add "$glusterd_host/32" dev lo
    glusterd -N -l "$T/log/glusterd.log" -p "$T/glusterd.pid" >>"$T/log/glusterd.out" 2>&1 </dev/null &
    glusterd_pid=$!
    wait_for 240 "glusterd to answer" gluster --mode=script volume list
}

glusterd_brick_pids() {
    pgrep -x glusterfsd || true
}
