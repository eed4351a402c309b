#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The Debian packages are built and installed by apt in a bare Debian 12 that systemd has booted. A volume is created,
# mounted by both clients and written while kilnd restarts, the watchdog restarts kilnd, logs are rotated, the machine
# reboots and mounts the entries of its fstab, an upgrade of the package is not noticed by a writer, and purging the
# packages keeps the bricks.
#
#   tests/packages/packages-install-and-purge-on-bare-debian-long.t
#
# The script needs root, the archive's mirror and `extras/install-deps.sh package`. KILN_DEBS=DIR uses existing
# packages. KILN_BASE=FILE.tar is the bare Debian; the script makes it when it is missing. The output is TAP. All
# files are in one directory of /var/tmp, which the script removes at the end.
# Covers: debian

set -u
for program in systemd-nspawn mmdebstrap lintian dpkg-buildpackage; do
    command -v "$program" >/dev/null || { echo "1..0 # SKIP no $program: extras/install-deps.sh package"; exit 0; }
done
. "$(dirname "$0")/machine.sh"

# ---- the packages ----------------------------------------------------------------------------

machine_debs
[[ -n ${KILN_DEBS:-} ]] || t "lintian finds no error" bash -c "cd '$debs' && lintian --allow-root --fail-on error ./*.changes"

# ---- the machine -----------------------------------------------------------------------------

machine_unpack
# The machine has no network, so the script fetches the packages' dependencies before.
t "apt finds the dependencies of the packages" chroot "$root" bash -c "apt-get update -q && apt-get install -y -q --download-only \
    --no-install-recommends /debs/*.deb glusterfs-client attr logrotate"

if ! machine_boot; then
    echo "1..$((n + 1))"
    echo "ok $((n + 1)) - the rest # SKIP systemd does not boot in systemd-nspawn here"
    exit "$failed"
fi

# ---- installed -------------------------------------------------------------------------------

t "apt installs the packages from a local folder" inside 'apt-get install -y --no-install-recommends /debs/*.deb glusterfs-client attr logrotate'
t "kilnd runs, and systemd starts kilnd at boot" inside 'systemctl is-active kilnd && systemctl is-enabled kilnd'
t "the sandbox of kilnd is rated 5.0 or better" inside 'systemd-analyze security --threshold=50 kilnd.service'
t "systemd finds nothing wrong with the unit" inside '! systemd-analyze verify kilnd.service 2>&1 | grep -v "Command .man"'
# A machine without CAP_SYS_RESOURCE allows no more than its own limit.
t "kilnd may open as many files as the unit says" inside \
    'hard() { sed -n "s/^Max open files *[0-9]* *\([0-9]*\) .*/\1/p" "/proc/$1/limits"; }; want=1048576; \
    [[ $(hard 1) -ge $want ]] || want=$(hard 1); [[ $(hard "$(systemctl show -P MainPID kilnd)") -ge $want ]]'
t "kiln creates and starts a volume" inside 'kiln volume create demo replica 2 /srv/b{1..4} && kiln volume start demo'
t "the stock client mounts the volume" inside 'mkdir /mnt/s /mnt/k && mount -t glusterfs localhost:/demo /mnt/s'
t "kiln mounts the volume" inside 'kiln mount demo /mnt/k'
t "the stock client reads a file that the other client has written" inside 'echo hello >/mnt/k/file && grep -q hello /mnt/s/file'
t "the sandbox forbids no operation of clients" inside 'cd /mnt/s && mknod dev c 1 3 && touch suid && chmod 4755 suid && \
    chown 1000:1000 file && setfattr -n user.x -v y file && test -u suid -a -c dev'
t "the journal has kilnd's log with priorities" inside 'journalctl -u kilnd -p info --no-pager | grep -q "\[login\]"'
t "a reload does not end kilnd" inside 'before=$(systemctl show -P MainPID kilnd); systemctl reload kilnd; systemctl is-active kilnd && \
    [[ $(systemctl show -P MainPID kilnd) == "$before" ]]'
t "kilnd serves every brick when systemd reports the start" inside 'systemctl restart kilnd && \
    [[ $(kiln --json status demo | grep -oE "\"online\": *true" | wc -l) -eq 4 ]]'

