#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# `gluster volume set`, `get` and `reset` of every brick option that glusterd knows, while a client has the volume
# mounted: the brick accepts the option, stays online and serves, and the volume starts with it. For an option that
# kilnd does not support, the brick's log names it: the brick serves without it, or, for compression, refuses
# that option alone while all other options apply, and the volume does not start with it.
# Covers: libglusterfs/data/option.c, libglusterfs/graph/reconfigure.c, libglusterfs/graph/unbuilt.c, doc/options.md

. "$(dirname "$0")/../lib/kiln.sh"

mnt=$T/mnt
glusterd_bricks_start
gl_create v 1x1 >/dev/null
gl volume start v >/dev/null
wait_for 120 "the brick" bricks_all_online v 1
gl_mount v "$mnt"
log=/var/log/glusterfs/bricks/$(tr / - <<<"${T#/}")-bricks-v-0.log

round=0
serves() {
    round=$((round + 1))
    echo "$round" >"$mnt/f$round" && [[ $(cat "$mnt/f$round") == "$round" ]] && ls -l "$mnt" >/dev/null && bricks_all_online v 1
}

# Succeeds when `volume get` prints these values.
shows() {
    gl volume get v all | awk -v want="$*" '
        { value[$1] = $2 }
        END {
            n = split(want, word, " ")
            for (i = 1; i < n; i += 2)
                if (value[word[i]] != word[i + 1]) { print word[i] ": " value[word[i]]; bad = 1 }
            exit bad
        }'
}

takes() {
    local what=$1
    shift
    t "$what: set" gl volume set v "$@"
    t "$what: get" shows "$@"
    t_here "$what: the brick serves" serves
}

takes "storage/posix" storage.batch-fsync-mode syncfs storage.batch-fsync-delay-usec 10 \
    storage.node-uuid-pathinfo on storage.health-check-interval 7 storage.health-check-timeout 15 storage.gfid2path off \
    storage.gfid2path-separator ';' storage.reserve 2 storage.fips-mode-rchecksum on storage.force-create-mode 0600 \
    storage.force-directory-mode 0700 storage.create-mask 0775 storage.create-directory-mask 0775 storage.max-hardlinks 50 \
    storage.owner-uid 0 storage.owner-gid 0 features.ctime off
takes "features/locks" features.enforce-mandatory-lock off features.locks-revocation-secs 0 features.locks-revocation-clear-all off \
    features.locks-revocation-max-blocked 0 features.locks-notify-contention off features.locks-notify-contention-delay 7 locks.trace off \
    locks.mandatory-locking off features.locks-monkey-unlocking off
takes "performance/io-threads" performance.io-thread-count 8 performance.high-prio-threads 4 performance.normal-prio-threads 4 \
    performance.low-prio-threads 4 performance.least-prio-threads 2 performance.enable-least-priority off performance.iot-watchdog-secs 20 \
    performance.iot-cleanup-disconnected-reqs on performance.iot-pass-through off
takes "debug/io-stats" diagnostics.latency-measurement on diagnostics.count-fop-hits on diagnostics.dump-fd-stats on \
    diagnostics.brick-log-level DEBUG diagnostics.brick-sys-log-level WARNING diagnostics.brick-logger gluster-log \
    diagnostics.brick-log-format with-msg-id diagnostics.brick-log-buf-size 0 diagnostics.brick-log-flush-timeout 60 \
    diagnostics.stats-dump-interval 0 diagnostics.fop-sample-interval 0 diagnostics.stats-dump-format json \
    diagnostics.fop-sample-buf-size 2000 diagnostics.stats-dnscache-ttl-sec 1000 config.global-threading off config.brick-threads 8
takes "protocol/server" network.inode-lru-limit 1000 transport.listen-backlog 512 server.allow-insecure on server.root-squash off \
    server.all-squash off server.anonuid 1234 server.anongid 1234 server.statedump-path "$T" server.outstanding-rpc-limit 128 \
    server.manage-gids on server.gid-timeout 30 server.dynamic-auth on server.own-thread off server.event-threads 3 \
    server.tcp-user-timeout 30 server.keepalive-time 30 server.keepalive-interval 3 server.keepalive-count 5 auth.allow '*' \
    network.tcp-window-size 262144
takes "worm, read-only, selinux, barrier" features.read-only off features.worm off features.worm-file-level off \
    features.worm-files-deletable off features.default-retention-period 60 features.retention-mode enterprise \
    features.auto-commit-period 60 features.selinux off features.barrier disable features.barrier-timeout 60
takes "trash" features.trash on
takes "features/trash" features.trash-dir bin features.trash-eliminate-path a,b features.trash-max-filesize 1MB \
    features.trash-internal-op on storage.build-pgfid on
takes "trash, off again" features.trash off storage.build-pgfid off
takes "layers that are off, and stay so" changelog.changelog off changelog.encoding binary changelog.rollover-time 20 changelog.fsync-interval 3 changelog.changelog-barrier-timeout 60 \
    changelog.capture-del-path off features.leases off features.lease-lock-recall-timeout 30 features.cache-invalidation off \
    features.cache-invalidation-timeout 120 geo-replication.indexing off
if [[ $BRICKD == kiln ]]; then
    is "$(grep -oE '(keeps its options|stays as it was).*' "$log" | sort -u)" "" "the brick has refused none of these options"
fi

