#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The Debian packages are built in a Debian 13 and installed by apt into another Debian 13 that systemd has booted and
# whose glusterd 11.1 runs. The installation does not disturb glusterd. After `use-kiln.sh on` the bricks of the stock
# CLI's volumes are kilnd's: both clients mount them, options, profile and heal work, kiln looks at them, a restart of
# glusterd and an upgrade of the stock packages keep kilnd. After `use-kiln.sh off` stock serves the same bricks.
#
#   tests/packages/packages-serve-bricks-of-glusterd-11-on-debian-13-long.t
#
# The script needs root, the archive's mirror and `extras/install-deps.sh package stock-version`. KILN_DEBS=DIR uses
# existing packages of Debian 13. The output is TAP. The script takes ten minutes on two cores.
# Covers: debian, extras/use-kiln.sh

set -u
for program in systemd-nspawn debootstrap; do
    command -v "$program" >/dev/null || { echo "1..0 # SKIP no $program: extras/install-deps.sh package"; exit 0; }
done
. "$(dirname "$0")/machine.sh"

base=$("$top/tests/lib/stock-root.sh" 11) || { echo "Bail out! no Debian 13"; exit 1; }

# A command line in a root folder, with this machine's network.
in_root() { # ROOT COMMAND-LINE
    unshare --mount --pid --fork --kill-child --propagation private bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
            exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
                bash -euc "$2"' bash "$1" "$2"
}

# ---- the packages ----------------------------------------------------------------------------

debs=${KILN_DEBS:-$dir/builder/root/build}
build() {
    root=$dir/builder machine_layer "$base" && machine_sources "$dir/builder/root/build/kiln" && in_root "$dir/builder" '
        apt-get update -q
        cd /root/build/kiln
        apt-get install -y -q --no-install-recommends build-essential debhelper
        apt-get build-dep -y -q --no-install-recommends ./
        DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" dpkg-buildpackage -us -uc -b'
}
[[ -n ${KILN_DEBS:-} ]] || t "dpkg-buildpackage makes the packages on Debian 13" build
[[ $(find "$debs" -name '*.deb' ! -name '*-dbgsym_*' | wc -l) -eq 5 ]] ||
    { echo "Bail out! not five packages in $debs"; exit 1; }

# ---- the machine -----------------------------------------------------------------------------

