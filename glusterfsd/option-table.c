/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "glusterfsd/option-table.h"

#include "daemon/daemon.h"
#include "glusterfsd/config.h"
#include "glusterfsd/kilnd.h"
#include "volumes/front.h"

#define AT(member) offsetof(struct kilnd_options, member)
#define TEXT(member) .take = TAKE_TEXT, .at = AT(member)
#define FLAG(member) .take = TAKE_FLAG, .at = AT(member)
#define PORT(member) .take = TAKE_PORT, .at = AT(member)
#define IGNORED(long_name, value)                                                                            \
    {                                                                                                        \
        .name = (long_name), .take = TAKE_IGNORED, .arg = (value), .is_of_command_line = true                \
    }

/* clang-format off */
const struct kilnd_option kilnd_option_rows[] = {
    {
        .name = "volfile", .letter = 'f', .arg = "FILE",
        .take = TAKE_VOLFILE, .is_of_command_line = true,
        .help = "Volfile of a brick; repeat for more bricks",
        .manual = "The volfile of a brick. Repeat the option for more bricks. A process with\n"
                  ".B -S\n"
                  "may start without a volfile.",
    },
    {
        .name = "brick-name", .arg = "PATH",
        .take = TAKE_BRICK_NAME, .is_of_command_line = true,
        .help = "Name of the brick of the n-th volfile (default: the volfile's own)",
        .manual = "The name of the brick of the n-th volfile, in place of the name in the file.",
    },
    {
        .name = "brick-port", .arg = "PORT",
        PORT(port),
        .help = "TCP port; 0: any free port (default: the volfile's, else 49152)",
        .manual = "The TCP port; 0 selects any free port. Default: option\n"
                  ".I transport.socket.listen-port\n"
                  "of the first volfile, else 49152.",
    },
    {
        .name = "port-file", .arg = "FILE",
        TEXT(port_path), .is_of_command_line = true,
        .help = "Write the port to FILE once kilnd listens",
        .manual = "Write the port to this file once kilnd listens. kilnd removes the file when it stops.",
    },
    {
        .name = "socket-file", .letter = 'S', .arg = "FILE",
        TEXT(socket_path), .is_of_command_line = true,
        .help = "Unix socket for requests of glusterd: attach, terminate, status, profile, top, barrier",
        .manual = "The unix socket for requests of glusterd: attach and terminate bricks, status, "
                  "profile, top, barrier. Only root may connect. A process\n"
                  "with this socket may start without a brick.",
    },
    {
        .name = "volfile-server", .letter = 's', .arg = "HOST",
        TEXT(server), .is_of_command_line = true,
        .help = "Fetch the volfile from the glusterd of HOST, and follow its changes",
        .manual = "Fetch the volfile from the glusterd of this host, follow its changes, and report the "
                  "port of the brick to glusterd. Needs\n"
                  ".BR --volfile-id ,\n"
                  ".BR --brick-name ,\n"
                  ".B --brick-port\n"
                  "and\n"
                  ".BR -S .",
    },
    {
        .name = "volfile-server-port", .arg = "PORT",
        PORT(server_port), .is_of_command_line = true,
        .help = "Port of that glusterd (default: 24007)",
        .manual = "The port of that glusterd. Default: 24007.",
    },
    {
        .name = "volfile-server-transport", .arg = "WORD",
        .take = TAKE_SERVER_TRANSPORT, .is_of_command_line = true,
        .help = "Transport to that glusterd: socket (default), or unix; with unix, HOST is a path",
        .manual = ".B socket\n"
                  "(default), or\n"
                  ".BR unix ;\n"
                  "with unix, HOST is the path of a socket.",
    },
    {
        .name = "secure-mgmt", .arg = "BOOL", .arg_may_lack = true,
        .take = TAKE_SECURE,
        .help = "Encrypt connections to glusterd and of clients that ask for volfiles (default: on if "
                "/var/lib/glusterd/secure-access exists)",
        .manual = "Encrypt the connection to glusterd, and with\n"
                  ".B --state\n"
                  "the connections of clients that ask for volfiles, with the certificate files "
                  "glusterfs.pem, glusterfs.key and\n"
                  "glusterfs.ca in /usr/lib/ssl or /etc/ssl.\n"
                  "The default is on if /var/lib/glusterd/secure-access exists.",
    },
    {
        .name = "volfile-id", .arg = "ID",
        TEXT(volfile_id), .is_of_command_line = true,
        .help = "Name of the volfile at that glusterd",
        .manual = "The name of the volfile at glusterd.",
    },
    {
        .name = "check",
        FLAG(is_check), .is_of_command_line = true,
        .help = "Serve nothing: print why kilnd would not start the bricks of these volfiles, or without "
                "which feature, and exit with status 1 if a brick would not start",
        .manual = "Serve nothing. For each volfile of\n"
                  ".B -f\n"
                  "whose brick kilnd would not start, or would serve without a feature, print a line with "
                  "the reason. The exit status is 1 if a brick would not\n"
                  "start.",
    },
    {
        .name = "upgrade-check",
        FLAG(is_upgrade_check),
        .help = "Serve nothing: read the options, print the format of the state that this program can "
                "take over from a running kilnd, and exit (kiln upgrade runs this)",
        .manual = "Serve nothing: read the options, print the format of the state that this program can "
                  "take over from a running kilnd,\n"
                  "and exit.\n"
                  ".B kiln upgrade\n"
                  "runs the new program with this option first.",
    },
    {
        .name = "config", .arg = "FILE",
        TEXT(config_path), .is_of_command_line = true,
        .help = "Read further options from FILE (default: "
                CONFIG_PATH
                ", if that file exists); the command line wins",
        .manual = "Read further options from this file. Default: /etc/kiln/kilnd.conf, if that file "
                  "exists. See CONFIGURATION FILE.",
    },
    {
        .name = "log-file", .letter = 'l', .arg = "FILE",
        TEXT(log_path),
        .help = "Log to FILE (default: stderr, in the background "
                DAEMON_LOG_DIR
                "/kilnd.log)",
        .manual = "Log to this file. Default: standard error; in the background /var/log/kiln/kilnd.log.",
    },
    {
        .name = "log-level", .letter = 'L', .arg = "LEVEL",
        .take = TAKE_LOG_LEVEL, .at = AT(log_level),
        .help = "CRITICAL, ERROR, WARNING, INFO (default), DEBUG or TRACE",
        .manual = "CRITICAL, ERROR, WARNING, INFO (default), DEBUG or TRACE. The level applies to the "
                  "process, and to bricks whose\n"
                  ".I diagnostics.brick-log-level\n"
                  "is INFO, the default of that option.",
    },
    {
        .name = "pid-file", .letter = 'p', .arg = "FILE",
        TEXT(pid_path),
        .help = "Write the process id to FILE and keep FILE locked",
        .manual = "Write the process id to this file, and hold a lock on the file while kilnd runs.",
    },
    {
        .name = "no-daemon", .letter = 'N',
        FLAG(is_foreground), .is_of_command_line = true,
        .help = "Stay in the foreground",
        .manual = "Stay in the foreground. Without this option the command goes into the background and "
                  "returns once kilnd serves the bricks, or with\n"
                  "the reason why it cannot.",
    },
    {
        .name = "debug",
        .take = TAKE_DEBUG, .is_of_command_line = true,
        .help = "Stay in the foreground, log level DEBUG, log to stderr",
        .manual = "Stay in the foreground, set log level DEBUG and log to standard error.",
    },
    {
        .name = "statedump-dir", .arg = "DIR",
        TEXT(dump_dir),
        .help = "Folder for statedumps (default: the volfile's statedump-path, else /var/run/gluster; "
                "with --state "
                FRONT_SOCKET_DIR
                ")",
        .manual = "The folder for statedumps (SIGUSR1). Default: option\n"
                  ".I statedump-path\n"
                  "of the first volfile, else /var/run/gluster; with --state /run/kiln.",
    },
    {
        .name = "state", .arg = "DIR", .arg_may_lack = true,
        .take = TAKE_STATE, .is_of_volumes = true,
        .help = "Keep the definitions of volumes in DIR (default: "
                STATE_DIR_DEFAULT
                ") and serve these volumes without a glusterd; kiln(8) creates them",
        .manual = "Keep the definitions of volumes in this folder (default: /var/lib/kiln), and serve "
                  "these volumes without a glusterd. kilnd creates the\n"
                  "folder if it is missing;\n"
                  ".BR kiln (8)\n"
                  "creates the volumes. All bricks start with kilnd on one port: that of --brick-port, "
                  "else 49152, or any free port if 49152 is taken. If\n"
                  "a brick does not start, kilnd logs the reason and serves the others. Only one kilnd "
                  "can use a state folder; a second one exits with an\n"
                  "error. The option excludes -f, -s and -S.",
    },
    {
        .name = "store", .arg = "LOCATION",
        TEXT(shared.store.location), .is_of_volumes = true,
        .help = "Share volumes with other hosts: keep them in this store, "
                "etcd://[USER@]HOST:PORT[,HOST:PORT]..., or etcds:// for TLS. DIR of --state then has a "
                "copy for a start without the store",
        .manual = "Share volumes with other hosts through an etcd (version 3.4 or later):\n"
                  ".BR etcd:// "
                  "[\\fIUSER\\fB@\\fR]\\fIHOST\\fB:\\fIPORT\\fR[\\fB,\\fIHOST\\fB:\\fIPORT\\fR...]"
                  "[\\fB/\\fIPREFIX\\fR],\n"
                  "or\n"
                  ".B etcds://\n"
                  "for TLS. The keys begin with /PREFIX/, or with /kiln/ without PREFIX. See HOSTS THAT "
                  "SHARE A STORE. The option needs --host.",
    },
    {
        .name = "host", .arg = "NAME",
        TEXT(shared.host), .is_of_volumes = true,
        .help = "Name of this host in the store, by which other hosts and clients reach it (with --store)",
        .manual = "With --store: the name of this host, by which clients and other hosts reach its bricks.",
    },
    {
        .name = "brick-root", .arg = "DIR",
        .take = TAKE_BRICK_ROOT, .is_of_volumes = true, .is_repeatable = true,
        .help = "Offer DIR for bricks whose place kiln chooses (with --store); repeat for more",
        .manual = "With --store: offer this folder for bricks whose place kiln chooses (volume create "
                  "without bricks, host drain). Repeat the option for more\n"
                  "folders. The free space of a folder is measured once a minute.",
    },
    {
        .name = "store-password-file", .arg = "FILE",
        TEXT(shared.store.password_file), .is_of_volumes = true,
        .help = "The first line is the password of USER",
        .manual = "The first line of FILE is the password of the USER of --store.",
    },
    {
        .name = "store-ca", .arg = "FILE",
        TEXT(shared.store.ca), .is_of_volumes = true,
        .help = "Authorities of the store's certificates (default: glusterfs.ca, else the system's)",
        .manual = "With etcds://: the authorities that may have signed the certificates of the store. "
                  "Without the three options kilnd uses glusterfs.ca,\n"
                  "glusterfs.pem and glusterfs.key in /usr/lib/ssl or /etc/ssl if all are there (\\fIkiln "
                  "tls\\fR), else the authorities of the system.",
    },
    {
        .name = "store-cert", .arg = "FILE",
        TEXT(shared.store.cert), .is_of_volumes = true,
        .help = "Certificate that kilnd shows to the store and to other hosts (default: glusterfs.pem)",
        .manual = "The certificate that kilnd shows to an etcds:// store, and by which the host proves itself "
                  "to other hosts. Default: glusterfs.pem, if it is there.",
    },
    {
        .name = "store-key", .arg = "FILE",
        TEXT(shared.store.key), .is_of_volumes = true,
        .help = "Private key of that certificate",
        .manual = "The private key of that certificate. Default: glusterfs.key.",
    },
    {
        .name = "port", .arg = "PORT",
        PORT(volfile_port), .is_of_volumes = true,
        .help = "Port for volfile requests of clients (default: 24007), with --state",
        .manual = "With --state: the port at which clients fetch volfiles and ask for the port of bricks. "
                  "Default: 24007, the port of glusterd. kilnd\n"
                  "notifies connected clients when the options of their volume change.",
    },
    {
        .name = "hook-deadline", .arg = "SECONDS",
        .take = TAKE_DEADLINE, .is_of_volumes = true,
        .help = "Kill a hook script that runs longer (default: 30), with --state",
        .manual = "With --state: kill a hook script of the state folder that runs longer, with all its "
                  "children. Default: 30.",
    },
    {
        .name = "management-socket", .arg = "FILE",
        TEXT(management_path),
        .help = "Answer HTTP requests on this unix socket, which only root and kilnd's user may open "
                "(default: none, with --state "
                FRONT_SOCKET
                ")",
        .manual = "Answer HTTP requests on this unix socket, which only root and kilnd's user may open. "
                  "Default: none; with --state\n"
                  ".IR /run/kiln/kilnd.socket .\n"
                  "The file of the package names this socket for all. See HTTP INTERFACE.",
    },
    {
        .name = "metrics-address", .arg = "HOST:PORT",
        .take = TAKE_METRICS, .at = AT(metrics_address),
        .help = "Answer /metrics, /healthz and /readyz over HTTP at this address, without a password "
                "(default: none)",
        .manual = "Answer public HTTP requests on this address, for example\n"
                  ".I 127.0.0.1:9421\n"
                  "or\n"
                  ".IR [::]:9421 .\n"
                  "Default: none.",
    },
    {
        .name = "strict-features",
        FLAG(is_strict),
        .help = "Refuse a brick whose volume needs a feature that is not built (default: serve the brick "
                "without the feature and log an error). KILND_STRICT_FEATURES=1 in the environment has "
                "the same effect",
        .manual = "Refuse to start a brick whose volume needs a feature that Kiln does not have (quota, "
                  "bitrot, changelog, leases and others: doc/options.md),\n"
                  "and refuse to enable such a feature on a running brick. Without this option kilnd "
                  "serves the brick without the feature and reports an\n"
                  "error in the log, in\n"
                  ".BR \"kiln top\" ,\n"
                  "in the statedump and in /metrics. The environment variable\n"
                  ".B KILND_STRICT_FEATURES=1\n"
                  "has the same effect, and reaches bricks that glusterd starts.",
    },
    {
        .name = "inside-mounts",
        FLAG(takes_mounts),
        .help = "Mount volumes in this process for \"kiln mount -o inside\"; needs a management socket "
                "(default: take no mounts)",
        .manual = "Mount volumes in this process, for\n"
                  ".IR \"kiln mount -o inside\" :\n"
                  "see the chapter INSIDE MOUNTS of kiln-mount's manual page.\n"
                  "Needs a management socket that no other kilnd has. Without this option kilnd takes no "
                  "mounts, and the sandbox allows none.\n"
                  "The mounts go on through\n"
                  ".IR \"kiln upgrade\" .",
    },
    {
        .name = "no-compound",
        FLAG(no_compound),
        .help = "Offer clients no records with several calls (default: offer them; only Kiln's clients send "
                "them)",
        .manual = "Offer clients no records with several calls. By default kilnd offers them, because a "
                  "small file then takes fewer messages. Only\n"
                  "Kiln's clients send such records; see the option compound of kiln-mount's manual page.",
    },
    {
        .name = "sandbox", .arg = "MODE",
        .take = TAKE_SANDBOX,
        .help = "on (default): give up the capabilities and system calls that kilnd does not need; log: "
                "only have the kernel's audit log list the calls; off: keep all",
        .manual = ".B on\n"
                  "(default): give up the capabilities and the system calls that kilnd does not need.\n"
                  ".BR log :\n"
                  "have the kernel's audit log list the calls that\n"
                  ".B on\n"
                  "would refuse, and refuse none.\n"
                  ".BR off :\n"
                  "keep all. See SANDBOX.",
    },
    {
        .name = "process-name", .arg = "NAME",
        .take = TAKE_PROCESS_NAME, .is_of_command_line = true,
        .help = "Role of the process: only brick is accepted",
        .manual = "The role that glusterd starts the process for; kilnd accepts only\n"
                  ".BR brick .\n"
                  "If kilnd is installed as glusterfsd\n"
                  ".RB ( \"use-kiln.sh on\" ),\n"
                  "it runs the stock program for every other role.",
    },
    {
        .name = "pools", .arg = "MODE",
        .take = TAKE_POOLS,
        .help = "Memory pools: on, off, poison or trace:K",
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
        .take = TAKE_POOL_OPTION, .is_repeatable = true,
        .help = "sweep=TIME, release=drop|keep, cap=BYTES or stacks=age|drop|keep; repeat for more. kiln "
                "pools changes them while kilnd runs",
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
                  "changes these options while kilnd runs.",
    },
    {
        .name = "xlator-option", .arg = "PATTERN.KEY=VALUE",
        .take = TAKE_XLATOR, .is_repeatable = true,
        .help = "Set an option of the layers whose names match",
        .manual = "Set an option of each layer whose name matches the shell pattern. The value overrides "
                  "the volfile.",
    },

    /* options of the stock brick process: kilnd ignores these and logs a line */
    IGNORED("brick-mux", NULL),
    IGNORED("localtime-logging", NULL),
    IGNORED("mem-accounting", NULL),
    IGNORED("no-mem-accounting", NULL),
    IGNORED("global-threading", NULL),
    IGNORED("io-engine", "NAME"),
    IGNORED("logger", "NAME"),
    IGNORED("log-format", "NAME"),
    IGNORED("log-buf-size", "N"),
    IGNORED("log-flush-timeout", "N"),
    IGNORED("oom-score-adj", "N"),
    IGNORED("volume-name", "NAME"),
    IGNORED("client-pid", "N"),

    {
        .name = "print-manual",
        .take = TAKE_MANUAL, .is_of_command_line = true,
    },
    {0},
};
/* clang-format on */
