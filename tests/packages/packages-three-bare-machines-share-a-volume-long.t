#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The commands of README's "Three machines", on three bare Debian 12 that systemd has booted, with no other packages than
# Kiln's and etcd-server: an etcd of three members, a volume with three copies, a mount by kiln. A machine loses its power,
# returns and is healed. A fourth machine takes the bricks of the first, which then leaves. GlusterFS is nowhere installed.
#
#   tests/packages/packages-three-bare-machines-share-a-volume-long.t
#
# The script needs root, the archive's mirror and `extras/install-deps.sh package`. KILN_DEBS=DIR and KILN_BASE=FILE.tar are
# packages and a bare Debian that exist already (tests/packages/machine.sh). The output is TAP.
# Covers: README.md, debian, extras/kilnd.conf

set -u
for program in systemd-nspawn mmdebstrap dpkg-buildpackage; do
    command -v "$program" >/dev/null || { echo "1..0 # SKIP no $program: extras/install-deps.sh package"; exit 0; }
done
. "$(dirname "$0")/machine.sh"

mapfile -t commands < <(sed -n '/^## Three machines/,/^`extras/{s/^    //p}' "$top/README.md")
is "${#commands[@]}" 6 "README has six commands"

# ---- the machines ----------------------------------------------------------------------------

machine_debs
machine_use lower
machine_unpack
for i in 1 2 3 4; do echo "10.98.9.1$i h$i"; done >>"$root/etc/hosts"
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/yes"
# The machines reach only each other, so the script fetches the packages before.
t "apt finds the dependencies of the packages" chroot "$root" bash -c "apt-get update -q && apt-get install -y -q --download-only \
    --no-install-recommends /debs/kiln_*.deb /debs/kiln-client_*.deb etcd-server"

net=kiln$$
remove_networks() {
    local name
    for name in "$net" "$net-h1" "$net-h2" "$net-h3" "$net-h4"; do
        ip netns del "$name" 2>/dev/null
    done
}
trap 'cleanup; remove_networks' EXIT
ip netns add "$net" && ip -n "$net" link add hosts type bridge && ip -n "$net" link set hosts up
for i in 1 2 3 4; do
    ip netns add "$net-h$i"
    ip -n "$net" link add "h$i" type veth peer name eth0 netns "$net-h$i"
    ip -n "$net" link set "h$i" master hosts up
    ip -n "$net-h$i" address add "10.98.9.1$i/24" dev eth0
    ip -n "$net-h$i" link set eth0 up
    ip -n "$net-h$i" link set lo up # etcd calls itself by 0.0.0.0
done

boots() { machine_boot "$net-$machine"; }
for h in h1 h2 h3 h4; do
    machine_use "$h"
    machine_layer "$dir/lower" && cp "$dir/lower/etc/hosts" "$root/etc/hosts" || { echo "Bail out! no overlay"; exit 1; }
    if ! boots; then
        echo "1..$((n + 1))"
        echo "ok $((n + 1)) - the rest # SKIP systemd does not boot in systemd-nspawn here"
        exit "$failed"
    fi
    t "$h: apt installs kiln and kiln-client" inside 'apt-get install -q --no-install-recommends /debs/kiln_*.deb /debs/kiln-client_*.deb'
    t "$h: the service kilnd runs, and GlusterFS is not installed" inside 'systemctl is-active kilnd && ! command -v glusterfs glusterd && \
        ! dpkg -s glusterfs-client glusterfs-common'
done

# ---- the six commands ------------------------------------------------------------------------

for h in h1 h2 h3; do
    machine_use "$h"
    t "$h: ${commands[0]}" inside "${commands[0]}"
    cat >"$root/etc/default/etcd" <<END
ETCD_NAME=$h
ETCD_DATA_DIR=/var/lib/etcd/three
ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379
ETCD_ADVERTISE_CLIENT_URLS=http://$h:2379
ETCD_LISTEN_PEER_URLS=http://10.98.9.1${h#h}:2380
ETCD_INITIAL_ADVERTISE_PEER_URLS=http://$h:2380
ETCD_UNSAFE_NO_FSYNC=true
ETCD_INITIAL_CLUSTER=h1=http://h1:2380,h2=http://h2:2380,h3=http://h3:2380
END
    inside 'systemctl stop etcd; systemctl --no-block start etcd'
done
for h in h1 h2 h3; do
    machine_use "$h"
    t "$h: etcd runs" until_inside 240 'systemctl is-active etcd'
