/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/option-table.h"

#include "mount/kiln-mount.h"
#include "volumes/front.h"

#define AT(member) offsetof(struct mount_options, member)
#define STORED_TEXT(member) .kind = OPTION_TEXT, .at = AT(member)
#define STORED_FLAG(member) .kind = OPTION_FLAG, .at = AT(member)
#define STORED_NUMBER(member) .kind = OPTION_NUMBER, .at = AT(member)
#define STORED_TEXTS(member, count, most)                                                                    \
    .kind = OPTION_TEXTS, .at = AT(member), .count_at = AT(count), .max = (most)

/* Options of the stock client, with the name of the option of mount(8). */
#define NO_EFFECT(long_name, value, mount_name)                                                              \
    {                                                                                                        \
        .name = (long_name), .kind = OPTION_NO_EFFECT, .arg = (value), .fstab = (mount_name)                 \
    }
#define NO_EFFECT_BOOL(long_name, mount_name)                                                                \
    {                                                                                                        \
        .name = (long_name), .kind = OPTION_NO_EFFECT, .arg = "BOOL", .arg_may_lack = true,                  \
        .fstab = (mount_name)                                                                                \
    }
#define REFUSED(how, long_name, value, mount_name)                                                           \
    {                                                                                                        \
        .name = (long_name), .kind = (how), .arg = (value), .arg_may_lack = true, .fstab = (mount_name)      \
    }

