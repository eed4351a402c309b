/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coro/pool-control.h"
#include "glusterfsd/config.h"
#include "glusterfsd/http.h"
#include "glusterfsd/kilnd.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "rpc/transport/tls-config.h"
#include "volumes/front.h"
#include "volumes/volume.h"

const char *argp_program_version = "kilnd " PACKAGE_VERSION;

#define STATE_DIR_DEFAULT "/var/lib/kiln"

enum {
    KEY_BRICK_NAME = 256,
    KEY_BRICK_PORT,
    KEY_PORT_FILE,
    KEY_DUMP_DIR,
    KEY_POOLS,
    KEY_POOL_OPTION,
    KEY_MANAGEMENT,
    KEY_METRICS,
    KEY_STATE,
    KEY_VOLFILE_PORT,
    KEY_HOOK_DEADLINE,
    KEY_STORE,
    KEY_HOST,
    KEY_STORE_PASSWORD,
    KEY_STORE_CA,
    KEY_STORE_CERT,
    KEY_STORE_KEY,
    KEY_BRICK_ROOT,
    KEY_XLATOR,
    KEY_STRICT,
    KEY_INSIDE,
    KEY_PROCESS_NAME,
    KEY_VOLFILE_ID,
    KEY_SERVER_PORT,
    KEY_SERVER_TRANSPORT,
    KEY_DEBUG,
    KEY_SECURE,
    KEY_SANDBOX,
    KEY_CONFIG,
    KEY_CHECK,
    KEY_UPGRADE_CHECK,
    KEY_IGNORED,
    KEYS
};

