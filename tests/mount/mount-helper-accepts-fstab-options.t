#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# mount(8) mounts a volume through the helper mount.kiln, by hand and from fstab. The helper passes options on,
# accepts them without effect, or refuses them by name. The flags of mount(2) take effect, and the exit statuses are
# those of a mount helper.
# Covers: mount/helper.c, mount/options.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"

system_cover
ln -s "$KILN_MOUNT" /usr/sbin/mount.kiln
volume_new v 1x1
volume_start v
volfile_bare v "$(volume_specs v)" >"$T/v.vol"
python3 "$kiln_lib/volfile-server.py" 127.0.0.1 24007 "$T/v.vol" >>"$T/log/server.log" 2>&1 &
server=$!
wait_for 120 "the server to listen" port_answers 24007
mnt=$T/mnt
mkdir "$mnt"

has_option() {
    [[ ,$(findmnt -n -o OPTIONS --mountpoint "$mnt"), == *,"$1",* ]]
}

unmounted() {
    umount "$mnt"
    wait_for 240 "kiln-mount to end" no_clients
}

no_clients() {
    ! pgrep -f "mount.kiln 127.0.0" >/dev/null
}

t "mount -t kiln" mount -t kiln 127.0.0.1:/v "$mnt"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs 127.0.0.1:/v" "the mount table shows a volume"
mkdir "$mnt/sub"
echo text >"$mnt/sub/file"
t "its log is where stock's is" grep -q mount-started "/var/log/glusterfs/${mnt//\//-}.log" "/var/log/glusterfs/$(tr / - <<<"${mnt#/}").log"
t "umount ends it" unmounted

options=ro,nosuid,_netdev,backup-volfile-servers=127.0.0.1,log-level=DEBUG,log-file=$T/log/mount.log,gid-timeout=5,attribute-timeout=0
t "with options" mount -t kiln -o "$options" 127.0.0.2:/v/sub "$mnt"
is "$(cat "$mnt/file")" text "the next server was asked, a directory is the root"
t "ro: it is read-only" has_option ro
t_not "and refuses changes" touch "$mnt/new"
t "nosuid acts" has_option nosuid
t "the log is where it was wanted" grep -q mount-started "$T/log/mount.log"
t "unmounted" unmounted

echo "127.0.0.1:/v $mnt kiln defaults,_netdev,noexec,acl,x-systemd.automount 0 0" >"$T/fstab"
t "from fstab" mount -T "$T/fstab" "$mnt"
t "noexec acts" has_option noexec
t "acl acts" setfacl -m u:nobody:rw "$mnt/sub/file"
t "unmounted" unmounted

refuses() {
    local status=0
    mount.kiln 127.0.0.1:/v "$mnt" -o "$1" >"$T/refused.out" 2>&1 || status=$?
    is "$status" 1 "$1: the exit status is 1"
    t "$1: it says why" grep -q -- "$2" "$T/refused.out"
    t_not "$1: nothing is mounted" mount_is_listed "$mnt"
}

refuses worm "option worm: not built"
refuses selinux "option selinux: not built"
refuses context=system_u "option context: not built"
refuses colour=blue "option colour: not known"
refuses transport=rdma "transport rdma is not built"
refuses attribute-timeout=soon "attribute-timeout soon"
refuses subdir-mount=/none "does not let us in"
status=0
mount.kiln 127.0.0.1:/v / 2>/dev/null || status=$?
is "$status" 2 "/ is no place"
t "-f mounts nothing and says yes" mount.kiln 127.0.0.1:/v "$mnt" -f
t_not "indeed nothing" mount_is_listed "$mnt"
kill "$server"
