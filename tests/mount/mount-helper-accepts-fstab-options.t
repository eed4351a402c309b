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

t "mount -t kiln mounts the volume" mount -t kiln 127.0.0.1:/v "$mnt"
is "$(findmnt -n -o FSTYPE,SOURCE --mountpoint "$mnt" | tr -s ' ')" "fuse.glusterfs 127.0.0.1:/v" "the mount table shows the volume"
mkdir "$mnt/sub"
echo text >"$mnt/sub/file"
t "the log of the shared process lies in stock's folder" grep -q mount-started /var/log/glusterfs/kiln-mount.log
t "umount ends the process" unmounted

options=ro,nosuid,_netdev,backup-volfile-servers=127.0.0.1,log-level=DEBUG,log-file=$T/log/mount.log,gid-timeout=5,attribute-timeout=0
t "mount -t kiln mounts with options" mount -t kiln -o "$options" 127.0.0.2:/v/sub "$mnt"
is "$(cat "$mnt/file")" text "the next server is asked, and a subdirectory is the root"
t "ro makes the mount read-only" has_option ro
t_not "a read-only mount rejects changes" touch "$mnt/new"
t "nosuid takes effect" has_option nosuid
t "the log is at the path of the option" grep -q mount-started "$T/log/mount.log"
t "the mount with options is unmounted" unmounted

echo "127.0.0.1:/v $mnt kiln defaults,_netdev,noexec,acl,x-systemd.automount 0 0" >"$T/fstab"
t "a line of fstab mounts" mount -T "$T/fstab" "$mnt"
t "noexec takes effect" has_option noexec
t "acl takes effect" setfacl -m u:nobody:rw "$mnt/sub/file"
t "the mount of fstab is unmounted" unmounted

refuses() {
    local status=0
    mount.kiln 127.0.0.1:/v "$mnt" -o "$1" >"$T/refused.out" 2>&1 || status=$?
    is "$status" 1 "$1: the exit status is 1"
    t "$1: the message names the cause" grep -q -- "$2" "$T/refused.out"
    t_not "$1: nothing is mounted" mount_is_listed "$mnt"
}

refuses worm "option worm: not built"
refuses selinux "option selinux: not built"
refuses context=system_u "option context: not built"
refuses colour=blue "option colour: not known"
refuses transport=rdma "transport rdma is not built"
refuses attribute-timeout=soon "attribute-timeout soon"
refuses subdir-mount=/none "refuses this client"
status=0
mount.kiln 127.0.0.1:/v / 2>/dev/null || status=$?
is "$status" 2 "/ is refused as a mount point"
t "-f mounts nothing and exits with 0" mount.kiln 127.0.0.1:/v "$mnt" -f
t_not "-f leaves no mount" mount_is_listed "$mnt"
kill "$server"
