#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The commands that the other cli-*.t scripts leave out: status of daemons other than bricks and of all volumes,
# statedumps of each part and of other processes, rarer forms of heal, get and reset of options, and refused commands.
# Each command prints the same for a volume on kilnd's bricks as for one on stock bricks.
# Covers: bricks/brick-ops.c, bricks/status.c, daemon/statedump.c

. "$(dirname "$0")/../lib/kiln.sh"

twins_start 1x2
twins_mount
twins_run bash -c 'for i in 1 2 3 4 5; do echo one >MNT/f$i; done'
# Entries come in the order of the index's folder.
TWINS_SHAPE='sort=^(/|<gfid:)'
brick=$glusterd_host:BRICK-0

each() {
    local line
    while read -r line; do
        # shellcheck disable=SC2086
        t_twins "$line" $line
    done
}

diag "status: of the self-heal daemon, of daemons that do not run, of all volumes"
each <<END
status VOL shd
status VOL shd --xml
status VOL shd mem
status VOL shd inode
status VOL shd fd
status VOL shd clients
status VOL shd callpool
status VOL shd detail
status VOL nfs
status VOL quotad
status VOL snapd
status VOL bitd
status VOL colours detail
END
for flavour in "" detail clients; do
    # shellcheck disable=SC2086
    is "$(gl volume status all $flavour --xml | grep -c '<path>/.*/bricks/')" 4 "status all $flavour shows the bricks of both volumes"
done

diag "statedump"
each <<END
statedump VOL all
statedump VOL mem
statedump VOL iobuf
statedump VOL callpool
statedump VOL priv
statedump VOL fd
statedump VOL inode
statedump VOL history
statedump VOL quotad
statedump VOL nfs
statedump VOL client
statedump VOL client $glusterd_host:99999
statedump VOL client $glusterd_host:$$
END

diag "heal"
each <<END
heal VOL statistics
heal VOL statistics heal-count --xml
heal VOL statistics heal-count replica $brick
heal VOL split-brain latest-mtime /f1
heal VOL split-brain source-brick $brick
heal VOL split-brain bigger-file /nothing
heal VOL split-brain latest-mtime /nothing
heal VOL granular-entry-heal disable
heal VOL granular-entry-heal enable
heal VOL info healed
heal VOL info heal-failed
heal VOL colours
END

diag "info, get, set, reset"
each <<END
info VOL
info VOL --xml
get VOL all
get VOL storage.reserve
get VOL nothing.such
set VOL storage.reserve
set VOL storage.reserve 200%
set VOL storage.reserve 3
reset VOL storage.reserve
reset VOL storage.reserve force
reset VOL nothing.such
reset VOL
reset VOL force
END

diag "what is refused"
each <<END
start VOL
delete VOL
barrier VOL
clear-locks VOL / kind all posix 0,0-0
log VOL rotate $brick
sync $glusterd_host VOL
add-brick VOL $brick
replace-brick VOL $brick $brick commit force
reset-brick VOL $glusterd_host:BRICK-9 start
remove-brick VOL $brick status
remove-brick VOL $brick start
rebalance VOL status
rebalance VOL start
rebalance VOL fix-layout start
top VOL read nfs
profile VOL info nfs
quota VOL list
quota VOL limit-usage / 1MB
bitrot VOL scrub status
bitrot VOL scrub ondemand
geo-replication VOL status
END
snapshot() { gl snapshot create s "$1" 2>&1 | sed "s/$1/VOL/g"; }
is "$(snapshot twin-b)" "$(snapshot twin-a)" "snapshot create prints the same as stock"
t_here "the volume serves after snapshot create" twins_run bash -c 'echo more >>MNT/f1 && cat MNT/f1'
for vol in twin-a twin-b; do
    is "$(bricks_online $vol)" 2 "$vol: the bricks are online"
done
