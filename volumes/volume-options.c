/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/volume-options.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/unbuilt.h"
#include "xlators/cluster/disperse/child-options.h"

static const char *const quorum_types[] = {"none", "auto", "fixed", NULL};
static const char *const throttles[] = {"lazy", "normal", "aggressive", NULL};
static const char *const read_policies[] = {"round-robin", "gfid-hash", NULL};
static const char *const favorite_policies[] = {"none", "ctime", "mtime", "size", "majority", NULL};
static const char *const heal_algorithms[] = {"diff", "full", NULL};
static const char *const locking_schemes[] = {"full", "granular", NULL};
static const char *const min_tls_versions[] = {"1.2", "1.3", NULL};
static const char *const retention_modes[] = {"relax", "enterprise", NULL};
static const char *const log_levels[] = {"DEBUG",    "WARNING", "ERROR", "INFO",
                                         "CRITICAL", "NONE",    "TRACE", NULL};

/* clang-format off */
/* The types of values. option_parse() writes a value to `room` when the value is only checked. */
union room {
    bool b;
    int64_t i;
    uint64_t u;
    int e;
    char *s;
};
#define BOOL(name, def) {name, OPTION_BOOL, 0, def, 0, 0, NULL}
#define INT(name, def, min, max) {name, OPTION_INT, 0, def, min, max, NULL}
#define SIZE(name, def) {name, OPTION_SIZE, 0, def, 0, 0, NULL}
#define SIZE_IN(name, def, min, max) {name, OPTION_SIZE, 0, def, min, max, NULL}
#define TIME(name, def, min, max) {name, OPTION_TIME, 0, def, min, max, NULL}
#define OCTAL(name, def) {name, OPTION_OCTAL, 0, def, 0, 07777, NULL}
#define PERCENT_OR_SIZE(name, def) {name, OPTION_PERCENT_OR_SIZE, 0, def, 0, 0, NULL}
#define STR(name, def) {name, OPTION_STR, 0, def, 0, 0, NULL}
#define ENUM(name, def, choices) {name, OPTION_ENUM, 0, def, 0, 0, choices}
/* values of is_written */
#define KEPT false
#define WRITTEN true

#define POSIX SIDE_BRICK, "storage/posix"
#define LOCKS SIDE_BRICK, "features/locks"
#define WORM SIDE_BRICK, "features/worm"
#define UPCALL SIDE_BRICK, "features/upcall"
#define IOT SIDE_BRICK, "performance/io-threads"
#define BARRIER SIDE_BRICK, "features/barrier"
#define TRASH SIDE_BRICK, "features/trash"
#define CHANGELOG SIDE_BRICK, "features/changelog"
#define MARKER SIDE_BRICK, "features/marker"
#define QUOTA SIDE_BRICK, "features/quota"
#define BRICK_STATS SIDE_BRICK, "debug/io-stats"
#define SERVER SIDE_BRICK, "protocol/server"
#define CLIENT SIDE_CLIENT, "protocol/client"
#define AFR SIDE_CLIENT, "cluster/replicate"
#define EC SIDE_CLIENT, "cluster/disperse"
#define DHT SIDE_CLIENT, "cluster/distribute"
#define WB SIDE_CLIENT, "performance/write-behind"
#define RA SIDE_CLIENT, "performance/read-ahead"
#define RDA SIDE_CLIENT, "performance/readdir-ahead"
#define IOC SIDE_CLIENT, "performance/io-cache"
#define OB SIDE_CLIENT, "performance/open-behind"
#define QR SIDE_CLIENT, "performance/quick-read"
#define MDC SIDE_CLIENT, "performance/md-cache"
#define NLC SIDE_CLIENT, "performance/nl-cache"
#define SHARD SIDE_CLIENT, "features/shard"
#define UTIME SIDE_CLIENT, "features/utime"
#define STATS SIDE_CLIENT, "debug/io-stats"
#define SELF SIDE_SELF, NULL

