/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The command line of kilnd and its configuration file; option-table.c has the options. */
#include <config.h>

#include <argp.h>
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/roff.h"
#include "coro/pool-control.h"
#include "daemon/http.h"
#include "glusterfsd/config.h"
#include "glusterfsd/kilnd.h"
#include "glusterfsd/option-table.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "rpc/transport/tls-config.h"
#include "volumes/front.h"
#include "volumes/volume.h"

__attribute__((visibility("default"))) const char *argp_program_version = "kilnd " PACKAGE_VERSION;

enum { KEY_FIRST = 0x100 }; /* argp's key of a row without a letter: KEY_FIRST + its index */

/* Options on the command line, by the index of their rows. */
static bool is_given[KILND_OPTIONS_MAX];
static struct config config; /* the values are kept in struct kilnd_options */
/* The place in the configuration file while an option of the file is taken; line 0: the command line. */
static struct {
    const char *path;
    unsigned line;
} source;

static size_t
index_of(const struct kilnd_option *row)
{
    return (size_t)(row - kilnd_option_rows);
}

static int
key_of(const struct kilnd_option *row)
{
    return row->letter ? row->letter : KEY_FIRST + (int)index_of(row);
}

/* Returns NULL for another name. */
static const struct kilnd_option *
option_named(const char *name)
{
    const struct kilnd_option *row = kilnd_option_rows;

    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return row->name ? row : NULL;
}

static bool
is_named_given(const char *name)
{
    return is_given[index_of(option_named(name))];
}

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
    if (is_named_given("log-file") && log_open(o->log_path) == 0) {
        log_event(LOG_CRITICAL, NULL, "config-wrong", "%s:%u: %s", source.path, source.line, text);
        log_close();
    }
    exit(EXIT_OPTION);
}

/* Refuses the value of an option that has a name. */
static void __attribute__((noreturn))
refuse_value(const struct argp_state *state, const struct kilnd_option *row, const char *value,
             const char *expected)
{
    refuse_option(state, "%s%s%s%s: expected %s", source.line ? "" : "--", row->name,
                  source.line ? " = " : " ", value, expected);
}

static int
parse_port(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    char *end;

    errno = 0;
    long port = strtol(text, &end, 10);
    if (errno || end == text || *end || port < 0 || port > 65535)
        refuse_value(state, row, text, "a port, a number from 0 to 65535");
    return (int)port;
}

