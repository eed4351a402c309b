#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# extras/quickstart.sh --hosts 3 shows a volume of three hosts in network namespaces, of which one dies and is healed,
# and leaves nothing after --down.
# Covers: extras/quickstart-hosts.sh, extras/quickstart.sh

. "$(dirname "$0")/../lib/kiln.sh"

[[ $BRICKD == kiln ]] || skip_all "about kilnd alone"
[[ ${KILN_BUILD:-} == "$source_dir/build" ]] || skip_all "it uses the plain build, and this is a test of another"

quickstart() {
    timeout 900 "$source_dir/extras/quickstart.sh" "$@" >"$T/log/quickstart.out" 2>&1 </dev/null
}
t_not "another number of hosts is refused" quickstart --hosts 4
t "quickstart.sh succeeds" quickstart --hosts 3 --mount "$T/vol"
is "$(tail -n 1 "$T/log/quickstart.out")" "mounted at $T/vol" "the last line names the mount point"
is "$(grep -c '^ *10.98.7.1[123] *up ' "$T/log/quickstart.out")" 6 "the list of hosts shows three hosts up, twice"
is "$(cat "$T/vol/file40")" "file 40, written while a host is down" "the mount has the files"
t_not "a second run is refused" quickstart --hosts 3 --mount "$T/vol"
t "quickstart.sh --down succeeds" quickstart --hosts 3 --down
is "$(pgrep -x "kilnd|etcd" || pgrep -x kiln-mount)" "" "no process is left"
is "$(findmnt -n -o TARGET | grep -cE "$T/vol|quickstart-hosts")" 0 "no mount is left"
t "no network and no file is left" test ! -e /run/netns/kilnq1 -a ! -e /sys/class/net/kilnq -a ! -e /run/kiln-quickstart-hosts
