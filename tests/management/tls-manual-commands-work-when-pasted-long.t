#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# The commands of doc/security.md and kiln(8), "Volumes over untrusted networks", run unchanged, except for the volume's
# name: those for volumes of a glusterd, then those for volumes of kilnd's own. Afterwards mounts of both kinds work with
# TLS, and a mount without a certificate is refused.
# Covers: doc/security.md, doc/kiln.8, cli/tls.c, xlators/protocol/server/door.c

. "$(dirname "$0")/../lib/kiln.sh"

[[ -x $KILN_MOUNT ]] || skip_all "there is no $KILN_MOUNT: build first"
[[ $BRICKD == kiln ]] || skip_all "the manual is Kiln's"

# The folders that the commands write, for this script alone; openssl(1) reads its configuration there.
cp /etc/ssl/openssl.cnf "$T/openssl.cnf"
for folder in /usr/lib/ssl /etc/ssl /root; do
    mount -t tmpfs kiln-test "$folder"
done
cp "$T/openssl.cnf" /usr/lib/ssl
cp "$T/openssl.cnf" /etc/ssl
mkdir -p /etc/kiln
mount -t tmpfs kiln-test /etc/kiln

# The Nth block of commands of the section, for the volume v.
block() {
    awk -v wanted="$1" '
        /^## / { inside = $0 == "## Volumes over untrusted networks" }
        inside && /^    / { if (!was) n++; if (n == wanted) print substr($0, 5) }
        { was = /^    / }' "$source_dir/doc/security.md" | sed 's/\<VOL\>/v/g'
}

# The Nth block of the section of kiln(8), as man(1) shows the lines.
page_block() {
    awk -v wanted="$1" '
        /^\.SH / { inside = $0 == ".SH VOLUMES OVER UNTRUSTED NETWORKS" }
        inside && /^\.EX/ { n++; within = 1; next }
        /^\.EE/ { within = 0 }
        inside && within && n == wanted { gsub(/\\-/, "-"); print }' "$source_dir/doc/kiln.8" | sed 's/\<web\>/v/g'
}

# Debian 13 has the certificates in another folder; the manual says so.
ssl_folder=/usr/lib/ssl
[[ -z ${KILN_STOCK_VERSION:-} ]] || ssl_folder=/etc/ssl

paste_block() { # FUNCTION N: in a shell as an operator's
    "$1" "$2" | sed "s|/usr/lib/ssl|$ssl_folder|g" >"$T/commands"
    [[ -s $T/commands ]] && (cd "$T/work" && PATH=$T/bin:$PATH bash -e "$T/commands")
}

mkdir "$T/work" "$T/bin" "$T/stock" "$T/kiln"
# gluster asks before a stop: an operator says y.
printf '#!/bin/bash\nexec %q --mode=script "$@"\n' "$(command -v gluster)" >"$T/bin/gluster"
chmod +x "$T/bin/gluster"
ln -s "$(dirname "$KILND")/kiln" "$T/bin/kiln"

without_certificates() {
    fails_with "TLS" unshare -m bash -c 'mount -t tmpfs none /usr/lib/ssl; mount -t tmpfs none /etc/ssl
        exec timeout 30 "$@"' - "$KILN_MOUNT" -s "$1" --volfile-id v -l "$T/log/none.log" "$T/kiln"
}

glusterd_bricks_start
gl_create v 1x2 >/dev/null
gl volume start v >/dev/null
t "the commands for volumes of a glusterd work" paste_block block 1
is "$(stat -c '%a %n' "$ssl_folder/glusterfs.key")" "600 $ssl_folder/glusterfs.key" "only root can read the key"
t_here "the bricks are online" wait_for 120 "the bricks" bricks_all_online v 2
gl_mount v "$T/stock"
t "a stock mount writes" bash -c "echo stock >'$T/stock/file'"
t "kiln-mount mounts the volume" "$KILN_MOUNT" -s "$glusterd_host" --volfile-id v -l "$T/log/kiln.log" "$T/kiln"
is "$(cat "$T/kiln/file")" stock "the Kiln mount reads the stock mount's file"
t "the connection to a brick is encrypted" grep -qE 'TLS connection from .*CN=client1' /var/log/glusterfs/bricks/*.log
umount "$T/kiln" "$T/stock"
t "a mount without the certificate fails with the reason" without_certificates "$glusterd_host"
gl volume stop v >/dev/null
kill "$glusterd_pid"
wait "$glusterd_pid" 2>/dev/null || true

rm -f /usr/lib/ssl/glusterfs.* /etc/ssl/glusterfs.*
front_start
kiln create v replica 2 "$T/b1" "$T/b2" >/dev/null
kiln start v
while IFS= read -r command; do
    t "kiln(8) has the command of doc/security.md: $command" grep -qF "$command" <(page_block 1)
done < <(block 2 | sed 's/ *#.*//')
t "the commands of kiln(8) for a server work" paste_block page_block 1
is "$(cd /root/client1 && echo *)" "glusterfs.ca glusterfs.key glusterfs.pem" "client1 gets three files"
t "kiln-mount mounts the volume with TLS" "$KILN_MOUNT" -s localhost --volfile-id v -l "$T/log/kiln.log" "$T/kiln"
t "the Kiln mount writes" bash -c "echo kiln >'$T/kiln/file'"
is "$(cat "$T/b1/file" "$T/b2/file" | xargs)" "kiln kiln" "both bricks have the file"
umount "$T/kiln"
t "a mount without a certificate fails with the reason" without_certificates localhost
as_client1() { # the commands and a mount of another host, whose folder of certificates is empty
    paste_block page_block 2 && "$KILN_MOUNT" -s localhost --volfile-id v -l "$T/log/client1.log" "$T/kiln" &&
        echo client1 >"$T/kiln/file" && umount "$T/kiln"
}
mount -t tmpfs kiln-test /usr/lib/ssl
mount -t tmpfs kiln-test /etc/ssl
t_here "the commands of kiln(8) for a client work, and the client mounts" as_client1
t "kilnd logs the name of the client's certificate" grep -q 'TLS connection from .*CN=client1' "$T/log/kilnd.log"
umount /usr/lib/ssl /etc/ssl
front_stop

# The file of kiln(8)'s last words
touch /var/lib/glusterd/secure-access
front_start
t "with secure-access kilnd gives a volfile by TLS" \
    "$KILN_MOUNT" -s localhost --volfile-id v -l "$T/log/secure.log" "$T/kiln"
t "the connection to port 24007 is encrypted" grep -qE 'TLS connection to .*:24007, CN=' "$T/log/secure.log"
t "the mount writes" bash -c "echo secure >'$T/kiln/file'"
umount "$T/kiln"
front_mount v "$T/stock"
is "$(cat "$T/stock/file")" secure "a stock mount fetches the volfile by TLS and reads"
umount "$T/stock"
t "a mount without management TLS fails with the reason" fails_with "demands TLS, and this side speaks without" \
    timeout 60 "$KILN_MOUNT" --secure-mgmt=off -s localhost --volfile-id v -l "$T/log/plain.log" "$T/kiln"
t "kilnd logs the address of that mount" \
    grep -qE 'TLS connection from [0-9.:]+ failed: the peer speaks without TLS' "$T/log/kilnd.log"
front_stop
rm /var/lib/glusterd/secure-access