/* A script's deadline in seconds, at most an hour. */
static unsigned
parse_deadline(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    char *end;
    long seconds = strtol(text, &end, 10);

    if (end == text || *end || seconds < 1 || seconds > 3600)
        refuse_value(state, row, text, "a number of seconds from 1 to 3600");
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
check_log_level(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    enum log_level level;

    if (log_level_parse(text, &level))
        refuse_value(state, row, text, "CRITICAL, ERROR, WARNING, INFO, DEBUG or TRACE");
}

static void
set_pools_option(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    int err = mem_pools_set_mode(text);

    if (err == -EINVAL)
        refuse_value(state, row, text, "on, off, poison or trace:K");
    if (err)
        argp_failure(state, EXIT_FAILURE, -err, "memory pools");
}

/* --xlator-option PATTERN.KEY=VALUE is split at the first '.' and the first '=' (management 2.5). */
static void
check_xlator_option(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

    if (!equals || !equals[1])
        refuse_value(state, row, text, "PATTERN.KEY=VALUE");
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
parse_secure_mgmt(struct kilnd_options *o, struct argp_state *state, const struct kilnd_option *row,
            const char *text)
{
    o->is_secure_given = o->is_secure = true;
    if (text && tls_management_word(text, &o->is_secure))
        refuse_value(state, row, text, "on or off");
}

static void
parse_sandbox(struct kilnd_options *o, const struct argp_state *state, const struct kilnd_option *row,
             const char *text)
{
    o->is_sandbox_given = true;
    if (sandbox_mode_parse(text, &o->sandbox))
        refuse_value(state, row, text, "on, off or log");
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
set_pool_option(struct argp_state *state, const struct kilnd_option *row, const char *text)
{
    if (pool_control_set(text))
        refuse_value(state, row, text, pool_control_expected(text));
}

/* ---- the configuration file ------------------------------------------------------------------ */

static void parse_row_value(struct argp_state *state, const struct kilnd_option *row, char *arg);

/* Tells whether the file's value counts. An option of the command line wins. A process whose bricks come from
 * volfiles or from a glusterd keeps no volumes. */
static bool
file_value_counts(const struct kilnd_options *o, const struct kilnd_option *row)
{
    return (!is_given[index_of(row)] || row->is_repeatable) &&
           !(row->is_of_volumes && (o->server || o->volfile_count || o->socket_path));
}

static void
take_config_line(struct argp_state *state, const struct config_line *line)
{
    static unsigned taken_at[KILND_OPTIONS_MAX]; /* line of an option in the file; 0: none */
    const struct kilnd_option *row = option_named(line->key);
    bool is_on = true;

    if (!row)
        refuse_option(state, "%s: expected the long name of an option that kilnd --help lists", line->key);
    if (row->is_of_command_line)
        refuse_option(state, "%s: expected on the command line only", line->key);
    unsigned *at = &taken_at[index_of(row)];

    if (*at && !row->is_repeatable)
        refuse_option(state, "%s: expected once; line %u sets it already", line->key, *at);
    *at = line->number;
    if (row->arg ? !*line->value : parse_bool(line->value, &is_on) != 0)
        refuse_value(state, row, line->value, row->arg ? "a value" : "on or off");
    if (is_on && file_value_counts(state->input, row))
        parse_row_value(state, row, line->value);
}

/* Takes the options of the file, after the options of the command line. */
static void
parse_config_file(struct argp_state *state)
{
    const struct kilnd_options *o = state->input;
    char error[1024];

    source.path = o->config_path ? o->config_path : CONFIG_PATH;
    int err = config_read(source.path, &config, error, sizeof error);
    if (err == -ENOENT && !o->config_path)
        return;
    if (err) {
        fprintf(stderr, "%s: %s\n", state->name, error);
        if (is_named_given("log-file") && log_open(o->log_path) == 0) {
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

/* Prints the generated part of doc/kilnd.8. */
static void __attribute__((noreturn))
print_manual(void)
{
    roff_begin(stdout, "options");
    for (const struct kilnd_option *row = kilnd_option_rows; row->name; row++) {
        if (row->manual)
            roff_option(stdout, row->name, NULL, row->letter, row->arg, row->arg_may_lack, row->manual);
    }
    roff_help_option(stdout);
    roff_end(stdout, "options");
    exit(EXIT_SUCCESS);
}

static void
apply_debug(struct kilnd_options *o)
{
    o->is_foreground = true;
    o->log_level = "DEBUG";
    o->log_path = NULL;
}

/* Takes an option whose member has the value, or its number. */
static void
store_member(struct argp_state *state, const struct kilnd_option *row, const char *arg)
{
    void *at = (char *)state->input + row->at;

    if (row->take == TAKE_LOG_LEVEL)
        check_log_level(state, row, arg);
    if (row->take == TAKE_METRICS && !http_is_address(arg))
        refuse_value(state, row, arg, "HOST:PORT");
    if (row->take == TAKE_FLAG)
        *(bool *)at = true;
    else if (row->take == TAKE_PORT)
        *(int *)at = parse_port(state, row, arg);
    else
        *(const char **)at = arg;
}

static void
parse_row_value(struct argp_state *state, const struct kilnd_option *row, char *arg)
{
    struct kilnd_options *o = state->input;

    switch (row->take) {
    case TAKE_TEXT:
    case TAKE_FLAG:
    case TAKE_PORT:
    case TAKE_LOG_LEVEL:
    case TAKE_METRICS:
        store_member(state, row, arg);
        break;
    case TAKE_VOLFILE:
        append_text(state, &o->volfiles, &o->volfile_count, arg);
        break;
    case TAKE_BRICK_NAME:
        append_text(state, &o->brick_names, &o->brick_name_count, arg);
        break;
    case TAKE_POOLS:
        set_pools_option(state, row, arg);
        break;
    case TAKE_XLATOR:
        check_xlator_option(state, row, arg);
        append_text(state, &o->xlator_options, &o->xlator_option_count, arg);
        break;
    case TAKE_BRICK_ROOT:
        append_text(state, &o->shared.roots, &o->shared.root_count, arg);
        break;
    case TAKE_PROCESS_NAME:
        if (strcmp(arg, "brick") != 0)
            argp_error(state, "--process-name %s: expected brick", arg);
        break;
    case TAKE_POOL_OPTION:
        set_pool_option(state, row, arg);
        break;
    case TAKE_STATE:
        o->state_dir = state_dir(state, arg);
        break;
    case TAKE_DEADLINE:
        o->hook_deadline_s = parse_deadline(state, row, arg);
        break;
    case TAKE_SERVER_TRANSPORT:
        o->server_is_unix = is_unix(state, arg);
        break;
    case TAKE_DEBUG:
        apply_debug(o);
        break;
    case TAKE_SECURE:
        parse_secure_mgmt(o, state, row, arg);
        break;
    case TAKE_SANDBOX:
        parse_sandbox(o, state, row, arg);
        break;
    case TAKE_IGNORED:
        note_ignored(o, state);
        break;
    case TAKE_MANUAL:
        print_manual();
    }
}

static error_t
parse_kilnd_option(int key, char *arg, struct argp_state *state)
{
    const struct kilnd_option *row = kilnd_option_rows;

    switch (key) {
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    case ARGP_KEY_END:
        parse_config_file(state);
        check_all(state, state->input);
        return 0;
    default:
        while (row->name && key_of(row) != key)
            row++;
        if (!row->name)
            return ARGP_ERR_UNKNOWN;
        is_given[index_of(row)] = true;
        parse_row_value(state, row, arg);
        return 0;
    }
}

/* Makes argp's table from the rows. */
static void
fill_argp_table(struct argp_option out[KILND_OPTIONS_MAX + 1])
{
    size_t n = 0;

    for (const struct kilnd_option *row = kilnd_option_rows; row->name; row++) {
        assert(n < KILND_OPTIONS_MAX);
        out[n++] = (struct argp_option){
            .name = row->name,
            .key = key_of(row),
            .arg = row->arg,
            .flags = (row->arg_may_lack ? OPTION_ARG_OPTIONAL : 0) | (row->help ? 0 : OPTION_HIDDEN),
            .doc = row->help,
        };
    }
    out[n] = (struct argp_option){0};
}

void
options_parse(struct kilnd_options *o, int argc, char **argv)
{
    static struct argp_option table[KILND_OPTIONS_MAX + 1];
    static const struct argp argp = {
        .options = table,
        .parser = parse_kilnd_option,
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
    fill_argp_table(table);
    argp_err_exit_status = EXIT_OPTION;
    argp_parse(&argp, argc, argv, 0, NULL, o);
    o->is_socket_shared = !is_named_given("management-socket") && o->management_path;
    o->is_address_shared = !is_named_given("metrics-address");
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