static const struct argp_option table[] = {
    {"volfile", 'f', "FILE", 0, "Volfile of a brick; repeat for more bricks", 0},
    {"brick-name", KEY_BRICK_NAME, "PATH", 0,
     "Name of the brick of the n-th volfile (default: the volfile's own)", 0},
    {"brick-port", KEY_BRICK_PORT, "PORT", 0,
     "TCP port; 0: any free port (default: the volfile's, else 49152)", 0},
    {"port-file", KEY_PORT_FILE, "FILE", 0, "Write the port to FILE once kilnd listens", 0},
    {"socket-file", 'S', "FILE", 0,
     "Unix socket for requests of glusterd: attach, terminate, status, profile, top, barrier", 0},
    {"volfile-server", 's', "HOST", 0, "Fetch the volfile from the glusterd of HOST, and follow its changes",
     0},
    {"volfile-id", KEY_VOLFILE_ID, "ID", 0, "Name of the volfile at that glusterd", 0},
    {"volfile-server-port", KEY_SERVER_PORT, "PORT", 0, "Port of that glusterd (default: 24007)", 0},
    {"volfile-server-transport", KEY_SERVER_TRANSPORT, "WORD", 0,
     "Transport to that glusterd: socket (default), or unix; with unix, HOST is a path", 0},
    {"check", KEY_CHECK, NULL, 0,
     "Serve nothing: print why kilnd would not start the bricks of these volfiles, or without which feature, "
     "and exit with status 1 if a brick would not start",
     0},
    {"upgrade-check", KEY_UPGRADE_CHECK, NULL, 0,
     "Serve nothing: read the options, print the format of the state that this program can take over from a "
     "running kilnd, and exit (kiln upgrade runs this)",
     0},
    {"config", KEY_CONFIG, "FILE", 0,
     "Read further options from FILE (default: " CONFIG_PATH ", if that file exists); the command line wins",
     0},
    {"log-file", 'l', "FILE", 0,
     "Log to FILE (default: stderr, in the background " DAEMON_LOG_DIR "/kilnd.log)", 0},
    {"log-level", 'L', "LEVEL", 0, "CRITICAL, ERROR, WARNING, INFO (default), DEBUG or TRACE", 0},
    {"pid-file", 'p', "FILE", 0, "Write the process id to FILE and keep FILE locked", 0},
    {"no-daemon", 'N', NULL, 0, "Stay in the foreground", 0},
    {"statedump-dir", KEY_DUMP_DIR, "DIR", 0,
     "Folder for statedumps (default: the volfile's statedump-path, else /var/run/gluster; with "
     "--state " FRONT_SOCKET_DIR ")",
     0},
    {"pools", KEY_POOLS, "MODE", 0, "Memory pools: on, off, poison or trace:K", 0},
    {"pool-option", KEY_POOL_OPTION, "KEY=VALUE", 0,
     "sweep=TIME, release=drop|keep, cap=BYTES or stacks=age|drop|keep; repeat for more. kiln pools "
     "changes them while kilnd runs",
     0},
    {"state", KEY_STATE, "DIR", OPTION_ARG_OPTIONAL,
     "Keep the definitions of volumes in DIR (default: " STATE_DIR_DEFAULT
     ") and serve these volumes without a glusterd; kiln(8) creates them",
     0},
    {"port", KEY_VOLFILE_PORT, "PORT", 0,
     "Port for volfile requests of clients (default: 24007), with --state", 0},
    {"hook-deadline", KEY_HOOK_DEADLINE, "SECONDS", 0,
     "Kill a hook script that runs longer (default: 30), with --state", 0},
    {"store", KEY_STORE, "LOCATION", 0,
     "Share volumes with other hosts: keep them in this store, etcd://[USER@]HOST:PORT[,HOST:PORT]..., or "
     "etcds:// for TLS. DIR of --state then has a copy for a start without the store",
     0},
    {"host", KEY_HOST, "NAME", 0,
     "Name of this host in the store, by which other hosts and clients reach it (with --store)", 0},
    {"brick-root", KEY_BRICK_ROOT, "DIR", 0,
     "Offer DIR for bricks whose place kiln chooses (with --store); repeat for more", 0},
    {"store-password-file", KEY_STORE_PASSWORD, "FILE", 0, "The first line is the password of USER", 0},
    {"store-ca", KEY_STORE_CA, "FILE", 0, "Authorities of the store's certificates (default: the system's)",
     0},
    {"store-cert", KEY_STORE_CERT, "FILE", 0, "Certificate that kilnd shows to the store (default: none)", 0},
    {"store-key", KEY_STORE_KEY, "FILE", 0, "Private key of that certificate", 0},
    {"management-socket", KEY_MANAGEMENT, "FILE", 0,
     "Answer HTTP requests on this unix socket, which only root and kilnd's user may open (default: none, "
     "with --state " FRONT_SOCKET ")",
     0},
    {"metrics-address", KEY_METRICS, "HOST:PORT", 0,
     "Answer /metrics, /healthz and /readyz over HTTP at this address, without a password (default: none)",
     0},
    {"xlator-option", KEY_XLATOR, "PATTERN.KEY=VALUE", 0, "Set an option of the layers whose names match", 0},
    {"strict-features", KEY_STRICT, NULL, 0,
     "Refuse a brick whose volume needs a feature that is not built (default: serve the brick without the "
     "feature and log an error). KILND_STRICT_FEATURES=1 in the environment has the same effect",
     0},
    {"inside-mounts", KEY_INSIDE, NULL, 0,
     "Mount volumes in this process for \"kiln mount -o inside\"; needs a management socket (default: take "
     "no mounts)",
     0},
    {"process-name", KEY_PROCESS_NAME, "NAME", 0, "Role of the process: only brick is accepted", 0},
    {"debug", KEY_DEBUG, NULL, 0, "Stay in the foreground, log level DEBUG, log to stderr", 0},
    {"secure-mgmt", KEY_SECURE, "BOOL", OPTION_ARG_OPTIONAL,
     "Encrypt connections to glusterd and of clients that ask for volfiles (default: on if "
     "/var/lib/glusterd/secure-access exists)",
     0},
    {"sandbox", KEY_SANDBOX, "MODE", 0,
     "on (default): give up the capabilities and system calls that kilnd does not need; log: only have the "
     "kernel's audit log list the calls; off: keep all",
     0},
    /* Options of the stock brick process. kilnd ignores them and logs a line. */
    {"brick-mux", KEY_IGNORED, NULL, OPTION_HIDDEN, NULL, 0},
    {"localtime-logging", KEY_IGNORED, NULL, OPTION_HIDDEN, NULL, 0},
    {"mem-accounting", KEY_IGNORED, NULL, OPTION_HIDDEN, NULL, 0},
    {"no-mem-accounting", KEY_IGNORED, NULL, OPTION_HIDDEN, NULL, 0},
    {"global-threading", KEY_IGNORED, NULL, OPTION_HIDDEN, NULL, 0},
    {"io-engine", KEY_IGNORED, "NAME", OPTION_HIDDEN, NULL, 0},
    {"logger", KEY_IGNORED, "NAME", OPTION_HIDDEN, NULL, 0},
    {"log-format", KEY_IGNORED, "NAME", OPTION_HIDDEN, NULL, 0},
    {"log-buf-size", KEY_IGNORED, "N", OPTION_HIDDEN, NULL, 0},
    {"log-flush-timeout", KEY_IGNORED, "N", OPTION_HIDDEN, NULL, 0},
    {"oom-score-adj", KEY_IGNORED, "N", OPTION_HIDDEN, NULL, 0},
    {"volume-name", KEY_IGNORED, "NAME", OPTION_HIDDEN, NULL, 0},
    {"client-pid", KEY_IGNORED, "N", OPTION_HIDDEN, NULL, 0},
    {0},
};