machine_layer "$base" || { echo "Bail out! no overlay of Debian 13"; exit 1; }
mkdir "$root/debs"
find "$debs" -name '*.deb' ! -name '*-dbgsym_*' -exec cp {} "$root/debs" \;
# The machine has no network, so the script fetches the packages before.
t "apt finds the dependencies of the packages" in_root "$root" 'apt-get update -q
    apt-get install -y -q --no-install-recommends systemd systemd-sysv dbus
    apt-get install -y -q --download-only --no-install-recommends /debs/*.deb
    apt-get install -y -q --download-only --reinstall glusterfs-server glusterfs-common'
if ! machine_boot; then
    echo "1..$((n + 1))"
    echo "ok $((n + 1)) - the rest # SKIP systemd does not boot in systemd-nspawn here"
    exit "$failed"
fi

# ---- glusterd runs ---------------------------------------------------------------------------

host=10.99.0.1
gluster='gluster --mode=script'
online() { # BRICKS
    until_inside 240 "[[ \$($gluster volume status demo --xml | grep -A 4 '<path>/srv' | grep -c '<status>1</status>') -eq $1 ]]"
}
bricks_are() { # PROGRAM: the programs of all brick processes
    inside "for pid in \$(pgrep glusterfsd); do readlink /proc/\$pid/exe; done | sort -u" >"$dir/programs"
    cat "$dir/programs"
    [[ $(cat "$dir/programs") == "$1" ]]
}
inside "ip addr add $host/32 dev lo; mkdir -p /srv/b1 /srv/b2 /mnt/s /mnt/k; mount -t tmpfs bricks /srv; mkdir /srv/b1 /srv/b2"
t "glusterd 11 runs as a service" inside 'systemctl enable --now glusterd && systemctl is-active glusterd && glusterd --version | grep -q "glusterfs 11\."'
t "a volume is created with stock bricks" inside "$gluster volume create demo replica 2 $host:/srv/b1 $host:/srv/b2 force && $gluster volume start demo"
t "both bricks are online" online 2
glusterd_pid=$(inside 'systemctl show -P MainPID glusterd')
t "apt installs the packages beside glusterd" inside 'apt-get install -y --no-install-recommends /debs/*.deb'
is "$(inside 'systemctl show -P MainPID glusterd')" "$glusterd_pid" "glusterd has run on"
t "the bricks have run on" bricks_are /usr/sbin/glusterfsd
t "the service kilnd is skipped while glusterd runs" inside '! systemctl is-active kilnd && [[ $(systemctl show -P Result kilnd) == exec-condition ]]'
t "the journal says why" inside 'journalctl -u kilnd --no-pager | grep -q "glusterd runs and has port 24007"'

# ---- kilnd in the place of glusterfsd --------------------------------------------------------

t "use-kiln.sh on puts kilnd in place" inside 'use-kiln.sh on && use-kiln.sh status'
t "the volume is stopped and started" inside "$gluster volume stop demo && $gluster volume start demo"
t "both bricks are online again" online 2
t "the bricks are kilnd" bricks_are /usr/sbin/kilnd
t "the stock client mounts the volume" inside "mount -t glusterfs $host:/demo /mnt/s"
t "kiln-mount mounts the volume" inside "mount -t kiln $host:/demo /mnt/k"
t "each client reads the other client's files" inside 'echo one >/mnt/s/one && echo two >/mnt/k/two && grep -q one /mnt/k/one && grep -q two /mnt/s/two'
t "kiln shows the bricks by the socket of the package's kilnd.conf" inside 'kiln status && kiln top --once && kiln --json status | grep -q /srv/b1'
t "a changed option counts at once" inside "$gluster volume set demo features.read-only on && ! touch /mnt/s/no && $gluster volume set demo features.read-only off"
t "the volume can be written again" until_inside 60 'touch /mnt/s/yes'
t "profile counts the calls" inside "$gluster volume profile demo start && cat /mnt/s/one /mnt/k/two && $gluster volume profile demo info | grep -q LOOKUP"
t "an option that kilnd knows nothing of is refused by name or taken" inside "$gluster volume set demo storage.health-check-interval 7"

# ---- heal ------------------------------------------------------------------------------------

t "a brick is killed" inside 'kill -9 $(cat /var/run/gluster/vols/demo/*srv-b2.pid)'
t "files are written meanwhile" until_inside 120 'seq 1000 >/mnt/s/missed && mkdir -p /mnt/s/folder && echo x >/mnt/k/folder/x'
t "the killed brick is started" inside "$gluster volume start demo force"
t "both bricks are online after the kill" online 2
inside "$gluster volume heal demo" >/dev/null 2>&1
t "stock's self-heal daemon heals the brick" until_inside 240 "[[ \$($gluster volume heal demo info | grep -c '^Number of entries: 0') -eq 2 ]]"
t "both bricks hold the same data" inside 'cmp /srv/b1/missed /srv/b2/missed && cmp /srv/b1/folder/x /srv/b2/folder/x'

# ---- restarts and upgrades -------------------------------------------------------------------

t "glusterd is restarted" inside 'systemctl restart glusterd'
t "both bricks are online after the restart" online 2
t "the bricks are kilnd after the restart" bricks_are /usr/sbin/kilnd
t "both mounts work after the restart" until_inside 240 'grep -q one /mnt/k/one && grep -q two /mnt/s/two'
t "the stock packages are installed again, as an upgrade does" inside 'apt-get install -y --reinstall glusterfs-server glusterfs-common'
t "kilnd is still in place after that" inside 'use-kiln.sh status && [[ $(readlink -f /usr/sbin/glusterfsd) == /usr/sbin/kilnd ]]'

# ---- stock again -----------------------------------------------------------------------------

t "use-kiln.sh off puts the stock program in place" inside "umount /mnt/s; umount /mnt/k; use-kiln.sh off"
t "the volume is stopped and started with stock bricks" inside "$gluster volume stop demo && $gluster volume start demo"
t "both stock bricks are online" online 2
t "the bricks are stock's" bricks_are /usr/sbin/glusterfsd
t "stock bricks serve the files" inside "mount -t glusterfs $host:/demo /mnt/s && grep -q two /mnt/s/two && [[ \$(wc -l </mnt/s/missed) -eq 1000 ]]"
t "the packages are purged beside a running glusterd" inside 'apt-get purge -y kiln kiln-client && systemctl is-active glusterd && ls /mnt/s/one'

machine_done
