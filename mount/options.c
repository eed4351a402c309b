/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-mount's command line. The options have the names of the stock client. Options that Kiln does not
 * have are refused by name. */
#include <config.h>

#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coro/pool-control.h"
#include "mount/kiln-mount.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/transport/tls-config.h"
#include "volumes/front.h"

const char *argp_program_version = "kiln-mount " PACKAGE_VERSION;

enum {
    KEY_ATTR_TIMEOUT = 0x100,
    KEY_ENTRY_TIMEOUT,
    KEY_NEGATIVE_TIMEOUT,
    KEY_HARD,
    KEY_DIRECT_IO,
    KEY_WRITES_BACK,
    KEY_ACL,
    KEY_READ_ONLY,
    KEY_SECURE,
    KEY_SANDBOX,
    KEY_FS_NAME,
    KEY_DUMP_DIR,
    KEY_POOLS,
    KEY_POOL_OPTION,
    KEY_XLATOR,
    KEY_VOLUME,
    KEY_SERVER_PORT,
    KEY_TRANSPORT,
    KEY_SUBDIR,
    KEY_KERNEL,
    KEY_SHARED,
    KEY_SERVE,
    KEY_INSIDE,
    KEY_DEBUG,
    KEY_CLIENT_PID,
    KEY_TOP,
    KEY_NOT_BUILT,
    KEY_UNLESS_OFF,
    KEY_NO_EFFECT,
};

enum { GROUP_NO_EFFECT = 1 };

/* Options of the stock client that change the behaviour that users see. kiln-mount refuses these by name. */
#define NOT_BUILT(long_name) {long_name, KEY_NOT_BUILT, "VALUE", OPTION_ARG_OPTIONAL | OPTION_HIDDEN, NULL, 0}
/* kiln-mount refuses these options too, except with the value "no", which is Kiln's behaviour anyway. */
#define UNLESS_OFF(long_name)                                                                                \
    {                                                                                                        \
        long_name, KEY_UNLESS_OFF, "BOOL", OPTION_ARG_OPTIONAL | OPTION_HIDDEN, NULL, 0                      \
    }
/* Options that only tune the internals of the stock client. kiln-mount ignores these options. */
#define NO_EFFECT(long_name) {long_name, KEY_NO_EFFECT, NULL, 0, NULL, GROUP_NO_EFFECT}
#define NO_EFFECT_OF(long_name, arg) {long_name, KEY_NO_EFFECT, arg, 0, NULL, GROUP_NO_EFFECT}
#define NO_EFFECT_OF_BOOL(long_name)                                                                         \
    {                                                                                                        \
        long_name, KEY_NO_EFFECT, "BOOL", OPTION_ARG_OPTIONAL, NULL, GROUP_NO_EFFECT                         \
    }