# A log in a file instead: an operator who moves the file away reloads kilnd, or has logrotate copy the file.
inside "echo 'log-file = /var/log/kiln/kilnd.log' >>/etc/kiln/kilnd.conf && systemctl restart kilnd"
t "a reload opens a moved log anew" inside 'mv /var/log/kiln/kilnd.log /root/moved && systemctl reload kilnd && \
    kiln volume set demo user.note moved'
t "kilnd writes to the new log" until_inside 60 'grep -q "\[volume-set\]" /var/log/kiln/kilnd.log'
t "logrotate keeps the old log" inside 'logrotate -f /etc/logrotate.d/kiln && grep -q "\[volume-set\]" /var/log/kiln/kilnd.log.1 && \
    ! grep -q "\[volume-set\]" /var/log/kiln/kilnd.log && kiln volume set demo user.note rotated'
t "kilnd writes to the new log after logrotate" until_inside 60 'grep -q "\[volume-set\]" /var/log/kiln/kilnd.log'
inside "sed -i '/^log-file/d' /etc/kiln/kilnd.conf && systemctl restart kilnd"
t "both mounts work after the restart of kilnd" until_inside 240 'grep -q hello /mnt/k/file && grep -q hello /mnt/s/file'

# Each file is acknowledged when sync has returned 0.
cat >"$root/root/write" <<'END'
for ((i = 0; ! $(test -e /root/stop; echo $?) == 0; i++)); do
    { echo "line $i" >/mnt/k/f$i && sync /mnt/k/f$i && echo $i >>/root/acknowledged; } 2>/dev/null || sleep 0.05
done
END
inside 'bash /root/write' >/dev/null 2>&1 </dev/null &
writer=$!
for i in 1 2; do
    t "writes continue ($i)" until_inside 240 'old=$(cat /root/mark 2>/dev/null || echo 0); now=$(wc -l </root/acknowledged); \
        [[ $now -gt $((old + 20)) ]] && echo "$now" >/root/mark'
    t "kilnd is restarted under the writes ($i)" inside 'systemctl restart kilnd'
done
t "writes continue after the restarts" until_inside 240 '[[ $(wc -l </root/acknowledged) -gt $(($(cat /root/mark) + 20)) ]]'
inside 'touch /root/stop'
wait "$writer"
# The stock client may still be reconnecting to a brick.
t "every acknowledged write is present" until_inside 240 'while read -r i; do [[ $(cat /mnt/s/f$i) == "line $i" ]] || exit 1; done </root/acknowledged'

inside 'kill -STOP $(systemctl show -P MainPID kilnd)'
t "the watchdog restarts a stopped kilnd" until_inside 300 '[[ $(systemctl show -P NRestarts kilnd) -ge 1 ]] && systemctl is-active kilnd'
t "the mount works after the restart by the watchdog" until_inside 240 'grep -q hello /mnt/k/file'

# ---- booted again ----------------------------------------------------------------------------

cat >>"$root/etc/fstab" <<'END'
localhost:/demo /mnt/s glusterfs _netdev,x-systemd.requires=kilnd.service 0 0
localhost:/demo /mnt/k kiln _netdev,x-systemd.requires=kilnd.service 0 0
END
[[ ! -e /dev/autofs ]] || cat >>"$root/etc/fstab" <<'END'
localhost:/demo /mnt/a kiln _netdev,x-systemd.requires=kilnd.service,x-systemd.automount 0 0
END
mkdir "$root/mnt/a"
t "the machine is shut down with volumes mounted" machine_halt
t "the machine boots again" machine_boot
t "the mounts of the machine's fstab are back" inside 'systemctl is-active kilnd mnt-s.mount mnt-k.mount && findmnt -t fuse.glusterfs /mnt/s && \
    findmnt -t fuse.glusterfs /mnt/k && grep -q hello /mnt/s/file /mnt/k/file'
if [[ -e /dev/autofs ]]; then
    t "an automount mounts at the first access" inside 'systemctl is-active mnt-a.automount && ! systemctl is-active mnt-a.mount && \
        grep -q hello /mnt/a/file && systemctl is-active mnt-a.mount'
    t "an automount can be ended" inside 'systemctl stop mnt-a.automount mnt-a.mount && ! findmnt /mnt/a'