static const struct volume_key table[] = {
    /* storage/posix */
    {"storage.fips-mode-rchecksum", POSIX, KEPT, BOOL("fips-mode-rchecksum", "on")},
    {"storage.linux-aio", POSIX, KEPT, BOOL("linux-aio", "off")},
    {"storage.linux-io_uring", POSIX, KEPT, BOOL("linux-io_uring", "off")},
    {"storage.batch-fsync-mode", POSIX, KEPT, STR("batch-fsync-mode", "reverse-fsync")},
    {"storage.batch-fsync-delay-usec", POSIX, KEPT, INT("batch-fsync-delay-usec", "0", 0, INT32_MAX)},
    {"storage.owner-uid", POSIX, KEPT, INT("brick-uid", "-1", -1, UINT32_MAX)},
    {"storage.owner-gid", POSIX, KEPT, INT("brick-gid", "-1", -1, UINT32_MAX)},
    {"storage.node-uuid-pathinfo", POSIX, KEPT, BOOL("node-uuid-pathinfo", "off")},
    {"storage.health-check-interval", POSIX, KEPT, TIME("health-check-interval", "30", 0, 86400)},
    {"storage.health-check-timeout", POSIX, KEPT, TIME("health-check-timeout", "20", 0, 86400)},
    {"storage.build-pgfid", POSIX, KEPT, BOOL("update-link-count-parent", "off")},
    {"storage.gfid2path", POSIX, KEPT, BOOL("gfid2path", "on")},
    {"storage.gfid2path-separator", POSIX, KEPT, STR("gfid2path-separator", ":")},
    {"storage.reserve", POSIX, KEPT, PERCENT_OR_SIZE("reserve", "1")},
    {"storage.force-create-mode", POSIX, KEPT, OCTAL("force-create-mode", "0000")},
    {"storage.force-directory-mode", POSIX, KEPT, OCTAL("force-directory-mode", "0000")},
    {"storage.create-mask", POSIX, KEPT, OCTAL("create-mask", "0777")},
    {"storage.create-directory-mask", POSIX, KEPT, OCTAL("create-directory-mask", "0777")},
    {"storage.max-hardlinks", POSIX, KEPT, INT("max-hardlinks", "100", 0, UINT32_MAX)},
    {"features.ctime", POSIX, KEPT, BOOL("ctime", "on")},
    /* features of bricks */
    {"features.trash", TRASH, KEPT, BOOL("trash", "off")},
    {"features.trash-dir", TRASH, WRITTEN, STR("trash-dir", ".trashcan")},
    {"features.trash-eliminate-path", TRASH, KEPT, STR("trash-eliminate-path", NULL)},
    {"features.trash-max-filesize", TRASH, KEPT, SIZE("trash-max-filesize", "5MB")},
    {"features.trash-internal-op", TRASH, WRITTEN, BOOL("trash-internal-op", "off")},
    {"changelog.changelog", CHANGELOG, KEPT, BOOL("changelog", "off")},
    {"changelog.changelog-barrier-timeout", CHANGELOG, WRITTEN, TIME("changelog-barrier-timeout", "120", 0, 3600)},
    {"features.bitrot", SIDE_BRICK, "features/bitrot-stub", WRITTEN, BOOL("bitrot", "disable")},
    {"features.enforce-mandatory-lock", LOCKS, WRITTEN, BOOL("enforce-mandatory-lock", "off")},
    {"locks.mandatory-locking", LOCKS, KEPT, STR("mandatory-locking", "off")},
    {"locks.trace", LOCKS, KEPT, BOOL("trace", "off")},
    {"features.locks-revocation-secs", LOCKS, KEPT, INT("revocation-secs", "0", 0, INT32_MAX)},
    {"features.locks-revocation-clear-all", LOCKS, KEPT, BOOL("revocation-clear-all", "false")},
    {"features.locks-revocation-max-blocked", LOCKS, KEPT, INT("revocation-max-blocked", "0", 0, INT32_MAX)},
    {"features.locks-monkey-unlocking", LOCKS, KEPT, BOOL("monkey-unlocking", "false")},
    {"features.locks-notify-contention", LOCKS, KEPT, BOOL("notify-contention", "yes")},
    {"features.locks-notify-contention-delay", LOCKS, KEPT, TIME("notify-contention-delay", "5", 0, 60)},
    {"features.worm", WORM, WRITTEN, BOOL("worm", "off")},
    {"features.worm-file-level", WORM, WRITTEN, BOOL("worm-file-level", "off")},
    {"features.worm-files-deletable", WORM, WRITTEN, BOOL("worm-files-deletable", "on")},
    {"features.default-retention-period", WORM, KEPT, TIME("default-retention-period", "120", 0, INT32_MAX)},
    {"features.retention-mode", WORM, KEPT, ENUM("retention-mode", "relax", retention_modes)},
    {"features.auto-commit-period", WORM, KEPT, TIME("auto-commit-period", "180", 0, INT32_MAX)},
    {"features.read-only", SIDE_BRICK, "features/read-only", WRITTEN, BOOL("read-only", "off")},
    {"features.leases", SIDE_BRICK, "features/leases", WRITTEN, BOOL("leases", "off")},
    {"features.cache-invalidation", UPCALL, WRITTEN, BOOL("cache-invalidation", "off")},
    {"features.cache-invalidation-timeout", UPCALL, KEPT, TIME("cache-invalidation-timeout", "60", 0, INT32_MAX)},
    {"performance.io-thread-count", IOT, KEPT, INT("thread-count", "16", 1, 64)},
    {"performance.high-prio-threads", IOT, KEPT, INT("high-prio-threads", "16", 1, 64)},
    {"performance.normal-prio-threads", IOT, KEPT, INT("normal-prio-threads", "16", 1, 64)},
    {"performance.low-prio-threads", IOT, KEPT, INT("low-prio-threads", "16", 1, 64)},
    {"performance.least-prio-threads", IOT, KEPT, INT("least-prio-threads", "1", 1, 64)},
    {"performance.enable-least-priority", IOT, KEPT, BOOL("enable-least-priority", "on")},
    {"features.selinux", SIDE_BRICK, "features/selinux", WRITTEN, BOOL("selinux", "on")},
    {"features.barrier", BARRIER, WRITTEN, BOOL("barrier", "disable")},
    {"features.barrier-timeout", BARRIER, WRITTEN, TIME("barrier-timeout", "120", 0, 3600)},
    {"features.inode-quota", MARKER, WRITTEN, BOOL("inode-quota", "off")},
    {"features.quota", MARKER, WRITTEN, BOOL("quota", "off")},
    {"features.quota", QUOTA, WRITTEN, BOOL("server-quota", "off")},
    {"features.quota-deem-statfs", QUOTA, WRITTEN, BOOL("deem-statfs", "off")},
    {"geo-replication.indexing", MARKER, WRITTEN, BOOL("xtime", "off")},
    {"geo-replication.ignore-pid-check", MARKER, WRITTEN, BOOL("gsync-force-xtime", "off")},
    {"features.acl", SELF, KEPT, BOOL("acl", "on")},
    /* debug/io-stats, on both sides */
    {"diagnostics.latency-measurement", BRICK_STATS, WRITTEN, BOOL("latency-measurement", "off")},
    {"diagnostics.latency-measurement", STATS, WRITTEN, BOOL("latency-measurement", "off")},
    {"diagnostics.count-fop-hits", BRICK_STATS, WRITTEN, BOOL("count-fop-hits", "off")},
    {"diagnostics.count-fop-hits", STATS, WRITTEN, BOOL("count-fop-hits", "off")},
    {"diagnostics.brick-log-level", BRICK_STATS, WRITTEN, ENUM("log-level", "INFO", log_levels)},
    {"diagnostics.client-log-level", STATS, WRITTEN, ENUM("log-level", "INFO", log_levels)},
    {"config.global-threading", BRICK_STATS, WRITTEN, BOOL("global-threading", "off")},
    {"config.global-threading", STATS, WRITTEN, BOOL("global-threading", "off")},
    {"config.brick-threads", BRICK_STATS, WRITTEN, INT("threads", "16", 0, 1024)},
    {"config.client-threads", STATS, WRITTEN, INT("threads", "16", 0, 1024)},
    /* protocol/server */
    {"network.inode-lru-limit", SERVER, KEPT, INT("inode-lru-limit", "16384", 0, 1048576)},
    {"auth.allow", SELF, KEPT, STR("allow", "*")},
    {"auth.reject", SELF, KEPT, STR("reject", NULL)},
    {"auth.ssl-allow", SELF, KEPT, STR("ssl-allow", NULL)},
    {"transport.keepalive", SERVER, WRITTEN, BOOL("transport.socket.keepalive", "1")},
    {"transport.listen-backlog", SERVER, WRITTEN, INT("transport.listen-backlog", "1024", 0, 65536)},
    {"server.allow-insecure", SERVER, KEPT, BOOL("rpc-auth-allow-insecure", "on")},
    {"server.root-squash", SERVER, KEPT, BOOL("root-squash", "off")},
    {"server.all-squash", SERVER, KEPT, BOOL("all-squash", "off")},
    {"server.anonuid", SERVER, KEPT, INT("anonuid", "65534", 0, UINT32_MAX - 1)},
    {"server.anongid", SERVER, KEPT, INT("anongid", "65534", 0, UINT32_MAX - 1)},
    {"server.outstanding-rpc-limit", SERVER, KEPT, INT("rpc.outstanding-rpc-limit", "64", 0, 65536)},
    {"server.manage-gids", SERVER, KEPT, BOOL("manage-gids", "off")},
    {"server.gid-timeout", SERVER, KEPT, TIME("gid-timeout", "300", 0, INT32_MAX)},
    {"server.dynamic-auth", SERVER, KEPT, BOOL("dynamic-auth", "on")},
    {"server.event-threads", SERVER, KEPT, INT("event-threads", "2", 1, 1024)},
    {"server.ssl", SERVER, WRITTEN, BOOL("transport.socket.ssl-enabled", "off")},
    {"ssl.own-cert", SERVER, KEPT, STR("transport.socket.ssl-own-cert", NULL)},
    {"ssl.private-key", SERVER, KEPT, STR("transport.socket.ssl-private-key", NULL)},
    {"ssl.ca-list", SERVER, KEPT, STR("transport.socket.ssl-ca-list", NULL)},
    {"ssl.crl-path", SERVER, KEPT, STR("transport.socket.ssl-crl-path", NULL)},
    {"ssl.cipher-list", SERVER, KEPT, STR("transport.socket.ssl-cipher-list", NULL)},
    {"ssl.dh-param", SERVER, KEPT, STR("transport.socket.ssl-dh-param", NULL)},
    {"ssl.ec-curve", SERVER, KEPT, STR("transport.socket.ssl-ec-curve", NULL)},
    {"ssl.certificate-depth", SERVER, KEPT, INT("transport.socket.ssl-cert-depth", "1", 0, 100)},
    {"ssl.min-version", SERVER, KEPT, ENUM("transport.socket.ssl-min-version", "1.2", min_tls_versions)},
    {"server.keepalive-time", SERVER, WRITTEN, TIME("transport.socket.keepalive-time", "20", 1, 3600)},
    {"server.keepalive-interval", SERVER, WRITTEN, TIME("transport.socket.keepalive-interval", "2", 1, 3600)},
    {"server.keepalive-count", SERVER, WRITTEN, INT("transport.socket.keepalive-count", "9", 1, 128)},
    /* protocol/client */
    {"network.frame-timeout", CLIENT, KEPT, TIME("frame-timeout", "1800", 0, 86400)},
    {"network.ping-timeout", CLIENT, WRITTEN, TIME("ping-timeout", "42", 0, 1013)},
    {"network.remote-dio", CLIENT, KEPT, BOOL("filter-O_DIRECT", "disable")},
    {"client.event-threads", CLIENT, KEPT, INT("event-threads", "2", 1, 1024)},
    {"client.strict-locks", CLIENT, WRITTEN, BOOL("strict-locks", "off")},
    {"client.ssl", CLIENT, WRITTEN, BOOL("transport.socket.ssl-enabled", "off")},
    {"ssl.own-cert", CLIENT, KEPT, STR("transport.socket.ssl-own-cert", NULL)},
    {"ssl.private-key", CLIENT, KEPT, STR("transport.socket.ssl-private-key", NULL)},
    {"ssl.ca-list", CLIENT, KEPT, STR("transport.socket.ssl-ca-list", NULL)},
    {"ssl.crl-path", CLIENT, KEPT, STR("transport.socket.ssl-crl-path", NULL)},
    {"ssl.cipher-list", CLIENT, KEPT, STR("transport.socket.ssl-cipher-list", NULL)},
    {"ssl.dh-param", CLIENT, KEPT, STR("transport.socket.ssl-dh-param", NULL)},
    {"ssl.ec-curve", CLIENT, KEPT, STR("transport.socket.ssl-ec-curve", NULL)},
    {"ssl.certificate-depth", CLIENT, KEPT, INT("transport.socket.ssl-cert-depth", "1", 0, 100)},
    {"ssl.min-version", CLIENT, KEPT, ENUM("transport.socket.ssl-min-version", "1.2", min_tls_versions)},
    {"ssl.check-host", CLIENT, KEPT, BOOL("transport.socket.ssl-check-host", "off")},
    {"client.tcp-user-timeout", CLIENT, WRITTEN, TIME("transport.tcp-user-timeout", "0", 0, 1013)},
    {"client.keepalive-time", CLIENT, WRITTEN, TIME("transport.socket.keepalive-time", "20", 1, 3600)},
    {"client.keepalive-interval", CLIENT, WRITTEN, TIME("transport.socket.keepalive-interval", "2", 1, 3600)},
    {"client.keepalive-count", CLIENT, WRITTEN, INT("transport.socket.keepalive-count", "9", 1, 128)},
    /* cluster/replicate */
    {"cluster.granular-entry-heal", AFR, KEPT, BOOL("granular-entry-heal", "no")},
    {"cluster.use-compound-fops", AFR, WRITTEN, BOOL("use-compound-fops", "off")},
    {"cluster.use-anonymous-inode", AFR, WRITTEN, BOOL("use-anonymous-inode", "yes")},
    {"cluster.quorum-type", AFR, KEPT, ENUM("quorum-type", "none", quorum_types)},
    {"cluster.quorum-count", AFR, KEPT, INT("quorum-count", NULL, 1, 16)},
    {"cluster.quorum-reads", AFR, KEPT, BOOL("quorum-reads", "no")},
    {"cluster.eager-lock", AFR, KEPT, BOOL("eager-lock", "on")},
    {"cluster.post-op-delay-secs", AFR, KEPT, INT("post-op-delay-secs", "1", 0, INT32_MAX)},
    {"cluster.data-self-heal", AFR, KEPT, BOOL("data-self-heal", "off")},
    {"cluster.metadata-self-heal", AFR, KEPT, BOOL("metadata-self-heal", "off")},
    {"cluster.entry-self-heal", AFR, KEPT, BOOL("entry-self-heal", "off")},
    {"cluster.data-self-heal-algorithm", AFR, KEPT, ENUM("data-self-heal-algorithm", NULL, heal_algorithms)},
    {"cluster.background-self-heal-count", AFR, KEPT, INT("background-self-heal-count", "8", 0, 256)},
    {"cluster.heal-wait-queue-length", AFR, KEPT, INT("heal-wait-queue-length", "128", 0, 10000)},
    {"cluster.self-heal-window-size", AFR, KEPT, INT("data-self-heal-window-size", "8", 1, 1024)},
    {"cluster.heal-timeout", AFR, KEPT, INT("heal-timeout", "600", 5, INT32_MAX)},
    {"cluster.shd-max-threads", AFR, KEPT, INT("shd-max-threads", "1", 1, 64)},
    {"cluster.shd-wait-qlength", AFR, KEPT, INT("shd-wait-qlength", "1024", 1, 655536)},
    {"cluster.locking-scheme", AFR, KEPT, ENUM("locking-scheme", "full", locking_schemes)},
    {"cluster.favorite-child-policy", AFR, KEPT, ENUM("favorite-child-policy", "none", favorite_policies)},
    {"cluster.read-subvolume-index", AFR, KEPT, INT("read-subvolume-index", "-1", -1, INT32_MAX)},
    {"cluster.read-hash-mode", AFR, KEPT, INT("read-hash-mode", "1", 0, 5)},
    {"cluster.choose-local", AFR, KEPT, BOOL("choose-local", "true")},
    {"cluster.consistent-metadata", AFR, KEPT, BOOL("consistent-metadata", "no")},
    {"cluster.ensure-durability", AFR, KEPT, BOOL("ensure-durability", "on")},
    {"cluster.optimistic-change-log", AFR, KEPT, BOOL("optimistic-change-log", "on")},
    {"cluster.self-heal-daemon", SELF, KEPT, BOOL("self-heal-daemon", "on")},
    {"feature.simple-quota-pass-through", SELF, KEPT, BOOL("simple-quota-pass-through", "on")},
    {"kiln.heal-throttle", SELF, KEPT, BOOL("heal-throttle", "on")},
    {"kiln.limit", SELF, KEPT, SIZE("limit", "0")}, /* bytes; 0: none */
    /* cluster/disperse; check_set() has the bounds, which each volume has for itself */
    {"disperse.quorum-count", EC, KEPT, INT("quorum-count", "0", 0, FAN_CHILDREN_MAX)},
    {"disperse.ec-read-mask", EC, KEPT, STR("ec-read-mask", NULL)},
    {"disperse.eager-lock", EC, KEPT, BOOL("eager-lock", "on")},
    {"disperse.eager-lock-timeout", EC, KEPT, INT("eager-lock-timeout", "1", 1, 60)},
    {"disperse.other-eager-lock", EC, KEPT, BOOL("other-eager-lock", "on")},
    {"disperse.other-eager-lock-timeout", EC, KEPT, INT("other-eager-lock-timeout", "1", 1, 60)},
    {"disperse.background-heals", EC, KEPT, INT("background-heals", "8", 0, 256)},
    {"disperse.self-heal-window-size", EC, KEPT, INT("self-heal-window-size", "32", 1, 1024)},
    {"disperse.read-policy", EC, KEPT, ENUM("read-policy", "gfid-hash", read_policies)},
    {"disperse.optimistic-change-log", EC, KEPT, BOOL("optimistic-change-log", "on")},
    {"disperse.parallel-writes", EC, KEPT, BOOL("parallel-writes", "on")},
    {"disperse.stripe-cache", EC, KEPT, INT("stripe-cache", "4", 0, 10)},
    /* cluster/distribute */
    {"cluster.lock-migration", DHT, WRITTEN, BOOL("lock-migration", "off")},
    {"cluster.force-migration", DHT, WRITTEN, BOOL("force-migration", "off")},
    {"cluster.lookup-unhashed", DHT, KEPT, STR("lookup-unhashed", "on")},
    {"cluster.lookup-optimize", DHT, KEPT, BOOL("lookup-optimize", "on")},
    {"cluster.min-free-disk", DHT, KEPT, PERCENT_OR_SIZE("min-free-disk", "10%")},
    {"cluster.min-free-inodes", DHT, KEPT, STR("min-free-inodes", "5%")},
    {"cluster.readdir-optimize", DHT, KEPT, BOOL("readdir-optimize", "off")},
    {"cluster.weighted-rebalance", DHT, KEPT, BOOL("weighted-rebalance", "on")},
    {"cluster.rebal-throttle", DHT, KEPT, ENUM("rebal-throttle", "normal", throttles)},
    {"dht.force-readdirp", DHT, KEPT, BOOL("use-readdirp", "on")},
    /* options that enable layers of the client */
    {"features.shard", SELF, KEPT, BOOL("shard", "off")},
    {"performance.write-behind", SELF, KEPT, BOOL("write-behind", "on")},
    {"performance.read-ahead", SELF, KEPT, BOOL("read-ahead", "off")},
    {"performance.readdir-ahead", SELF, KEPT, BOOL("readdir-ahead", "off")},
    {"performance.io-cache", SELF, KEPT, BOOL("io-cache", "off")},
    {"performance.open-behind", SELF, KEPT, BOOL("open-behind", "on")},
    {"performance.quick-read", SELF, KEPT, BOOL("quick-read", "on")},
    {"performance.stat-prefetch", SELF, KEPT, BOOL("md-cache", "on")},
    {"performance.nl-cache", SELF, KEPT, BOOL("nl-cache", "off")},
    {"performance.client-io-threads", SELF, KEPT, BOOL("client-io-threads", "on")},
    /* options of these layers */
    {"features.shard-block-size", SHARD, KEPT, SIZE_IN("shard-block-size", "64MB", 4 << 20, INT64_C(4) << 40)},
    {"features.shard-lru-limit", SHARD, KEPT, INT("shard-lru-limit", "16384", 20, INT32_MAX)},
    {"features.shard-deletion-rate", SHARD, KEPT, INT("shard-deletion-rate", "100", 1, INT32_MAX)},
    {"ctime.noatime", UTIME, WRITTEN, BOOL("noatime", "on")},
    {"performance.flush-behind", WB, KEPT, BOOL("flush-behind", "on")},
    {"performance.write-behind-window-size", WB, KEPT, SIZE("cache-size", "1MB")},
    {"performance.write-behind-trickling-writes", WB, KEPT, BOOL("trickling-writes", "on")},
    {"performance.strict-o-direct", WB, KEPT, BOOL("strict-O_DIRECT", "off")},
    {"performance.strict-write-ordering", WB, KEPT, BOOL("strict-write-ordering", "off")},
    {"performance.resync-failed-syncs-after-fsync", WB, KEPT, BOOL("resync-failed-syncs-after-fsync", "off")},
    {"performance.aggregate-size", WB, KEPT, SIZE("aggregate-size", "128KB")},
    {"performance.read-ahead-page-count", RA, KEPT, INT("page-count", "4", 1, 16)},
    {"performance.rda-request-size", RDA, WRITTEN, SIZE("rda-request-size", "131072")},
    {"performance.rda-cache-limit", RDA, WRITTEN, SIZE("rda-cache-limit", "10MB")},
    {"performance.parallel-readdir", RDA, WRITTEN, BOOL("parallel-readdir", "off")},
    {"performance.cache-size", IOC, KEPT, SIZE("cache-size", "32MB")},
    {"performance.cache-size", QR, KEPT, SIZE("cache-size", "128MB")},
    {"performance.cache-refresh-timeout", IOC, KEPT, INT("cache-timeout", "1", 0, 60)},
    {"performance.lazy-open", OB, KEPT, BOOL("lazy-open", "yes")},
    {"performance.read-after-open", OB, KEPT, BOOL("read-after-open", "yes")},
    {"performance.qr-cache-timeout", QR, KEPT, TIME("cache-timeout", "1", 1, 600)},
    {"performance.ctime-invalidation", QR, KEPT, BOOL("ctime-invalidation", "false")},
    {"performance.md-cache-timeout", MDC, KEPT, INT("md-cache-timeout", "1", 0, 600)},
    {"performance.cache-invalidation", MDC, KEPT, BOOL("cache-invalidation", "false")},
    {"performance.force-readdirp", MDC, KEPT, BOOL("force-readdirp", "true")},
    {"performance.cache-capability-xattrs", MDC, KEPT, BOOL("cache-capability-xattrs", "true")},
    {"performance.cache-ima-xattrs", MDC, KEPT, BOOL("cache-ima-xattrs", "true")},
    {"performance.cache-samba-metadata", MDC, KEPT, BOOL("cache-samba-metadata", "off")},
    {"performance.nl-cache-timeout", NLC, KEPT, TIME("nl-cache-timeout", "60", 0, 600)},
    {"performance.nl-cache-positive-entry", NLC, KEPT, BOOL("nl-cache-positive-entry", "false")},
    {"performance.nl-cache-limit", NLC, WRITTEN, SIZE("nl-cache-limit", "10MB")},
    /* options of this daemon, or accepted without effect because scripts for gluster set them */
    {"transport.address-family", SELF, KEPT, STR("address-family", "inet")},
    {"nfs.disable", SELF, KEPT, BOOL("nfs.disable", "on")},
};
/* clang-format on */
enum { KEYS = sizeof table / sizeof table[0] };