# doc/options.md names keys that glusterd knows, and all keys of the families that concern only bricks.
awk -F ' *[|] *' '$3 ~ /[.]/ && $3 !~ /`/ { gsub(/, /, "\n", $3); print $3 }' "$source_dir/doc/options.md" | grep -v '[*]' | sort -u |
    grep -vE '^feature[.]simple-quota|^ssl[.]min-version' >"$T/documented" # of glusterd 11; Kiln's own
gl volume get v all | awk '$1 ~ /[.]/ { print $1 }' | sort -u >"$T/known"
brick_keys='^(storage|locks|changelog|server)[.]|^features[.](locks|trash|lease|worm|read-only|cache-invalidation|barrier|selinux)'
is "$(comm -23 "$T/documented" "$T/known")" "" "glusterd knows every key of doc/options.md"
is "$(comm -13 "$T/documented" "$T/known" | grep -E "$brick_keys")" "" "doc/options.md has every brick option of glusterd"
t "doc/options.md has more than 90 keys" test "$(wc -l <"$T/documented")" -gt 90

t_not "glusterd refuses a value of the wrong kind" gl volume set v storage.health-check-interval soon
t_not "glusterd refuses a value out of range" gl volume set v performance.io-thread-count 65
t_not "glusterd refuses an unknown option" gl volume set v storage.colour red
t_not "glusterd refuses read-only together with worm" gl volume set v features.read-only on features.worm on
t_here "the brick serves after the refused options" serves
t_not "glusterd refuses linux-aio for a started volume" gl volume set v storage.linux-aio on
t "the volume stops with all of these options" gl volume stop v
t "glusterd accepts linux-aio for a stopped volume" gl volume set v storage.linux-aio on
t "the volume starts with all of these options" gl volume start v
wait_for 120 "the brick" bricks_all_online v 1
wait_for 120 "the mount to reach the brick" gl_mount_reaches "$mnt" v 1x1
t_here "the brick serves with all of these options" serves
t "glusterd resets an option" gl volume reset v storage.health-check-interval
t "the option has its default" shows storage.health-check-interval 30
t "glusterd resets all options" gl volume reset v force
t "all options have their defaults" shows storage.gfid2path on performance.io-thread-count 16 server.event-threads 2 network.inode-lru-limit 16384
t_here "the brick serves with the defaults" serves

if [[ $BRICKD == kiln ]]; then
    # Each line is a key, a value, and the word by which the brick's log has to name the option.
    while read -r key value word; do
        seen=$(wc -l <"$log")
        t "$key $value: glusterd accepts the option" gl volume set v "$key" "$value"
        says_so() { tail -n "+$((seen + 1))" "$log" | grep -qE "$word"; }
        t_here "$key $value: the brick's log names the option and the consequence" wait_for 120 "the log to name $word" says_so
        t_here "$key $value: the brick serves" serves
        t "$key: glusterd resets the option" gl volume reset v "$key"
    done <<'END'
changelog.changelog on changelog.on.is.not.built.*feature-not-built
features.leases on leases.on.is.not.built.*feature-not-built
features.sdfs on v-sdfs.*is.not.built.*feature-not-built
server.ssl on ssl-enabled.*takes.effect.when.the.brick.starts.again.*option-waits
END
    # Clients compress their writes from now on, so a brick does not start with the option. The script writes nothing
    # meanwhile.
    seen=$(wc -l <"$log")
    compression_is_named() { tail -n "+$((seen + 1))" "$log" | grep -qE "v-cdc.*the type is not built.*layer-refused"; }
    t "network.compression: glusterd accepts the option" gl volume set v network.compression on
    t_here "the brick's log says that the brick will not start with compression" wait_for 120 "the log to name v-cdc" compression_is_named
    t "network.compression: glusterd resets the option" gl volume reset v network.compression
    wait_for 120 "the mount to reach the brick" gl_mount_reaches "$mnt" v 1x1
    t "glusterd accepts a quota" gl volume quota v enable
    limits() { gl volume quota v "limit-$1" / 10 2>&1; }
    for what in usage objects; do
        t_not "glusterd sets no limit of $what that no brick would keep" limits $what
    done
    is "$(limits usage | grep -c 'Operation not supported')" 1 "the command names the reason of the refusal"
    gl volume quota v disable >/dev/null
    t_here "the brick serves after the refused limits" serves

    gl volume set v server.ssl on >/dev/null
    t "glusterd accepts an option beside an option that waits for a start" gl volume set v features.read-only on
    is_read_only() { ! { echo more >"$mnt/more"; } 2>/dev/null; }
    t_here "the option beside the waiting option takes effect" wait_for 120 "the brick to be read-only" is_read_only
    gl volume set v features.read-only off >/dev/null
    t_here "the option loses its effect" wait_for 120 "the brick to be writable" serves
    gl volume stop v >/dev/null
    t_not "the volume does not start with server.ssl and without a certificate" gl volume start v
    t "the log names the missing certificate" grep -qE 'glusterfs.pem: No such file.*start-failed' "$log"
    gl volume reset v server.ssl >/dev/null
    t "the volume starts without server.ssl" gl volume start v
    wait_for 120 "the brick" bricks_all_online v 1
    wait_for 120 "the mount to reach the brick" gl_mount_reaches "$mnt" v 1x1
    t_here "the brick serves after the start" serves
fi
umount "$mnt"
t "glusterd stops the volume" gl volume stop v