static const struct argp_option table[] = {
    {"volfile", 'f', "FILE", 0, "read the client volfile from FILE", 0},
    {"volfile-server", 's', "HOST", 0,
     "fetch the volfile from the glusterd of HOST; repeat for fallback servers", 0},
    {"volfile-server-port", KEY_SERVER_PORT, "PORT", 0, "port of that glusterd (24007)", 0},
    {"volfile-server-transport", KEY_TRANSPORT, "tcp", 0, "transport to glusterd: tcp, or its synonym socket",
     0},
    {"volfile-id", KEY_VOLUME, "VOLUME", 0, "name of the volume at glusterd", 0},
    {"subdir-mount", KEY_SUBDIR, "/DIR", 0, "mount this directory of the volume", 0},
    {"volume-name", KEY_TOP, "NAME", 0, "expected name of the top volume in the volfile; refuse any other",
     0},
    {"client-pid", KEY_CLIENT_PID, "N", 0,
     "send this process id to bricks for all callers; negative ids mark internal programs of GlusterFS", 0},
    {"debug", KEY_DEBUG, NULL, 0, "stay in the foreground, log level DEBUG, log to standard error", 0},
    {"foreground", 'N', NULL, 0, "stay in the foreground", 0},
    {"no-daemon", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"log-file", 'l', "FILE", 0,
     "log to FILE (default: a file named after the mount point in /var/log/glusterfs, or in "
     "/var/log/kiln/mount if that folder is missing; in the foreground standard error)",
     0},
    {"log-level", 'L', "LEVEL", 0, "TRACE, DEBUG, INFO (default), WARNING, ERROR, CRITICAL or NONE", 0},
    {"pid-file", 'p', "FILE", 0, "write the process id to FILE and keep FILE locked", 0},
    {"attribute-timeout", KEY_ATTR_TIMEOUT, "SECONDS", 0, "how long the kernel caches attributes (1)", 0},
    {"entry-timeout", KEY_ENTRY_TIMEOUT, "SECONDS", 0, "how long the kernel caches names (1)", 0},
    {"negative-timeout", KEY_NEGATIVE_TIMEOUT, "SECONDS", 0,
     "how long the kernel caches that a name does not exist (0)", 0},
    {"hard", KEY_HARD, "SECONDS", 0,
     "how long calls wait for bricks that were lost, counted from the loss of the last brick, before they "
     "fail with ENOTCONN; 0: not at all (60)",
     0},
    {"direct-io-mode", KEY_DIRECT_IO, "MODE", OPTION_ARG_OPTIONAL,
     "enable: all reads and writes bypass the page cache; disable: none do; auto (default): only those of "
     "files that are open for appending",
     0},
    {"kernel-writeback-cache", KEY_WRITES_BACK, "BOOL", OPTION_ARG_OPTIONAL,
     "let the kernel keep written data until fsync or close; only for files that no other client writes (no)",
     0},
    {"acl", KEY_ACL, NULL, 0, "enable POSIX ACLs", 0},
    {"shared", KEY_SHARED, NULL, 0, "serve all shared mounts from one process", 0},
    {"serve", KEY_SERVE, NULL, 0,
     "be the process of the shared mounts, without a mount of its own yet, and take back the mounts of such "
     "a process "
     "that was killed: for kiln-mount.service",
     0},
    {"inside", KEY_INSIDE, "SOCKET", OPTION_ARG_OPTIONAL,
     "have kilnd mount the volume in its own process; SOCKET is the path of kilnd's management socket "
     "("
     FRONT_SOCKET ")",
     0},
    {"read-only", KEY_READ_ONLY, NULL, 0, "refuse changes", 0},
    {"fuse-mountopts", KEY_KERNEL, "OPTION", 0,
     "mount options for the kernel: nodev, nosuid, noexec, noatime, nodiratime, relatime, strictatime, sync, "
     "dirsync",
     0},
    {"fs-name", KEY_FS_NAME, "NAME", 0,
     "source to show in the mount table (HOST:/VOLUME, or the path of the volfile)", 0},
    {"fs-display-name", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"statedump-dir", KEY_DUMP_DIR, "DIR", 0, "folder for statedumps (/var/run/gluster)", 0},
    {"secure-mgmt", KEY_SECURE, "BOOL", OPTION_ARG_OPTIONAL,
     "encrypt the connection to glusterd (default: on if /var/lib/glusterd/secure-access exists)", 0},
    {"sandbox", KEY_SANDBOX, "MODE", 0,
     "on (default): give up the capabilities and system calls that kiln-mount does not need; log: only have "
     "the kernel's audit log list the calls; off: keep all",
     0},
    {"pools", KEY_POOLS, "MODE", 0, "memory pools: on, off, poison or trace:K", 0},
    {"pool-option", KEY_POOL_OPTION, "KEY=VALUE", 0,
     "sweep=TIME, release=drop|keep, cap=BYTES or stacks=age|drop|keep; repeat for more. kiln pools "
     "changes them while the mount lives",
     0},
    {"xlator-option", KEY_XLATOR, "PATTERN.KEY=VALUE", 0,
     "set an option of the layers whose names match; overrides the volfile", 0},
    NOT_BUILT("aux-gfid-mount"),
    NOT_BUILT("worm"),
    NOT_BUILT("selinux"),
    NOT_BUILT("capability"),
    NOT_BUILT("dump-fuse"),
    NOT_BUILT("socket-file"),
    NOT_BUILT("print-exports"),
    NOT_BUILT("print-netgroups"),
    UNLESS_OFF("enable-ino32"),
    UNLESS_OFF("no-root-squash"),
    {NULL, 0, NULL, 0, "Options of the stock client, accepted without effect:", GROUP_NO_EFFECT},
    NO_EFFECT_OF("attr-times-granularity", "NS"),
    NO_EFFECT_OF_BOOL("auto-invalidation"),
    NO_EFFECT_OF("background-qlen", "N"),
    NO_EFFECT("brick-mux"),
    NO_EFFECT_OF("congestion-threshold", "N"),
    NO_EFFECT_OF_BOOL("event-history"),
    NO_EFFECT_OF_BOOL("fopen-keep-cache"),
    NO_EFFECT_OF("fuse-dev-eperm-ratelimit-ns", "NS"),
    NO_EFFECT_OF_BOOL("fuse-flush-handle-interrupt"),
    NO_EFFECT_OF("gid-timeout", "SECONDS"),
    NO_EFFECT_OF_BOOL("global-threading"),
    NO_EFFECT_OF_BOOL("global-timer-wheel"),
    NO_EFFECT_OF("halo-max-latency", "MS"),
    NO_EFFECT_OF("halo-max-replicas", "N"),
    NO_EFFECT_OF("halo-min-replicas", "N"),
    NO_EFFECT_OF("invalidate-limit", "N"),
    NO_EFFECT_OF("io-engine", "ENGINE"),
    NO_EFFECT("localtime-logging"),
    NO_EFFECT_OF("log-buf-size", "N"),
    NO_EFFECT_OF("log-flush-timeout", "SECONDS"),
    NO_EFFECT_OF("log-format", "FORMAT"),
    NO_EFFECT_OF("logger", "LOGGER"),
    NO_EFFECT_OF("lru-limit", "N"),
    NO_EFFECT_OF_BOOL("mac-compat"),
    NO_EFFECT("mem-accounting"),
    NO_EFFECT_OF("oom-score-adj", "N"),
    NO_EFFECT_OF("process-name", "NAME"),
    NO_EFFECT_OF("reader-thread-count", "N"),
    NO_EFFECT("resolve-gids"), /* requests always carry all groups of the process that fit */
    NO_EFFECT("thin-client"),
    NO_EFFECT_OF_BOOL("use-readdirp"),
    NO_EFFECT("volfile-check"),
    NO_EFFECT_OF("volfile-max-fetch-attempts", "N"),
    {0},
};