/* clang-format off */
const struct mount_option mount_option_rows[] = {
    {
        .name = "volfile-server", .letter = 's', .arg = "HOST",
        STORED_TEXTS(servers, server_count, SPEC_SERVERS_MAX), .take = TAKE_SERVER, .sent_as = "server",
        .fstab = "backup-volfile-servers", .fstab_too = "backupvolfile-server", .fstab_separator = ':',
        .help = "fetch the volfile from the glusterd of HOST; repeat for fallback servers",
        .manual = "Fetch the volfile from the glusterd or kilnd of this host. Repeat the option for "
                  "fallback servers: the mount asks the next one if the\n"
                  "previous ones cannot be reached.",
    },
    {
        .name = "volfile-server-port", .arg = "PORT",
        STORED_NUMBER(server_port), .take = TAKE_PORT, .sent_as = "server-port", .fstab = "server-port",
        .help = "port of that glusterd (24007)",
        .manual = "The port of that server. Default: 24007.",
    },
    {
        .name = "volfile-server-transport", .arg = "tcp",
        .take = TAKE_TRANSPORT, .fstab = "transport",
        .help = "transport to glusterd: tcp, or its synonym socket",
        .manual = "The transport to that server.\n"
                  ".B socket\n"
                  "is a synonym, for compatibility with the stock client. Other values are refused.",
    },
    {
        .name = "volfile-id", .arg = "VOLUME",
        STORED_TEXT(volume), .sent_as = "volume", .fstab = "volume-id",
        .help = "name of the volume at glusterd",
        .manual = "The name of the volume.",
    },
    {
        .name = "volume-name", .arg = "NAME",
        STORED_TEXT(top), .fstab = "volume-name",
        .help = "expected name of the top volume in the volfile; refuse any other",
        .manual = "The expected name of the top volume in the volfile. The mount fails if the top volume "
                  "has another name.",
    },
    {
        .name = "subdir-mount", .arg = "/DIR",
        STORED_TEXT(subdir), .sent_as = "subdir", .fstab = "subdir-mount", .to = TO_BRICKS,
        .key = "subdir-mount",
        .help = "mount this directory of the volume",
        .manual = "Mount this directory of the volume.",
    },
    {
        .name = "volfile", .letter = 'f', .arg = "FILE",
        STORED_TEXT(volfile),
        .help = "read the client volfile from FILE",
        .manual = "Read the client volfile from this file.",
    },
    {
        .name = "foreground", .letter = 'N', .alias = "no-daemon",
        STORED_FLAG(is_foreground), .is_of_process = true,
        .help = "stay in the foreground",
        .manual = "Stay in the foreground, and log to standard error unless\n"
                  ".B -l\n"
                  "is given.",
    },
    {
        .name = "debug",
        .take = TAKE_DEBUG, .is_of_process = true,
        .help = "stay in the foreground, log level DEBUG, log to standard error",
        .manual = "Stay in the foreground, set log level DEBUG and log to standard error.",
    },
    {
        .name = "log-file", .letter = 'l', .arg = "FILE",
        STORED_TEXT(log_path), .is_of_process = true, .fstab = "log-file", .fstab_is_alone = true,
        .help = "log to FILE (default: a file named after the mount point in /var/log/glusterfs, or in "
                "/var/log/kiln/mount if that folder is missing; in the foreground standard error)",
        .manual = "Log to this file. Default: the path of the mount point with - for / in "
                  "/var/log/glusterfs, or in /var/log/kiln/mount if the stock\n"
                  "client's folder is missing.",
    },
    {
        .name = "log-level", .letter = 'L', .arg = "LEVEL",
        STORED_TEXT(log_level), .is_of_process = true, .fstab = "log-level", .fstab_is_alone = true,
        .help = "TRACE, DEBUG, INFO (default), WARNING, ERROR, CRITICAL or NONE",
        .manual = "TRACE, DEBUG, INFO (default), WARNING, ERROR, CRITICAL or NONE.",
    },
    {
        .name = "pid-file", .letter = 'p', .arg = "FILE",
        STORED_TEXT(pid_path), .is_of_process = true,
        .help = "write the process id to FILE and keep FILE locked",
        .manual = "Write the process id to this file, and hold a lock on the file while the process runs.",
    },
    {
        .name = "attribute-timeout", .arg = "SECONDS",
        STORED_TEXT(attr_timeout), .fstab = "attribute-timeout", .to = TO_FUSE,
        .key = "attribute-timeout",
        .help = "how long the kernel caches attributes (1)",
        .manual = "How long the kernel caches attributes. Default: 1; fractions are allowed. If the "
                  "volume has\n"
                  ".I performance.cache-invalidation\n"
                  "on, the default is its\n"
                  ".IR performance.md-cache-timeout ,\n"
                  "because the bricks then report changes by other clients\n"
                  ".RI ( features.cache-invalidation\n"
                  "must be on, and bricks report for\n"
                  ".IR features.cache-invalidation-timeout ).\n"
                  "This does not apply with --subdir-mount.",
    },
    {
        .name = "entry-timeout", .arg = "SECONDS",
        STORED_TEXT(entry_timeout), .fstab = "entry-timeout", .to = TO_FUSE, .key = "entry-timeout",
        .help = "how long the kernel caches names (1)",
        .manual = "How long the kernel caches names. Default: 1, with the same exception.",
    },
    {
        .name = "negative-timeout", .arg = "SECONDS",
        STORED_TEXT(negative_timeout), .fstab = "negative-timeout", .to = TO_FUSE,
        .key = "negative-timeout",
        .help = "how long the kernel caches that a name does not exist (0)",
        .manual = "How long the kernel caches that a name does not exist. Default: 0.",
    },
    {
        .name = "hard", .arg = "SECONDS",
        STORED_TEXT(hard), .fstab = "hard", .to = TO_HARD, .key = "hard-timeout",
        .help = "how long calls wait for bricks that were lost, counted from the loss of the last brick, "
                "before they fail with ENOTCONN; 0: not at all (60)",
        .manual = "How long requests wait for bricks that were lost, counted from the loss of the last "
                  "brick. 0: requests fail at once with ENOTCONN, as\n"
                  "those of the stock client do. Default: 60.\n"
                  ".I umount -f\n"
                  "ends the waiting requests with an error, and the mount with them. The statedump has the "
                  "number of waiting requests\n"
                  ".RI ( held\n"
                  "in the section of\n"
                  ".IR kiln-hard ).",
    },
    {
        .name = "direct-io-mode", .arg = "MODE", .arg_may_lack = true,
        STORED_TEXT(direct_io), .take = TAKE_DIRECT_IO, .fstab = "direct-io-mode", .to = TO_FUSE,
        .key = "direct-io-mode",
        .help = "enable: all reads and writes bypass the page cache; disable: none do; auto (default): "
                "only those of files that are open for appending",
        .manual = ".B enable\n"
                  "(also without a value): all reads and writes bypass the page cache.\n"
                  ".BR disable :\n"
                  "none do.\n"
                  ".B auto\n"
                  "(default): only those of files that are open for appending, so that each write is "
                  "appended whole.",
    },
    {
        .name = "kernel-writeback-cache", .arg = "BOOL", .arg_may_lack = true,
        STORED_TEXT(writes_back), .unsaid = "on", .fstab = "kernel-writeback-cache", .to = TO_FUSE,
        .key = "kernel-writeback-cache",
        .help = "let the kernel keep written data until fsync or close; only for files that no other "
                "client writes (no)",
        .manual = ".B yes\n"
                  "lets the kernel keep written data and send it in larger pieces, at the latest at fsync "
                  "and close, which return errors. Default:\n"
                  ".BR no .\n"
                  "While the kernel holds data of a file, it uses its own size and times for the file. "
                  "Use the option only for files that no other client writes at the\n"
                  "same time.",
    },
    {
        .name = "client-pid", .arg = "N",
        STORED_TEXT(client_pid), .fstab = "client-pid", .to = TO_FUSE, .key = "client-pid",
        .help = "send this process id to bricks for all callers; negative ids mark internal programs of "
                "GlusterFS",
        .manual = "Send this process id to bricks for all callers. Negative ids mark internal programs of "
                  "GlusterFS, which have additional rights.",
    },
    {
        .name = "acl",
        STORED_FLAG(acl), .fstab = "acl", .to = TO_FUSE, .key = "acl",
        .help = "enable POSIX ACLs",
        .manual = "Enable POSIX ACLs. Without this option getting and setting an ACL fails with EOPNOTSUPP.",
    },
    {
        .name = "secure-mgmt", .arg = "BOOL", .arg_may_lack = true,
        .take = TAKE_SECURE, .is_of_process = true,
        .help = "encrypt the connection to glusterd (default: on if /var/lib/glusterd/secure-access "
                "exists)",
        .manual = "Encrypt the connection to glusterd with the certificate files glusterfs.pem, "
                  "glusterfs.key and glusterfs.ca in\n"
                  "/usr/lib/ssl or /etc/ssl.\n"
                  "The default is on if /var/lib/glusterd/secure-access exists.\n"
                  "With\n"
                  ".B --shared\n"
                  "the first mount of the process decides.",
    },
    {
        .name = "sandbox", .arg = "MODE",
        .take = TAKE_SANDBOX, .is_of_process = true, .fstab = "sandbox", .fstab_is_alone = true,
        .help = "on (default): give up the capabilities and system calls that kiln-mount does not need; "
                "log: only have the kernel's audit log list the calls; off: keep all",
        .manual = ".B on\n"
                  "(default): before the mount exists, kiln-mount gives up all capabilities except "
                  "CAP_SYS_ADMIN (to mount), CAP_DAC_OVERRIDE, CAP_SYS_PTRACE (to\n"
                  "read the groups of a process if /proc hides processes), CAP_SYS_RESOURCE and "
                  "CAP_NET_BIND_SERVICE, and all system calls that are not on a list;\n"
                  "kiln-mount can run no program. A refused call fails with EPERM, and the log has its "
                  "name\n"
                  ".RI ( sandbox-refused ).\n"
                  ".B log\n"
                  "refuses nothing, and the kernel's audit log has the number of each such call;\n"
                  ".B off\n"
                  "keeps all.\n"
                  "The section SANDBOX of kilnd's manual page says more. With\n"
                  ".B --shared\n"
                  "the first mount of the process decides. If the kernel does not support filters, "
                  "kiln-mount logs\n"
                  ".I mount-sandbox-missing\n"
                  "and works without one, unless\n"
                  ".B on\n"
                  "is given.",
    },
    {
        .name = "shared",
        STORED_FLAG(is_shared), .is_of_process = true, .fstab = "shared",
        .help = "serve all shared mounts from one process",
        .manual = "Serve all shared mounts of this mount namespace from one process. If such a process "
                  "runs, it takes over this mount and the command\n"
                  "returns the result. Otherwise this process stays, accepts further mounts through the "
                  "socket /run/kiln-mount.sock, and ends with its\n"
                  "last mount. The first mount sets the options of the process (-l, -L, -p, -N, "
                  "--statedump-dir, --pools). The default log file\n"
                  "is kiln-mount.log in the folder that -l describes. All mounts share the same threads; "
                  "neither a hanging brick nor an unmount blocks the other mounts.\n"
                  ".IP\n"
                  "Under systemd the process is\n"
                  ".IR kiln-mount.service ,\n"
                  "which the first mount starts, unless -l, -p or -N is given. See SHARED MOUNTS.",
    },
    {
        .name = "upgrade-check",
        STORED_FLAG(is_upgrade_check), .is_of_process = true,
        .help = "print the format of the state that a program passes to the next one, and end",
        .manual = "Print the format of the state that this program passes on and takes over at an upgrade, and "
                  "exit. For \\fBkiln upgrade mounts\\fR, which\n"
                  "runs the new program with this option first.\n"},
    {
        .name = "serve",
        .take = TAKE_SERVE, .is_of_process = true,
        .help = "be the process of the shared mounts, without a mount of its own yet, and take back the "
                "mounts of such a process that was killed: for kiln-mount.service",
        .manual = "Be the process of the shared mounts, without a volume and a mount point. The service\n"
                  ".I kiln-mount.service\n"
                  "starts kiln-mount with this option.",
    },
    {
        .name = "inside", .arg = "SOCKET", .arg_may_lack = true,
        STORED_FLAG(is_inside), .take = TAKE_INSIDE, .fstab = "inside", .fstab_is_alone = true,
        .to = TO_FUSE | TO_BRICKS, .key = "inside",
        .help = "have kilnd mount the volume in its own process; SOCKET is the path of kilnd's management "
                "socket (" FRONT_SOCKET ")",
        .manual = "Have kilnd mount the volume in its own process, see INSIDE MOUNTS. SOCKET is the path "
                  "of kilnd's management socket\n"
                  "(/run/kiln/kilnd.socket). The command returns when the mount is ready or has failed. "
                  "kilnd has the log; -l, -L, -p, -N, --pools and\n"
                  "--statedump-dir do not count.",
    },
    {
        .name = "compound", .arg = "BOOL",
        STORED_TEXT(compound), .fstab = "compound", .to = TO_BRICKS, .key = "compound",
        .help = "off: send each call to a brick in a message of its own (default: on; only bricks of kilnd "
                "take several calls in one message)",
        .manual = "Send several calls in one message to bricks of kilnd, where the order of the calls at the "
                  "other bricks does not matter.\n"
                  "The default is on: a small file then takes fewer messages, and less time where the bricks "
                  "are far away. Other bricks, and\n"
                  "a kilnd that offers no such messages, get a message for each call.",
    },
    {
        .name = "read-only",
        STORED_FLAG(is_read_only), .fstab = "ro", .to = TO_FUSE, .key = "read-only",
        .help = "refuse changes",
        .manual = "Refuse all changes through this mount.",
    },
    {
        .name = "fuse-mountopts", .arg = "OPTION",
        STORED_TEXTS(kernel_options, kernel_option_count, MOUNT_KERNEL_OPTIONS_MAX),
        .sent_as = "kernel-option", .to = TO_FUSE, .key = "kernel-options",
        .help = "mount options for the kernel: nodev, nosuid, noexec, noatime, nodiratime, relatime, "
                "strictatime, sync, dirsync",
        .manual = "Mount options for the kernel: nodev, nosuid, noexec, noatime, nodiratime, relatime, "
                  "strictatime, sync, dirsync. Repeat the option, or\n"
                  "separate several with commas.",
    },
    {
        .name = "fs-name", .alias = "fs-display-name", .arg = "NAME",
        STORED_TEXT(source), .sent_as = "source",
        .help = "source to show in the mount table (HOST:/VOLUME, or the path of the volfile)",
        .manual = "The source to show in the mount table. Default: HOST:/VOLUME with the directory, or "
                  "the path of the volfile.",
    },
    {
        .name = "statedump-dir", .arg = "DIR",
        STORED_TEXT(dump_dir), .is_of_process = true,
        .help = "folder for statedumps (/var/run/gluster)",
        .manual = "The folder for statedumps (SIGUSR1). Default: /var/run/gluster.",
    },
    {
        .name = "xlator-option", .arg = "PATTERN.KEY=VALUE",
        STORED_TEXTS(xlator_options, xlator_option_count, MOUNT_XLATOR_OPTIONS_MAX),
        .take = TAKE_XLATOR, .fstab = "xlator-option",
        .help = "set an option of the layers whose names match; overrides the volfile",
        .manual = "Set an option of each layer whose name matches the shell pattern. The value overrides "
                  "the volfile. Kiln has the following options of its own.\n"
                  "Except for the last, each saves calls to bricks (doc/lab-notes.md has figures); the "
                  "default is in parentheses:\n"
                  ".RS\n"
                  ".TP\n"
                  ".BR *.folder-attributes \" (on)\"\n"
                  "Cache the attributes of a folder for --attribute-timeout, and update the times for "
                  "changes by this mount.\n"
                  ".TP\n"
                  ".BR *.skip-synced-fsync \" (on)\"\n"
                  "Answer the fsync that the kernel sends after each write to a file open with O_SYNC or "
                  "O_DSYNC without asking the bricks, if nothing else\n"
                  "in the file changed since the last one: the bricks write such data to their disks "
                  "before they reply.\n"
                  ".TP\n"
                  ".BR *.handle-killpriv \" (on)\"\n"
                  "Clear set-id bits and security.capability of a changed file in the mount "
                  "(FUSE_HANDLE_KILLPRIV_V2), so that the kernel does not ask for\n"
                  "the capability before each write. If another client set a set-id bit after the kernel "
                  "last read the attributes, the next write or\n"
                  "truncation still clears it, but an fallocate does not.\n"
                  ".TP\n"
                  ".BR *.local-socket \" (on)\"\n"
                  "Connect to a kilnd brick on this machine over a local socket beside its port.\n"
                  ".TP\n"
                  ".BR *.lock-new-files \" (on)\"\n"
                  "Lock a new file of a replicated volume with its creation (bricks of kilnd) or while the "
                  "reply to its creation is sent, not\n"
                  "only at its first write; with bricks of kilnd also a file that is opened for writing.\n"
                  ".TP\n"
                  ".BR *.metadata-lock-kept-ms \" (10)\"\n"
                  "Keep the lock on the attributes of a replicated file for this many milliseconds, for "
                  "the next change of attributes.\n"
                  ".TP\n"
                  ".BR *.names-lock-kept-ms \" (1000)\"\n"
                  "Keep the lock on the names of a replicated folder for this many milliseconds after the "
                  "last change of a name, and for five times that in\n"
                  "all. With bricks that are not kilnd's at most 10 ms count.\n"
                  ".TP\n"
                  ".BR *.share-entry-lock \" (on)\"\n"
                  "Let changes of names in a replicated folder share one lock on all names of the folder. "
                  "Bricks of kilnd report a client that waits for\n"
                  "the lock; the mount then releases the lock, and locks single names in this folder for "
                  "a second. Nothing is reported by stock bricks, nor\n"
                  "by kilnd with the option\n"
                  ".B features.locks-notify-contention\n"
                  "off: there other clients wait until the lock's time ends\n"
                  ".RB ( names-lock-kept-ms ).\n"
                  ".TP\n"
                  ".BR *.unlink-takes-migrate-lock \" (auto)\"\n"
                  "Take a lock before removing a file of a distributed volume:\n"
                  ".BR on ,\n"
                  ".BR off ,\n"
                  "or\n"
                  ".BR auto :\n"
                  "only on bricks that are not known to be kilnd's, because kilnd does not need the lock.\n"
                  ".RE",
    },
    {
        .name = "pools", .arg = "MODE",
        STORED_TEXT(pools_mode), .is_of_process = true,
        .help = "memory pools: on, off, poison or trace:K",
        .manual = "Memory pools:\n"
                  ".B on\n"
                  "(default),\n"
                  ".B off\n"
                  "(malloc for every object, for comparison),\n"
                  ".B poison\n"
                  "(detects writes to freed objects),\n"
                  ".BI trace: K\n"
                  "(keeps a backtrace of each K-th object).",
    },
    {
        .name = "pool-option", .arg = "KEY=VALUE",
        .take = TAKE_POOL_OPTION, .is_of_process = true,
        .help = "sweep=TIME, release=drop|keep, cap=BYTES or stacks=age|drop|keep; repeat for more. kiln "
                "pools changes them while the mount lives",
        .manual = "Set an option of the memory pools. Repeat it for more options.\n"
                  ".RS\n"
                  ".TP\n"
                  ".BI sweep= TIME\n"
                  "Period of the sweeper, for example\n"
                  ".B 500ms\n"
                  "or\n"
                  ".BR 10s ;\n"
                  "0 disables it. Memory that is idle for two periods returns to the system.\n"
                  ".TQ\n"
                  ".BR release=drop | keep\n"
                  "Return empty spans of pages to the system, or keep them mapped.\n"
                  ".TQ\n"
                  ".BI cap= BYTES\n"
                  "Bound the bytes that the whole process caches, for example\n"
                  ".BR 64M ;\n"
                  "0 means no bound.\n"
                  ".TQ\n"
                  ".BR stacks=age | drop | keep\n"
                  "Return unused coroutine stacks at each sweep, at each release, or only when memory is "
                  "trimmed.\n"
                  ".RE\n"
                  ".IP\n"
                  ".B kiln pools\n"
                  "changes these options while the process runs.",
    },
    {
        .name = "print-manual",
        .take = TAKE_MANUAL, .is_of_process = true,
    },

    /* refused by name, because they would change the behaviour that users see */
    REFUSED(OPTION_NOT_BUILT, "aux-gfid-mount", "VALUE", "aux-gfid-mount"),
    REFUSED(OPTION_NOT_BUILT, "worm", "VALUE", "worm"),
    REFUSED(OPTION_NOT_BUILT, "selinux", "VALUE", "selinux"),
    REFUSED(OPTION_NOT_BUILT, "capability", "VALUE", "capability"),
    REFUSED(OPTION_NOT_BUILT, "dump-fuse", "VALUE", "dump-fuse"),
    REFUSED(OPTION_NOT_BUILT, "socket-file", "VALUE", NULL),
    REFUSED(OPTION_NOT_BUILT, "print-exports", "VALUE", NULL),
    REFUSED(OPTION_NOT_BUILT, "print-netgroups", "VALUE", NULL),
    REFUSED(OPTION_UNLESS_OFF, "enable-ino32", "BOOL", "enable-ino32"),
    REFUSED(OPTION_UNLESS_OFF, "no-root-squash", "BOOL", "no-root-squash"),

    /* accepted, because they only tune the internals of the stock client */
    NO_EFFECT("attr-times-granularity", "NS", "attr-times-granularity"),
    NO_EFFECT_BOOL("auto-invalidation", "auto-invalidation"),
    NO_EFFECT("background-qlen", "N", "background-qlen"),
    NO_EFFECT("brick-mux", NULL, NULL),
    NO_EFFECT("congestion-threshold", "N", "congestion-threshold"),
    NO_EFFECT_BOOL("event-history", "event-history"),
    NO_EFFECT_BOOL("fopen-keep-cache", "fopen-keep-cache"),
    NO_EFFECT("fuse-dev-eperm-ratelimit-ns", "NS", "fuse-dev-eperm-ratelimit-ns"),
    NO_EFFECT_BOOL("fuse-flush-handle-interrupt", "fuse-flush-handle-interrupt"),
    NO_EFFECT("gid-timeout", "SECONDS", "gid-timeout"),
    NO_EFFECT_BOOL("global-threading", "global-threading"),
    NO_EFFECT_BOOL("global-timer-wheel", NULL),
    NO_EFFECT("halo-max-latency", "MS", NULL),
    NO_EFFECT("halo-max-replicas", "N", NULL),
    NO_EFFECT("halo-min-replicas", "N", NULL),
    NO_EFFECT("inode-table-size", "N", "inode-table-size"),
    NO_EFFECT("invalidate-limit", "N", "invalidate-limit"),
    NO_EFFECT("io-engine", "ENGINE", "io-engine"),
    NO_EFFECT("localtime-logging", NULL, "localtime-logging"),
    NO_EFFECT("log-buf-size", "N", NULL),
    NO_EFFECT("log-flush-timeout", "SECONDS", NULL),
    NO_EFFECT("log-format", "FORMAT", NULL),
    NO_EFFECT("logger", "LOGGER", NULL),
    NO_EFFECT("lru-limit", "N", "lru-limit"),
    NO_EFFECT_BOOL("mac-compat", NULL),
    NO_EFFECT("mem-accounting", NULL, "mem-accounting"),
    NO_EFFECT("oom-score-adj", "N", "oom-score-adj"),
    NO_EFFECT("process-name", "NAME", "process-name"),
    NO_EFFECT("reader-thread-count", "N", "reader-thread-count"),
    /* requests always carry all groups of the process that fit */
    NO_EFFECT("resolve-gids", NULL, "resolve-gids"),
    NO_EFFECT("thin-client", NULL, "thin-client"),
    NO_EFFECT_BOOL("use-readdirp", "use-readdirp"),
    NO_EFFECT("volfile-check", NULL, "volfile-check"),
    NO_EFFECT("volfile-max-fetch-attempts", "N", "fetch-attempts"),
    {0},
};
/* clang-format on */
