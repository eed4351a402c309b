#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# kiln-mount reaches a kilnd on the same machine through a local socket that belongs to the brick's TCP port. It falls
# back to TCP when the brick is a stock one, when another user has taken the socket's name, and when the option is
# off. The brick sees the same client address in both cases, so rules that refuse an address still apply. After
# SIGKILL of kilnd the mount reconnects in the same way.
# Covers: rpc/transport/local-socket.c, rpc/transport/dial.c, xlators/protocol/server/auth.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "stock bricks have no local sockets"

kiln=$T/kiln
volume_new v 1x2
volume_start v
daemon=$(volume_daemons v)

local_sockets() {
    ss -xHnp state established | grep "pid=${mount_pid[$kiln]:-none}," |
        grep -c "@kiln/127.0.0.1 [0-9]* 127.0.0.1 ${daemon_port[$daemon]} " || true
}

tcp_sockets() {
    ss -tHnp state established | grep -c "pid=${mount_pid[$kiln]}," || true
}

work() {
    echo "$1" >"$kiln/$1" && dd if=/dev/urandom of="$kiln/big" bs=1M count=8 status=none && cp "$kiln/big" "$T/big" &&
        [[ $(cat "$kiln/$1") == "$1" ]] && cmp "$T/big" "$kiln/big"
}

mount_kiln v "$kiln"
is "$(local_sockets)" 2 "the mount has a local socket to each of two bricks"
is "$(tcp_sockets)" 0 "the mount has no TCP connection"
t "files are written and read through local sockets" work local
daemon_kill "$daemon"
t_not "calls fail while kilnd is down" stat "$kiln/local"
daemon_start "$daemon"
comes_back() {
    [[ $(cat "$kiln/local") == local && $(local_sockets) -eq 2 ]]
}
t "the mount reconnects through local sockets" wait_for 240 "the mount" comes_back
t "files are written and read after the reconnect" work again
mount_end "$kiln"
is "$(local_sockets)" 0 "no local socket is left after umount"

mount_kiln v "$kiln" --xlator-option='*.local-socket=off'
is "$(local_sockets) $(tcp_sockets)" "0 2" "with local-socket off the mount uses TCP"
t "files are written and read through TCP" work tcp
mount_end "$kiln"

# ---- who is refused by address
volume_stop v
for brick in ${volume_bricks[v]}; do
    sed -i "s|option auth.addr.$brick.allow \*|option auth.addr.$brick.reject 127.0.0.1|" "${brick_volfile[$brick]}"
    grep -q 'reject 127' "${brick_volfile[$brick]}"
done
volume_start v
volume_client_volfile v default >"$T/v.vol"
refuses() {
    timeout 20 "$KILN_MOUNT" -N -f "$T/v.vol" -l "$T/log/refused.log" "$kiln" >"$T/out" 2>&1 &
    local pid=$!
    wait_for 240 "a refusal" grep -qiE 'authentication|not allowed|refused|EACCES|permission' "$T/log/refused.log"
    kill "$pid" 2>/dev/null || true
    wait "$pid" || true
}
t "a rejected address is also rejected on the local socket" refuses
umount -l "$kiln" 2>/dev/null || true

# ---- an address that this machine does not have

# ADDRESS PORT: root without capabilities puts a foreign address into its socket's name. Prints the brick's answer to the login.
logs_in() {
    setpriv --bounding-set=-all --inh-caps=-all python3 - "$tests_dir/wire" "$1" "$2" "${daemon_port[$daemon]}" ${volume_bricks[v]} <<'END'
import socket, sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import kilnwire
address, port, to, brick = sys.argv[2:6]
assert "CapEff:\t0000000000000000" in open("/proc/self/status").read()
def connect(*_):
    s = socket.socket(socket.AF_UNIX)
    s.bind("\0kiln/%s %s 127.0.0.1 %s" % (address, port, to))
    s.connect("\0kiln/any:" + to)
    return s
kilnwire.socket.create_connection = connect
try:
    print(*kilnwire.Peer("", 0).login(brick)[:2])
except (kilnwire.Closed, OSError) as error:
    print(type(error).__name__)
END
}
volume_stop v
for brick in ${volume_bricks[v]}; do
    sed -i "s|option auth.addr.$brick.reject 127.0.0.1|option auth.addr.$brick.allow 203.0.113.7|" "${brick_volfile[$brick]}"
done
volume_start v
is "$(logs_in 203.0.113.7 40000)" "-1 13" "root without capabilities cannot log in with an address of another machine"
volume_stop v
for brick in ${volume_bricks[v]}; do
    sed -i "s|option auth.addr.$brick.allow 203.0.113.7|option auth.addr.$brick.allow 127.0.0.1|" "${brick_volfile[$brick]}"
done
volume_start v
is "$(logs_in 127.0.0.1 40000)" "0 0" "root without capabilities can log in with an address of this machine"
t_not "root without capabilities cannot log in with a port below 1024" grep -q '^0 ' <(logs_in 127.0.0.1 1000)

# ---- a name that another user has
volume_stop v
for brick in ${volume_bricks[v]}; do
    sed -i "s|option auth.addr.$brick.allow 127.0.0.1|option auth.addr.$brick.allow *|" "${brick_volfile[$brick]}"
done
python3 -c '
import os, socket, sys, time
os.setuid(65534)
s = socket.socket(socket.AF_UNIX)
s.bind("\0kiln/any:" + sys.argv[1])
s.listen(8)
print("listens", flush=True)
time.sleep(600)' "${daemon_port[$daemon]}" >"$T/squatter" 2>&1 &
squatter=$!
wait_for 60 "the other user" grep -q listens "$T/squatter"
volume_start v
t "kilnd logs that it has no local socket, and serves TCP" grep -q transport-no-local-socket "$T/log/$daemon.log"
mount_kiln v "$kiln"
is "$(local_sockets) $(tcp_sockets)" "0 2" "the mount does not use a socket of another user"
t "files are written and read through TCP while the name is taken" work squatted
mount_end "$kiln"
kill "$squatter"
wait "$squatter" 2>/dev/null || true