/* Returns the name of the option that argp has just parsed. */
static const char *
name_given(const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];

    return word[0] == '-' || state->next < 2 ? word : state->argv[state->next - 2];
}

static void
add_xlator_option(struct mount_options *o, const char *text, struct argp_state *state)
{
    const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

    if (!equals || !equals[1])
        argp_error(state, "--xlator-option %s: expected PATTERN.KEY=VALUE", text);
    if (o->xlator_option_count == MOUNT_XLATOR_OPTIONS_MAX)
        argp_error(state, "--xlator-option is given more than %d times", MOUNT_XLATOR_OPTIONS_MAX);
    o->xlator_options[o->xlator_option_count++] = text;
}

static const char **
text_option(struct mount_options *o, int key)
{
    switch (key) {
    case 'f': return &o->volfile;
    case 'l': return &o->log_path;
    case 'L': return &o->log_level;
    case 'p': return &o->pid_path;
    case KEY_ATTR_TIMEOUT: return &o->attr_timeout;
    case KEY_ENTRY_TIMEOUT: return &o->entry_timeout;
    case KEY_NEGATIVE_TIMEOUT: return &o->negative_timeout;
    case KEY_HARD: return &o->hard;
    case KEY_FS_NAME: return &o->source;
    case KEY_VOLUME: return &o->volume;
    case KEY_SUBDIR: return &o->subdir;
    case KEY_DUMP_DIR: return &o->dump_dir;
    case KEY_POOLS: return &o->pools_mode;
    case KEY_CLIENT_PID: return &o->client_pid;
    case KEY_TOP: return &o->top;
    default: return NULL;
    }
}

static char *
own_text(struct mount_options *o, char *text, struct argp_state *state)
{
    size_t i = 0;

    if (!text)
        argp_failure(state, EXIT_FAILURE, 0, "no memory");
    while (o->owned[i])
        i++;
    return o->owned[i] = text;
}