static const struct argp_option *
find_option(int key)
{
    const struct argp_option *row = table;

    while (row->name && row->key != key)
        row++;
    return row;
}

/* Options on the command line, by key. */
static bool is_given[KEYS];
static struct config config; /* the values are kept in struct kilnd_options */
/* The place in the configuration file while an option of the file is taken; line 0: the command line. */
static struct {
    const char *path;
    unsigned line;
} source;

/* Ends the process because of a wrong option. glusterd does not show the standard error of bricks, so a wrong
 * line of the file goes to the log of the brick, too. */
static void __attribute__((format(printf, 2, 3), noreturn))
refuse_option(const struct argp_state *state, const char *fmt, ...)
{
    const struct kilnd_options *o = state->input;
    char text[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!source.line) {
        argp_error(state, "%s", text);
        exit(EXIT_OPTION); /* argp_error() does not return unless its caller forbids to exit */
    }
    fprintf(stderr, "%s: %s:%u: %s\n", state->name, source.path, source.line, text);
    if (is_given['l'] && log_open(o->log_path) == 0) {
        log_event(LOG_CRITICAL, NULL, "config-wrong", "%s:%u: %s", source.path, source.line, text);
        log_close();
    }
    exit(EXIT_OPTION);
}

/* Refuses the value of an option that has a name. */
static void __attribute__((noreturn))
refuse_value(const struct argp_state *state, int key, const char *value, const char *expected)
{
    refuse_option(state, "%s%s%s%s: expected %s", source.line ? "" : "--", find_option(key)->name,
                  source.line ? " = " : " ", value, expected);
}

static int
parse_port(struct argp_state *state, int key, const char *text)
{
    char *end;

    errno = 0;
    long port = strtol(text, &end, 10);
    if (errno || end == text || *end || port < 0 || port > 65535)
        refuse_value(state, key, text, "a port, a number from 0 to 65535");
    return (int)port;
}

/* A script's deadline in seconds, at most an hour. */
static unsigned
parse_deadline(struct argp_state *state, const char *text)
{
    char *end;
    long seconds = strtol(text, &end, 10);

    if (end == text || *end || seconds < 1 || seconds > 3600)
        refuse_value(state, KEY_HOOK_DEADLINE, text, "a number of seconds from 1 to 3600");
    return (unsigned)seconds;
}

/* Remembers the name of an ignored option. argp passes the key, not the word of the command line: the word is
 * the previous word, or the word before if the option has a separate argument. */
static void
note_ignored(struct kilnd_options *o, const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];

    if (strncmp(word, "--", 2) != 0 && state->next >= 2)
        word = state->argv[state->next - 2];
    if (strcmp(word, "--brick-mux") != 0 && o->ignored_count < sizeof o->ignored / sizeof o->ignored[0])
        /* every kilnd multiplexes bricks, so --brick-mux needs no warning */
        o->ignored[o->ignored_count++] = word;
}

static void
check_log_level(struct argp_state *state, const char *text)
{
    enum log_level level;

    if (log_level_parse(text, &level))
        refuse_value(state, 'L', text, "CRITICAL, ERROR, WARNING, INFO, DEBUG or TRACE");
}

static void
set_pools_option(struct argp_state *state, const char *text)
{
    int err = mem_pools_set_mode(text);

    if (err == -EINVAL)
        refuse_value(state, KEY_POOLS, text, "on, off, poison or trace:K");
    if (err)
        argp_failure(state, EXIT_FAILURE, -err, "memory pools");
}

/* --xlator-option PATTERN.KEY=VALUE is split at the first '.' and the first '=' (management 2.5). */
static void
check_xlator_option(struct argp_state *state, const char *text)
{
    const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

    if (!equals || !equals[1])
        refuse_value(state, KEY_XLATOR, text, "PATTERN.KEY=VALUE");
}

