#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume status` in all its forms, as text and as XML, shows the same for kilnd's bricks as for stock ones,
# and fails where it fails for stock. Where the data of stock is unreadable (management 4.6: an inode table for each
# of 128 clients that do not exist, no open fds at all, pools under other names), the script checks for the right
# figures instead.
# Covers: bricks/status.c, bricks/brick-ops.c

. "$(dirname "$0")/../lib/kiln.sh"

twins_start 1x2
twins_mount
twins_run mkdir MNT/d
for vol in twin-a twin-b; do
    exec {held}>"${twin_mnt[$vol]}/d/held"
    echo text >&"$held"
done

t_twins "status" status VOL
t_twins "status as XML" status VOL --xml
for flavour in detail clients client-list tasks; do
    t_twins "status $flavour" status VOL $flavour
    t_twins "status $flavour as XML" status VOL $flavour --xml
done
t_twins "status of one brick" status VOL "$glusterd_host:BRICK-1"
t_twins "status of one brick, clients" status VOL "$glusterd_host:BRICK-1" clients
t_twins "status of one brick, detail, as XML" status VOL "$glusterd_host:BRICK-1" detail --xml
t_twins "status of a brick of no volume" status VOL "$glusterd_host:/nowhere"
t_twins "status of an unknown flavour" status VOL colours
TWINS_SHAPE='drop=^(Mempool.Stats|Name.*|struct.*|-.-.-.*|.*(.#){7})$' t_twins "status mem without the pools" status VOL mem
TWINS_SHAPE='drop=^(Connection.\d+:|-)$' t_twins "status inode with the sizes of the tables" status VOL inode

if [[ $BRICKD == kiln ]]; then
    counts() { grep -cE -- "$1" <<<"$out" || true; }
    figure() { python3 -c '
import sys, xml.etree.ElementTree as xml
print(sum(int(e.text) for e in xml.parse(sys.stdin).iter(sys.argv[1])))' "$1" <<<"$out"; }
    out=$(gl volume status twin-b mem)
    is "$(counts '^Mempool Stats')" 2 "status mem has a table of pools for each brick"
    is "$(counts '^struct inode( +[0-9]+){7}$')" 2 "the rows of the pools' table are complete"
    out=$(gl volume status twin-b mem --xml)
    is "$(counts '<node>') $(counts '</memStatus>')" "2 2" "status mem as XML is complete for each brick"
    out=$(gl volume status twin-b inode --xml)
    is "$(counts '<node>') $(counts '</inodeStatus>')" "2 2" "status inode as XML is complete for each brick"
    is "$(counts '<gfid>')" "$(($(figure activeSize) + $(figure lruSize)))" "status inode as XML has as many inodes as it counts"
    out=$(gl volume status twin-b fd 2>/dev/null)
    is "$(counts "^0 +$$ +[0-9]+ +[0-9]+ *\$")" 2 "status fd shows the open file and its process on each brick"
    out=$(gl volume status twin-b fd --xml)
    is "$(counts '<node>') $(counts '</fdStatus>')" "2 2" "status fd as XML is complete for each brick"
    is "$(counts '<entry>') $(figure openFds)" "2 2" "status fd as XML has the open file"
fi

# A waiting lock is a pending call, and so is the status call itself. Stock leaves out the details of each frame.
twins_run touch MNT/d/locked
holders=() waits_of=()
for mnt in "$T/mnt-a" "$T/mnt-b"; do
    flock --close "$mnt/d/locked" sleep 1000 &
    holders+=($!)
    holds() { ! flock -n "$mnt/d/locked" true; }
    wait_for 120 "the lock to be held" holds
    # The waiting process belongs to another user without permission on the path to the mount.
    python3 -c '
import fcntl, os, sys
file = open(sys.argv[1])
os.setresgid(4321, 4321, 4321)
os.setresuid(1234, 1234, 1234)
fcntl.flock(file, fcntl.LOCK_EX)' "$mnt/d/locked" &
    waits_of+=("$!")
done
pending() { gl volume status "$1" callpool | awk '/^Pending calls:/ { n += $3 } END { print n }'; }
one_waits() { [[ $(pending "$1") == 3 ]]; }
for vol in twin-a twin-b; do
    t "status callpool shows the calls of two bricks and the waiting lock of $vol" wait_for 120 "three calls" one_waits $vol
done
whose() { gl volume status "$1" callpool | awk '/^ *(UID|GID|PID) / { print $NF }' | grep -xE "1234|4321|$2" | xargs; }
is "$(whose twin-b "${waits_of[1]}")" "$(whose twin-a "${waits_of[0]}" | sed "s/${waits_of[0]}/${waits_of[1]}/")" \
    "callpool names the owner of the waiting lock: $(whose twin-b "${waits_of[1]}")"
TWINS_SHAPE='drop=^(Frame.#|Ref.Count|Translator|Completed|Frames|UID|GID|PID|Unique)' t_twins "status callpool" status VOL callpool
if [[ $BRICKD == kiln ]]; then
    out=$(gl volume status twin-b callpool)
    is "$(counts 'Translator += twin-b-locks')" 1 "callpool names the layer in which a call waits"
    out=$(gl volume status twin-b callpool --xml)
    is "$(counts '<node>') $(counts '</callpoolStatus>') $(figure count)" "2 2 3" "status callpool as XML is complete for each brick"
fi
kill "${holders[@]}"