static void
add_server(struct mount_options *o, const char *host, struct argp_state *state)
{
    if (!*host)
        argp_error(state, "a volfile server's name is missing");
    if (o->server_count == SPEC_SERVERS_MAX)
        argp_error(state, "more than %d volfile servers", SPEC_SERVERS_MAX);
    o->servers[o->server_count++] = host;
}

/* Servers in the source of the mount come before servers in options. */
static void
add_source_servers(struct mount_options *o, char *hosts, struct argp_state *state)
{
    const char *others[SPEC_SERVERS_MAX];
    unsigned count = o->server_count;
    char *host;

    memcpy(others, o->servers, sizeof others);
    o->server_count = 0;
    while ((host = strsep(&hosts, ",")))
        add_server(o, host, state);
    for (unsigned i = 0; i < count; i++)
        add_server(o, others[i], state);
}

/* Parses HOST[,HOST...]:[/]VOLUME[/DIR], or the path of a volfile. Options about the volume take
 * precedence. */
static void
take_source(struct mount_options *o, const char *arg, struct argp_state *state)
{
    const char *colon = strstr(arg, ":/");

    colon = colon ? colon : strrchr(arg, ':');
    if (!colon || !colon[1]) {
        o->volfile = arg;
        return;
    }
    add_source_servers(o, own_text(o, strndup(arg, (size_t)(colon - arg)), state), state);
    char *volume = own_text(o, strdup(colon + 1), state), *dir = strchr(volume + 1, '/');

    if (dir && dir[1] && !o->subdir)
        o->subdir = own_text(o, strdup(dir), state);
    if (dir)
        *dir = '\0';
    o->volume = o->volume ? o->volume : volume;
    o->source = o->source ? o->source : arg;
}

/* Builds the source for the mount table if options named the volume. */
static void
name_source(struct mount_options *o, struct argp_state *state)
{
    char *text;

    if (o->source || !o->server_count || o->is_service)
        return;
    if (asprintf(&text, "%s:%s%s%s", o->servers[0], o->volume[0] == '/' ? "" : "/", o->volume,
                 o->subdir ? o->subdir : "") < 0)
        text = NULL;
    o->source = own_text(o, text, state);
}

static void
check_options(struct mount_options *o, struct argp_state *state)
{
    if (o->is_service && (o->volfile || o->server_count || o->mountpoint))
        argp_error(state, "--serve takes no volume and no mount point");
    if (o->is_service)
        return;
    if (!o->volfile && !o->server_count)
        argp_error(
            state,
            "the volume is missing: expected HOST:/VOLUME, -f VOLFILE, or -s HOST --volfile-id VOLUME");
    if (o->volfile && o->server_count)
        argp_error(state, "-f VOLFILE and a volfile server exclude each other");
    if (o->server_count && (!o->volume || !*o->volume))
        argp_error(state, "--volfile-id VOLUME is missing");
    if (o->subdir && o->subdir[0] != '/')
        argp_error(state, "--subdir-mount %s: expected an absolute path", o->subdir);
    if (!o->mountpoint)
        argp_error(state, "the mount point is missing");
}

/* The arguments are the mount point, or the source and the mount point. */
static void
take_argument(struct mount_options *o, const char *arg, struct argp_state *state)
{
    if (o->mountpoint && (o->volfile || state->arg_num > 1))
        argp_error(state, "unexpected argument '%s': expected one mount point", arg);
    if (o->mountpoint)
        take_source(o, o->mountpoint, state);
    o->mountpoint = arg;
}

static void
take_port(struct mount_options *o, const char *arg, struct argp_state *state)
{
    char *end;
    unsigned long port = strtoul(arg, &end, 10);

    if (end == arg || *end || port < 1 || port > 65535)
        argp_error(state, "--volfile-server-port %s: expected a port, a number from 1 to 65535", arg);
    o->server_port = (unsigned)port;
}

static bool
is_word_in(const char *word, const char *const *words)
{
    while (*words && strcasecmp(word, *words) != 0)
        words++;
    return *words;
}

static const char *const on_words[] = {"on", "yes", "true", "enable", "1", NULL};
static const char *const off_words[] = {"off", "no", "false", "disable", "0", NULL};