/* Returns 0 or -EINVAL. */
static int
parse_bool(const char *text, bool *is_on)
{
    static const char *const words[] = {"off", "on",  "no",      "yes",    "false",
                                        "true", "disable", "enable", "0", "1"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *is_on = i % 2 == 1;
            return 0;
        }
    }
    return -EINVAL;
}

/* A given option wins over the file secure-access. */
static void
take_secure(struct kilnd_options *o, struct argp_state *state, const char *text)
{
    o->is_secure_given = o->is_secure = true;
    if (text && tls_management_word(text, &o->is_secure))
        refuse_value(state, KEY_SECURE, text, "on or off");
}

static void
take_sandbox(struct kilnd_options *o, const struct argp_state *state, const char *text)
{
    o->is_sandbox_given = true;
    if (sandbox_mode_parse(text, &o->sandbox))
        refuse_value(state, KEY_SANDBOX, text, "on, off or log");
}

static void
check_store(struct argp_state *state, struct kilnd_options *o)
{
    const struct store_options *s = &o->shared.store;
    struct problem why;

    if (s->location && !o->shared.host)
        argp_error(state,
                   "--store needs --host NAME, the name by which other hosts and clients reach this one");
    if (!s->location &&
        (o->shared.host || s->password_file || s->ca || s->cert || s->key || o->shared.root_count))
        argp_error(state, "--host, --brick-root and --store-... need --store");
    for (unsigned i = 0; i < o->shared.root_count; i++) {
        char normal[VOLUME_BRICK_PATH_MAX + 1];

        if (volume_check_path(o->shared.roots[i], normal, &why))
            argp_error(state, "--brick-root %s: %s", o->shared.roots[i], why.wrong);
    }
    if (s->location && !o->state_dir)
        o->state_dir = STATE_DIR_DEFAULT;
    if (o->shared.host && (!*o->shared.host || volume_check_host(o->shared.host, &why)))
        argp_error(state, "--host %s: expected the name or address of a host", o->shared.host);
    o->shared.state_dir = o->state_dir;
}

static void
check_all(struct argp_state *state, struct kilnd_options *o)
{
    check_store(state, o);
    if (o->server && !o->volfile_id)
        argp_error(state, "--volfile-server needs a --volfile-id");
    if (o->server && (!o->socket_path || o->brick_name_count != 1 || o->port < 0))
        argp_error(state,
                   "--volfile-server needs -S, one --brick-name and a --brick-port, as glusterd gives them");
    if (o->server && o->volfile_count)
        argp_error(state, "-s HOST and -f FILE exclude each other");
    if (o->state_dir && (o->server || o->volfile_count || o->socket_path))
        argp_error(state, "--state excludes -f, -s and -S");
    if (o->volfile_port && !o->state_dir)
        argp_error(state, "--port needs --state");
    if (o->is_check && !o->volfile_count)
        argp_error(state, "--check needs a volfile: expected -f FILE");
    if (!o->volfile_count && !o->socket_path && !o->state_dir)
        argp_error(state, "no volfile: expected -f FILE, or -S FILE to attach bricks later, or --state DIR");
    if (!o->server && o->brick_name_count > o->volfile_count)
        argp_error(state, "more --brick-name options than volfiles");
}

static bool
is_unix(struct argp_state *state, const char *transport)
{
    bool is = strcmp(transport, "unix") == 0;

    if (!is && strcmp(transport, "socket") != 0 && strcmp(transport, "tcp") != 0)
        argp_error(state, "--volfile-server-transport %s: expected socket or unix", transport);
    return is;
}

static void
append_text(struct argp_state *state, const char ***array, unsigned *count, const char *text)
{
    if (*count == KILND_BRICKS_MAX)
        refuse_option(state, "an option is given more than %d times", KILND_BRICKS_MAX);
    const char **more = reallocarray(*array, *count + 1, sizeof *more);

    if (!more)
        argp_failure(state, EXIT_FAILURE, ENOMEM, "reading the command line");
    *array = more;
    more[(*count)++] = text;
}

/* Options whose argument is stored unchanged. */
#define KEPT(member) offsetof(struct kilnd_options, member)
static const struct {
    int key;
    size_t at;
} texts[] = {
    {KEY_STORE, KEPT(shared.store.location)},
    {KEY_STORE_PASSWORD, KEPT(shared.store.password_file)},
    {KEY_STORE_CA, KEPT(shared.store.ca)},
    {KEY_STORE_CERT, KEPT(shared.store.cert)},
    {KEY_STORE_KEY, KEPT(shared.store.key)},
    {KEY_HOST, KEPT(shared.host)},
    {KEY_PORT_FILE, KEPT(port_path)},
    {KEY_DUMP_DIR, KEPT(dump_dir)},
    {KEY_MANAGEMENT, KEPT(management_path)},
    {KEY_METRICS, KEPT(metrics_address)},
    {KEY_CONFIG, KEPT(config_path)},
    {'S', KEPT(socket_path)},
    {'s', KEPT(server)},
    {KEY_VOLFILE_ID, KEPT(volfile_id)},
    {'l', KEPT(log_path)},
    {'L', KEPT(log_level)},
    {'p', KEPT(pid_path)},
};

