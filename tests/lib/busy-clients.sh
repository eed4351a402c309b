# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# busy-clients: processes that use a mount while the test looks at something else.
#
#   clients_begin DIR        four processes change the modes of files in DIR, and no contents; returns when each has begun
#   clients_end              ends the processes
#
# The processes have a high priority, and there are several, so that calls of clients reach the bricks all the time on a busy
# machine, too.

clients_begin() {
    local dir=$1 n
    rm -f "$T/clients-stop" "$T"/client-works-*
    clients=()
    for n in {1..4}; do
        touch "$dir/attributes-$n"
        nice -n -15 python3 - "$dir/attributes-$n" "$T/client-works-$n" "$T/clients-stop" >>"$T/log/clients.log" 2>&1 <<'EOS' &
import os, sys, time
path, works, stop = sys.argv[1:]
while not os.path.exists(stop):
    os.chmod(path, 0o600)
    os.chmod(path, 0o644)
    os.close(os.open(works, os.O_CREAT))
    time.sleep(0.002)
EOS
        clients+=($!)
    done
    wait_for 240 "the clients" clients_work
}

clients_work() {
    [[ $(compgen -G "$T/client-works-*" | wc -l) -eq 4 ]]
}

clients_end() {
    touch "$T/clients-stop"
    wait "${clients[@]}"
}