/* Like the stock client, accepts a boolean too, and the option without a value as `enable`. */
static const char *
direct_io_mode(const char *arg)
{
    if (!arg || is_word_in(arg, on_words))
        return "enable";
    return is_word_in(arg, off_words) ? "disable" : arg;
}

static error_t
take_other_option(int key, char *arg, struct argp_state *state)
{
    struct mount_options *o = state->input;

    switch (key) {
    case 'N':
        o->is_foreground = true;
        break;
    case 's':
        add_server(o, arg, state);
        break;
    case KEY_SERVER_PORT:
        take_port(o, arg, state);
        break;
    case KEY_TRANSPORT:
        if (strcmp(arg, "tcp") != 0 && strcmp(arg, "socket") != 0)
            argp_error(state, "--volfile-server-transport %s is not built: expected tcp", arg);
        break;
    case KEY_ACL:
        o->acl = true;
        break;
    case KEY_SHARED:
        o->is_shared = true;
        break;
    case KEY_SERVE:
        o->is_service = o->is_shared = true;
        break;
    case KEY_INSIDE:
        o->inside = arg ? arg : FRONT_SOCKET;
        o->is_inside = true;
        break;
    case KEY_READ_ONLY:
        o->is_read_only = true;
        break;
    case KEY_SECURE:
        o->is_secure_given = o->is_secure = true;
        if (arg && tls_management_word(arg, &o->is_secure))
            argp_error(state, "--secure-mgmt %s: expected on or off", arg);
        break;
    case KEY_SANDBOX:
        o->is_sandbox_given = true;
        if (sandbox_mode_parse(arg, &o->sandbox))
            argp_error(state, "--sandbox %s: expected on, off or log", arg);
        break;
    case KEY_POOL_OPTION:
        if (pool_control_set(arg))
            argp_error(state, "--pool-option %s: expected %s", arg, pool_control_expected(arg));
        break;
    case KEY_XLATOR:
        add_xlator_option(o, arg, state);
        break;
    case KEY_KERNEL:
        if (o->kernel_option_count == MOUNT_KERNEL_OPTIONS_MAX)
            argp_error(state, "--fuse-mountopts is given more than %d times", MOUNT_KERNEL_OPTIONS_MAX);
        o->kernel_options[o->kernel_option_count++] = arg;
        break;
    case KEY_DEBUG:
        o->is_foreground = true;
        o->log_level = "DEBUG";
        o->log_path = "-";
        break;
    case KEY_DIRECT_IO:
        o->direct_io = direct_io_mode(arg);
        break;
    case KEY_WRITES_BACK:
        o->writes_back = arg ? arg : "on";
        break;
    case KEY_NO_EFFECT:
        break;
    case KEY_UNLESS_OFF:
        if (arg && is_word_in(arg, off_words))
            break;
        __attribute__((fallthrough));
    case KEY_NOT_BUILT:
        argp_error(state, "%s is not built", name_given(state));
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

static error_t
take_option(int key, char *arg, struct argp_state *state)
{
    struct mount_options *o = state->input;
    const char **text = text_option(o, key);

    if (text) {
        *text = arg;
        return 0;
    }
    switch (key) {
    case ARGP_KEY_ARG:
        take_argument(o, arg, state);
        return 0;
    case ARGP_KEY_END:
        check_options(o, state);
        name_source(o, state);
        return 0;
    default:
        return take_other_option(key, arg, state);
    }
}

void
mount_options_parse(struct mount_options *o, int argc, char **argv, int bad_option_status)
{
    static const struct argp argp = {
        .options = table,
        .parser = take_option,
        .args_doc = "HOST:/VOLUME[/DIR] MOUNTPOINT\nMOUNTPOINT",
        .doc = "Mounts a GlusterFS volume."
               "\vReturns when the mount is ready, and serves it in the background. Signals: TERM and INT "
               "unmount "
               "and exit 0; HUP reopens the log and fetches the volfile again; USR1 writes a statedump.\n"
               "Exit status: 0; 1 the mount failed; 32 a volume is mounted there already; 64 wrong command "
               "line.",
    };

    *o = (struct mount_options){.server_port = GLUSTERD_PORT};
    argp_err_exit_status = bad_option_status;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}