static bool
take_text_option(struct kilnd_options *o, int key, const char *text)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].key == key) {
            *(const char **)(void *)((char *)o + texts[i].at) = text;
            return true;
        }
    }
    return false;
}

/* The argument of --state is optional, so argp does not take it from the next word. Operators write
 * "--state DIR" though, so this takes a next word that is no option. */
static const char *
state_dir(struct argp_state *state, const char *arg)
{
    const char *next = arg || state->next >= state->argc ? NULL : state->argv[state->next];

    if (arg || !next || next[0] == '-')
        return arg ? arg : STATE_DIR_DEFAULT;
    state->next++;
    return next;
}

static void
set_pool_option(struct argp_state *state, const char *text)
{
    if (pool_control_set(text))
        refuse_value(state, KEY_POOL_OPTION, text, pool_control_expected(text));
}

/* ---- the configuration file ------------------------------------------------------------------ */

static error_t take_option(int key, char *arg, struct argp_state *state);

/* Options of a single process, and options that name its bricks: no file can give such options for all
 * processes. */
static bool
is_for_command_line(const struct argp_option *row)
{
    static const int keys[] = {'f',
                               's',
                               'S',
                               'N',
                               KEY_BRICK_NAME,
                               KEY_VOLFILE_ID,
                               KEY_SERVER_PORT,
                               KEY_SERVER_TRANSPORT,
                               KEY_PROCESS_NAME,
                               KEY_DEBUG,
                               KEY_CONFIG,
                               KEY_CHECK,
                               KEY_PORT_FILE,
                               KEY_IGNORED};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (row->key == keys[i])
            return true;
    }
    return false;
}

static bool
is_repeatable(int key)
{
    return key == KEY_XLATOR || key == KEY_POOL_OPTION || key == KEY_BRICK_ROOT;
}

/* Tells whether the file's value counts. An option of the command line wins. A process whose bricks come from
 * volfiles or from a glusterd keeps no volumes. */
static bool
file_value_counts(const struct kilnd_options *o, int key)
{
    bool is_of_volumes = key == KEY_STATE || key == KEY_VOLFILE_PORT || key == KEY_HOOK_DEADLINE ||
                         (key >= KEY_STORE && key <= KEY_BRICK_ROOT);

    return (!is_given[key] || is_repeatable(key)) &&
           !(is_of_volumes && (o->server || o->volfile_count || o->socket_path));
}

static void
take_config_line(struct argp_state *state, const struct config_line *line)
{
    static unsigned taken_at[KEYS]; /* line of an option in the file; 0: none */
    const struct argp_option *row = table;
    bool is_on = true;

    while (row->name && strcmp(row->name, line->key) != 0)
        row++;
    if (!row->name)
        refuse_option(state, "%s: expected the long name of an option that kilnd --help lists", line->key);
    if (is_for_command_line(row))
        refuse_option(state, "%s: expected on the command line only", line->key);
    if (taken_at[row->key] && !is_repeatable(row->key))
        refuse_option(state, "%s: expected once; line %u sets it already", line->key, taken_at[row->key]);
    taken_at[row->key] = line->number;
    if (row->arg ? !*line->value : parse_bool(line->value, &is_on) != 0)
        refuse_value(state, row->key, line->value, row->arg ? "a value" : "on or off");
    if (is_on && file_value_counts(state->input, row->key))
        (void)take_option(row->key, line->value, state);
}

/* Takes the options of the file, after the options of the command line. */
static void
take_config(struct argp_state *state)
{
    const struct kilnd_options *o = state->input;
    char error[1024];

    source.path = o->config_path ? o->config_path : CONFIG_PATH;
    int err = config_read(source.path, &config, error, sizeof error);
    if (err == -ENOENT && !o->config_path)
        return;
    if (err) {
        fprintf(stderr, "%s: %s\n", state->name, error);
        if (is_given['l'] && log_open(o->log_path) == 0) {
            log_event(LOG_CRITICAL, NULL, "config-read", "%s", error);
            log_close();
        }
        exit(EXIT_OPTION);
    }
    for (unsigned i = 0; i < config.count; i++) {
        source.line = config.lines[i].number;
        take_config_line(state, &config.lines[i]);
    }
    source.line = 0;
}

