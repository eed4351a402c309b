#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Two users, each on their own mount, race for the same names in a sticky directory with open(O_CREAT), rename and
# unlink. Neither user opens, replaces or removes a file that the other user has made.
# xlators/protocol/server/test-names.c tests the same races at chosen moments.
# Covers: xlators/features/access-control, xlators/protocol/server/resolve.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "stock lets them"

count=${KILN_RACE_COUNT:-1500}
volume_new v 1x1
volume_start v
for user in alice bob; do
    mount_kiln v "$T/$user" --attribute-timeout=0 --entry-timeout=0
done
mkdir -m 1777 "$T/alice/d"
chmod 1777 "$T/alice/d"
python3 "$tests_dir/access/names_race.py" "$T/alice/d" "$T/bob/d" "$count" >"$T/races"
is $? 0 "the races run to their end"
for kind in create rename unlink; do
    read -r _ alices stolen status < <(grep "^$kind " "$T/races")
    is "$stolen" stolen=0 "$kind: in $count races bob never uses a file of alice"
    is "$status" status=0 "$kind: the process of alice ends with status 0"
    t "$kind: alice wins some of the races ($alices)" test "${alices#alices=}" -gt 0
done
mount_end "$T/alice"
mount_end "$T/bob"
volume_stop v