const struct volume_key *
volume_keys(unsigned index)
{
    return index < KEYS ? &table[index] : NULL;
}

const struct volume_key *
volume_key_find(const char *key)
{
    for (unsigned i = 0; i < KEYS; i++) {
        if (strcmp(table[i].key, key) == 0)
            return &table[i];
    }
    return NULL;
}

static unsigned
smaller(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;

    return m < c ? m : c;
}

/* Returns the edit distance of two words; compares at most LONGEST characters. */
static unsigned
distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    unsigned row[LONGEST + 1];
    size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);

    for (unsigned k = 0; k <= m; k++)
        row[k] = k;
    for (unsigned i = 1; i <= n; i++) {
        unsigned corner = row[0];

        row[0] = i;
        for (unsigned k = 1; k <= m; k++) {
            unsigned above = row[k];

            row[k] = smaller(above + 1, row[k - 1] + 1, corner + (a[i - 1] != b[k - 1]));
            corner = above;
        }
    }
    return row[m];
}

const char *
volume_key_like(const char *key)
{
    const char *best = NULL, *dot;
    /* a larger distance means another word */
    unsigned third = (unsigned)strlen(key) / 3, best_distance = third < 5 ? third + 1 : 6;

    for (unsigned i = 0; i < KEYS; i++) {
        unsigned d = distance(key, table[i].key);

        if (!strchr(key, '.') && (dot = strchr(table[i].key, '.')) && distance(key, dot + 1) < d)
            d = distance(key, dot + 1);
        if (d < best_distance) {
            best_distance = d;
            best = table[i].key;
        }
    }
    return best;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int
check_value(const struct volume_key *k, const char *value, struct problem *why)
{
    struct option one[2] = {k->check, OPT_END};
    struct option_value given = {k->key, value, 0};
    union room room = {0};
    char error[512];

    one[0].key = k->key; /* the error names the key that the operator typed */
    int err = option_parse(one, &given, 1, &room, NULL, NULL, error, sizeof error);
    if (err)
        return problem_set(why, err, "%s", error);
    option_conf_fini(one, &room);
    return 0;
}

/* Checks that a volfile can hold the value between quotes on one line. */
static int
check_text(const char *key, const char *value, struct problem *why)
{
    bool is_good = *value && strlen(value) <= VOLUME_VALUE_MAX;

    for (const char *c = value; *c && is_good; c++)
        is_good = (unsigned char)*c >= ' ' && *c != 0x7f && *c != '`';
    if (is_good)
        return 0;
    problem_set(why, -EINVAL,
                "the value of %s is empty, too long, or has a control character or a back-quote", key);
    problem_expected(why, "1 to %d printable bytes", VOLUME_VALUE_MAX);
    return why->err;
}

/* Checks a key user.*, which is stored for other programs. */
static int
check_user_key(const char *key, struct problem *why)
{
    bool is_good = strlen(key) <= 255;

    for (const char *c = key; *c && is_good; c++)
        is_good = *c > ' ' && *c <= '~';
    if (is_good)
        return 0;
    problem_set(why, -EINVAL, "'%.200s' cannot be the name of an option", key);
    problem_expected(why, "at most 255 printable ASCII characters without blanks");
    return why->err;
}

/* Checks the trash folder: it is a folder of the root, and a brick does not start with a path. */
static int
check_trash_dir(const char *key, const char *value, struct problem *why)
{
    bool is_name = !strchr(value, '/') && strlen(value) <= 255 && strcmp(value, ".") != 0 &&
                   strcmp(value, "..") != 0 && strcmp(value, ".glusterfs") != 0;

    if (strcmp(key, "features.trash-dir") != 0 || is_name)
        return 0;
    problem_set(why, -EINVAL, "option %s %.200s: no name of a folder", key, value);
    problem_expected(why, "a name such as .trashcan");
    return why->err;
}

/* Checks an option of dispersed sets against the bricks of the volume's sets. */
static int
check_set(const struct volume *v, const char *key, const char *value, struct problem *why)
{
    unsigned data = v->replica - v->redundancy;
    struct reason fault = {0};
    child_set mask;
    int64_t count;
    int err = 0;

    if (strncmp(key, "disperse.", 9) != 0)
        return 0;
    if (!v->redundancy)
        return problem_set(why, -EINVAL, "%s: volume %s is not dispersed", key, v->name);
    if (strcmp(key, "disperse.quorum-count") == 0 && !option_int(value, &count))
        err = disperse_quorum_check(count, v->replica, data, &fault);
    else if (strcmp(key, "disperse.ec-read-mask") == 0)
        err = disperse_mask_parse(value, v->replica, data, &mask, &fault);
    return err ? problem_set(why, err, "%s %.100s: %s", key, value, fault.text) : 0;
}

/* Checks an option against the other options of the volume. */
static int
check_together(const struct volume *v, const char *key, const char *value, struct problem *why)
{
    bool is_on;
    const char *other = strcmp(key, "features.read-only") == 0 ? "features.worm"
                        : strcmp(key, "features.worm") == 0    ? "features.read-only"
                                                               : NULL;

    if (strcmp(key, "transport.address-family") == 0 && strcmp(value, "inet") != 0)
        return problem_set(why, -EOPNOTSUPP, "option %s %s: only inet is built", key, value);
    if (!other || option_bool(value, &is_on) || !is_on || !volume_option_bool(v, other))
        return 0;
    problem_set(why, -EINVAL, "%s and %s cannot both be on", key, other);
    problem_type(why, "kiln volume set %s %s off", v->name, other);
    return why->err;
}

/* Refuses a value that turns on a feature that is not built, before a brick does in the words of its volfile.
 * */
static int
check_built(const struct volume *v, const char *key, const char *value, struct problem *why)
{
    const struct unbuilt_feature *f = NULL;
    const struct volume_key *k;
    bool is_on = true;

    for (unsigned i = 0; (k = volume_keys(i)) && !f; i++) {
        if (strcmp(k->key, key) == 0 && k->layer && (f = unbuilt_find(k->layer, k->check.key)) &&
            !unbuilt_turns_on(f, value))
            f = NULL;
    }
    if (strcmp(key, "nfs.disable") == 0 && option_bool(value, &is_on) == 0 && !is_on) {
        problem_set(why, -EOPNOTSUPP, "%s %s: an NFS server is not built", key, value);
        problem_expected(why, "on; an NFS server such as nfs-ganesha or the kernel's can export a mount");
        return why->err;
    }
    if (!f)
        return 0;
    problem_set(why, -EOPNOTSUPP, "%s %.100s is not built: %s", key, value, f->without);
    problem_expected(why, "%s", f->off);
    if (strcmp(key, "features.quota") == 0)
        problem_type(why, "kiln volume limit %s 10G   # or kiln volume quota, for a folder", v->name);
    return why->err;
}

int
volume_option_check(const struct volume *v, const char *key, const char *value, struct problem *why)
{
    const struct volume_key *k = volume_key_find(key);

    if (!k && strncmp(key, "user.", 5) == 0 && key[5])
        return check_user_key(key, why) ? why->err : check_text(key, value, why);
    if (!k) {
        const char *like = volume_key_like(key);

        problem_set(why, -ENOENT, "there is no option '%.200s'", key);
        if (like)
            problem_expected(why, "did you mean %s?", like);
        problem_type(why, "kiln volume get %s all", v->name);
        return why->err;
    }
    return check_text(key, value, why) || check_value(k, value, why) || check_trash_dir(key, value, why) ||
                   check_set(v, key, value, why) || check_together(v, key, value, why) ||
                   check_built(v, key, value, why)
               ? why->err
               : 0;
}

const char *
volume_option_value(const struct volume *v, const char *key)
{
    const char *set = volume_option_of(v, key);
    const struct volume_key *k = set ? NULL : volume_key_find(key);

    if (set)
        return set;
    return k && k->check.text_default ? k->check.text_default : "";
}

bool
volume_option_bool(const struct volume *v, const char *key)
{
    bool is_on = false;

    return option_bool(volume_option_value(v, key), &is_on) == 0 && is_on;
}

uint64_t
volume_limit(const struct volume *v)
{
    uint64_t bytes = 0;

    return option_size(volume_option_value(v, "kiln.limit"), &bytes) ? 0 : bytes;
}

bool
volume_counts_usage(const struct volume *v)
{
    return volume_limit(v) > 0 || !volume_option_bool(v, "feature.simple-quota-pass-through");
}

int
volume_options_of_new(struct volume *v)
{
    static const char *const all[][2] = {
        {"nfs.disable", "on"}, {"transport.address-family", "inet"}, {"storage.fips-mode-rchecksum", "on"}};
    static const char *const replicated[][2] = {{"cluster.granular-entry-heal", "on"},
                                                {"performance.client-io-threads", "off"}};
    int err = 0;

    for (size_t i = 0; i < 3 && !err; i++)
        err = volume_set_option(v, all[i][0], all[i][1]);
    for (size_t i = 0; i < 2 && !err && v->replica > 1 && !v->redundancy; i++)
        err = volume_set_option(v, replicated[i][0], replicated[i][1]);
    return err;
}