done

kilnd_as_service() { # HOST [LINE]
    inside "printf '%s\n' 'store = etcd://h1:2379,h2:2379,h3:2379' 'host = $1' ${2:+'$2'} >>/etc/kiln/kilnd.conf && systemctl restart kilnd"
}
kilnd_by_hand=${commands[1]%%  *}
machine_use h1
t "h1: the second command beside the service is refused with a reason" inside "! $kilnd_by_hand 2>/root/refusal && grep -E 'kilnd.conf|systemctl|running' /root/refusal"
t "h1: the second command without the service" inside "systemctl disable --now kilnd && $kilnd_by_hand"
for h in h2 h3; do
    machine_use "$h"
    t "$h: the same by /etc/kiln/kilnd.conf and systemctl restart" kilnd_as_service "$h"
done
t "${commands[2]%%  *}" until_inside 300 "[[ \$(${commands[2]%%  *} | grep -c ' up ') -eq 3 ]]"
t "${commands[3]}" inside "${commands[3]}"
t "${commands[4]}" inside "${commands[4]}"
t "${commands[5]%%  *}" inside "${commands[5]%%  *}"

# ---- a machine loses its power ---------------------------------------------------------------

t "files are written" inside 'for i in {1..100}; do echo "line $i" >/mnt/f$i; done && sync -f /mnt/f1'
on_host() { # HOST COMMAND-LINE
    local before=$machine status
    machine_use "$1"
    inside "$2"
    status=$?
    machine_use "$before"
    return "$status"
}
contents='cd /srv/b && find . -path ./.glusterfs -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum'
same_contents() { # HOST...
    local h
    for h in "$@"; do
        on_host "$h" "$contents"
    done >"$dir/contents"
    [[ $(sort -u "$dir/contents" | wc -l) -eq 1 && $(wc -l <"$dir/contents") -eq $# ]]
}
t "all three machines have them" same_contents h1 h2 h3
machine_use h1
machine_kill
machine_use h3
t "files are written without the first machine and its etcd" inside 'for i in {51..150}; do echo "new $i" >/mnt/f$i || exit 1; done && sync -f /mnt/f51'
t "kiln host list shows that the first machine is down" until_inside 240 'kiln host list | grep -E "^h1 +down"'
t "the volume is changed without the first machine" until_inside 240 'kiln volume set v network.ping-timeout 20'
machine_use h1
t "the first machine boots again" boots
t "its etcd runs" until_inside 120 'systemctl is-active etcd'
t "the second command again" inside "$kilnd_by_hand"
t "the first machine is healed" until_inside 240 '[[ $(kiln volume heal v info | grep -c "^Number of entries: 0$") -eq 3 ]]'
t "all three machines have the same files" same_contents h1 h2 h3

# ---- another machine takes the place of the first --------------------------------------------

machine_use h4
t "h4: kilnd joins by /etc/kiln/kilnd.conf, with a folder for bricks" kilnd_as_service h4 'brick-root = /srv'
machine_use h2
t "kiln host list has four hosts" until_inside 60 '[[ $(kiln host list | grep -c " up ") -eq 4 ]]'
t "kiln host drain h1 begins a job" inside 'kiln host drain h1'
t "the first machine has no brick any more" until_inside 240 '! kiln volume info v | grep h1: && kiln volume info v | grep h4:'
t "kiln job list shows that the job is done" until_inside 240 'kiln job list | grep -E "drain.* done"'
t "the volume is healed" until_inside 240 '[[ $(kiln volume heal v info | grep -c "^Number of entries: 0$") -eq 3 ]]'
machine_use h1
t "the first machine is shut down" machine_halt
machine_use h2
t "kiln host remove h1" until_inside 60 'kiln host remove h1'
contents='cd $(kiln volume info v | sed -n "s/.*: *$(uname -n)://p") && find . -path ./.glusterfs -prune -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum'
t "the three machines of the volume have the same files" same_contents h2 h3 h4
machine_use h3
t "the mount reads every file" inside 'for i in {1..50}; do [[ $(</mnt/f$i) == "line $i" ]] || exit 1; done; for i in {51..150}; do [[ $(</mnt/f$i) == "new $i" ]] || exit 1; done'
t "the mount is unmounted" inside 'umount /mnt'
t "kiln volume stop and delete" inside 'kiln volume stop v && kiln volume delete v'

machine_done