/* ---- the command line ------------------------------------------------------------------------ */

static error_t
take_option(int key, char *arg, struct argp_state *state)
{
    struct kilnd_options *o = state->input;

    if (!source.line && key > 0 && key < KEYS)
        is_given[key] = true;
    if (key == 'L')
        check_log_level(state, arg);
    if (key == KEY_METRICS && !http_is_address(arg))
        refuse_value(state, key, arg, "HOST:PORT");
    if (take_text_option(o, key, arg))
        return 0;
    switch (key) {
    case 'f':
        append_text(state, &o->volfiles, &o->volfile_count, arg);
        break;
    case KEY_BRICK_NAME:
        append_text(state, &o->brick_names, &o->brick_name_count, arg);
        break;
    case KEY_POOLS:
        set_pools_option(state, arg);
        break;
    case KEY_XLATOR:
        check_xlator_option(state, arg);
        append_text(state, &o->xlator_options, &o->xlator_option_count, arg);
        break;
    case KEY_BRICK_ROOT:
        append_text(state, &o->shared.roots, &o->shared.root_count, arg);
        break;
    case KEY_PROCESS_NAME:
        if (strcmp(arg, "brick") != 0)
            argp_error(state, "--process-name %s: expected brick", arg);
        break;
    case KEY_POOL_OPTION:
        set_pool_option(state, arg);
        break;
    case KEY_STRICT:
        o->is_strict = true;
        break;
    case KEY_INSIDE:
        o->takes_mounts = true;
        break;
    case KEY_CHECK:
        o->is_check = true;
        break;
    case KEY_UPGRADE_CHECK:
        o->is_upgrade_check = true;
        break;
    case KEY_STATE:
        o->state_dir = state_dir(state, arg);
        break;
    case KEY_BRICK_PORT:
        o->port = parse_port(state, key, arg);
        break;
    case KEY_VOLFILE_PORT:
        o->volfile_port = parse_port(state, key, arg);
        break;
    case KEY_HOOK_DEADLINE:
        o->hook_deadline_s = parse_deadline(state, arg);
        break;
    case KEY_SERVER_PORT:
        o->server_port = parse_port(state, key, arg);
        break;
    case KEY_SERVER_TRANSPORT:
        o->server_is_unix = is_unix(state, arg);
        break;
    case KEY_DEBUG:
        o->is_foreground = true;
        o->log_level = "DEBUG";
        o->log_path = NULL;
        break;
    case KEY_SECURE:
        take_secure(o, state, arg);
        break;
    case KEY_SANDBOX:
        take_sandbox(o, state, arg);
        break;
    case KEY_IGNORED:
        note_ignored(o, state);
        break;
    case 'N':
        o->is_foreground = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        break;
    case ARGP_KEY_END:
        take_config(state);
        check_all(state, o);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void
options_parse(struct kilnd_options *o, int argc, char **argv)
{
    static const struct argp argp = {
        .options = table,
        .parser = take_option,
        .doc =
            "Serves GlusterFS bricks, all in this process and on one port."
            "\vSignals: TERM and INT finish running requests and exit 0; HUP reopens the log and reads the "
            "volfiles again; USR1 writes a statedump.\n"
            "Exit status: 0; 1 a brick could not start; 64 wrong command line; 98 the port is taken; 107 "
            "glusterd cannot be reached; the error of glusterd's answer if glusterd has no such volfile.",
    };

    /* glusterd starts kilnd and cannot pass extra options, but kilnd inherits its environment. */
    const char *strict = getenv("KILND_STRICT_FEATURES");

    *o = (struct kilnd_options){.port = -1, .is_strict = strict && strcmp(strict, "1") == 0};
    argp_err_exit_status = EXIT_OPTION;
    argp_parse(&argp, argc, argv, 0, NULL, o);
    o->is_socket_shared = !is_given[KEY_MANAGEMENT] && o->management_path;
    o->is_address_shared = !is_given[KEY_METRICS];
}

void
options_free(struct kilnd_options *o)
{
    free(o->volfiles);
    free(o->shared.roots);
    free(o->brick_names);
    free(o->xlator_options);
    config_free(&config);
}