fi
: >"$root/etc/fstab"

# ---- upgraded, removed, purged ---------------------------------------------------------------

# A process holds a removed file open and writes to the file until the packages are there.
cat >"$root/root/hold" <<'END'
exec 7<>/mnt/k/removed
rm /mnt/k/removed
touch /root/holds
until [[ -e /root/upgraded ]]; do echo x >&7 || exit 1; done
END
inside 'bash /root/hold' >/dev/null 2>&1 </dev/null &
holder=$!
t "a process writes to a removed file" until_inside 60 'test -e /root/holds'
inside 'systemctl show -P MainPID kilnd >/root/pid; systemctl show -P MainPID kiln-mount >/root/mount-pid'
t "dpkg installs the packages again, as an upgrade" inside 'dpkg -i /debs/kiln_*.deb /debs/kiln-client_*.deb && systemctl is-active kilnd'
t "the new kilnd has taken over the process of the old one" inside '[[ $(systemctl show -P MainPID kilnd) == $(</root/pid) ]] && \
    journalctl -u kilnd --no-pager | grep "\[upgraded\]"'
t "a further reload with the same program keeps the program" inside 'systemctl reload kilnd && [[ $(systemctl show -P MainPID kilnd) == $(</root/pid) ]] && \
    [[ $(journalctl -u kilnd --no-pager | grep -c "\[upgraded\]") -eq 1 ]]'
t "the new kiln-mount has taken over the process of the old one" inside '[[ $(systemctl show -P MainPID kiln-mount) == $(</root/mount-pid) ]] && \
    tr "\0" "\n" </proc/$(</root/mount-pid)/environ | grep "^KILN_MOUNT_UPGRADES=1 serving"'
# As a package with a program that does not start on this machine.
t "a program that does not start leaves the package configured and the old kilnd serving" inside 'mv /usr/sbin/kilnd /root/kilnd && \
    cp /bin/false /usr/sbin/kilnd && /var/lib/dpkg/info/kiln.postinst configure 0.1.0 2>&1 | grep "kilnd goes on with the earlier program" && \
    mv /root/kilnd /usr/sbin/kilnd && [[ $(systemctl show -P MainPID kilnd) == $(</root/pid) ]] && kiln status demo'
inside 'touch /root/upgraded'
status=0
wait "$holder" || status=$?
t "no write failed during the upgrade" test "$status" -eq 0
t "the mount works after the upgrade" until_inside 240 'grep -q hello /mnt/k/file'
t "both mounts are unmounted" inside 'umount /mnt/s && kiln umount /mnt/k'
contents='cd /srv && find . -path "*/.glusterfs" -prune -o -printf "%p %y %m %u\n" | sort; find . -path "*/.glusterfs" -prune -o -type f \
    -print0 | sort -z | xargs -0 sha256sum; getfattr -d -m . -e hex b1 b2 b3 b4'
t "apt removes kiln" inside 'apt-get remove -y kiln && ! systemctl is-active kilnd'
before=$(inside "$contents" 2>&1)
t "apt purges all packages" inside 'apt-get purge -y kiln kiln-client libkiln-gfapi libkiln-mempool1 libkiln-mempool-dev'
is "$(inside "$contents" 2>&1)" "$before" "the bricks are unchanged after the purge"
is "$(wc -l <<<"$before" | awk '{ print ($1 > 40) }')" 1 "the bricks are not empty"
t "the purge leaves only the volume's description" inside '! ls /etc/kiln /etc/logrotate.d/kiln* /var/log/kiln \
    /lib/systemd/system/kilnd.service && ls /var/lib/kiln/volumes/demo.json'
# Without libgfapi0, which libkiln-gfapi stands for here, apt has removed the stock client, too.
t "apt installs the packages again" inside 'apt-get install -y --no-install-recommends /debs/*.deb glusterfs-client'
t "kilnd serves the volume again" until_inside 120 'kiln status demo && mount -t glusterfs localhost:/demo /mnt/s && grep -q hello /mnt/s/file'
t "the packages can be purged twice" inside 'umount /mnt/s; apt-get purge -y kiln && dpkg --purge kiln kiln-client'

machine_done
