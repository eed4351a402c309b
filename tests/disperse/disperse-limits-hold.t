#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# Limits of dispersed volumes and of their folders count the bytes of the user, not of the fragments: in status, quota,
# df and the xattrs that a mount reads and sets, with one set of bricks and with two. A copy of a limit from folder to
# folder keeps its value.
# Covers: volumes/quota.c, xlators/cluster/disperse/metadata.c, xlators/features/simple-quota

. "$(dirname "$0")/../lib/kiln.sh"

field() {
    kiln_json status "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["volumes"][0][sys.argv[1]])' "$2"
}
quota_of() {
    kiln_json quota "$1" list | python3 -c 'import json, sys
print(*[str(o["limit"]) + ":" + str(o["used"]) for o in json.load(sys.stdin)["limits"] if o["path"] == sys.argv[1]])' "$2"
}
limit_at() { getfattr --absolute-names --only-values -n trusted.gfs.squota.limit "$1" 2>/dev/null; }
df_of() { df -B1 --output=size,used "$1" | tail -n 1 | awk '{ print $1, $2 }'; }
write() { dd if=/dev/urandom of="$1" bs=64k count="$2" conv=fsync status=none; }
used_is() { [[ $(field "$1" used) -eq $2 ]]; }
folder_is() { [[ $(quota_of "$1" "$2") == "$3" ]]; }
mount_own() {
    local name=$1 mnt=$2
    shift 2
    mkdir -p "$mnt" && "$KILN_MOUNT" -l "$T/log/mount-$(basename "$mnt").log" "$@" "localhost:/$name" "$mnt"
}

mkdir -p "$T/b"
front_start
# ---- one set of 2+1
t "a dispersed volume is created with a limit" kiln volume create d disperse 3 redundancy 1 "$T"/b/{1,2,3} size 8M
kiln volume start d >/dev/null
t "kiln-mount mounts the volume" mount_own d "$T/d"
is "$(field d limit)" 8388608 "status shows the limit"
is "$(df_of "$T/d")" "8388608 0" "df shows the limit"
is "$(limit_at "$T/b/1")" 4194304 "a brick has the limit of its fragments"
t "6 MiB can be written" write "$T/d/a" 96
t "3 MiB more cannot be written" fails_with "quota exceeded" write "$T/d/b" 48
rm "$T/d/b"
t "status shows the bytes of the user" wait_for 60 "usage" used_is d 6291456
is "$(df_of "$T/d")" "8388608 6291456" "df shows the usage"
t "the limit is removed" kiln volume limit d none

# ---- folders
mkdir "$T/d/ann" "$T/d/bob"
t "a folder gets a limit" kiln volume quota d set /ann 4M
is "$(limit_at "$T/d/ann") $(limit_at "$T/b/2/ann")" "4194304 2097152" "a mount reads the user's limit, a brick has its part"
t "3 MiB can be written to the folder" write "$T/d/ann/a" 48
t "2 MiB more cannot be written to the folder" fails_with "quota exceeded" write "$T/d/ann/b" 32
rm "$T/d/ann/b"
t "quota list shows the bytes of the user" wait_for 60 "usage" folder_is d /ann 4194304:3145728
t "a mount of a quota tool mounts the volume" mount_own d "$T/tool" --client-pid=-14
t "the tool marks a namespace" setfattr -n trusted.glusterfs.namespace -v true "$T/tool/bob"
t "the tool sets a limit" setfattr -n trusted.gfs.squota.limit -v "$(limit_at "$T/tool/ann")" "$T/tool/bob"
is "$(limit_at "$T/d/bob") $(limit_at "$T/b/3/bob")" "4194304 2097152" "a copied limit keeps its value"
t "the limit that was set through the mount holds" fails_with "quota exceeded" write "$T/d/bob/c" 80
t "a brick is killed" kiln volume reset-brick d "$T/b/3" start
rm -f "$T/d/bob/c"
t "the limit holds without a brick" fails_with "quota exceeded" write "$T/d/bob/d" 80
t "the brick returns" kiln volume start d force
umount "$T/d" "$T/tool"

# ---- two sets of 2+1
t "a volume of two sets is created with a limit" kiln volume create e disperse 3 redundancy 1 "$T"/b/{4,5,6,7,8,9} size 8M
kiln volume start e >/dev/null
t "kiln-mount mounts the second volume" mount_own e "$T/e"
fill() {
    local i
    for i in {1..40}; do
        write "$T/e/f$i" 8 || return 0
        sleep 0.1
    done
    return 1
}
t "writes to both sets end at the limit of their sum" fill
sum=$(cat "$T"/e/f* | wc -c)
t "the files together are not above the limit" test "$sum" -le $((8388608 + 524288))
t "the files together nearly reach the limit" test "$sum" -ge $((8388608 - 1048576))
is "$(df_of "$T/e" | cut -d ' ' -f 1)" 8388608 "df shows the limit of the sum"
umount "$T/e"
front_stop
