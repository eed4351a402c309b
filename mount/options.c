/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-mount's command line. The options (option-table.c) have the names of the stock client. Options that
 * Kiln does not have are refused by name. */
#include <config.h>

#include <argp.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "coro/pool-control.h"
#include "mount/kiln-mount.h"
#include "mount/option-table.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/transport/tls-config.h"
#include "volumes/front.h"

__attribute__((visibility("default"))) const char *argp_program_version = "kiln-mount " PACKAGE_VERSION;

enum { KEY_FIRST = 0x100, ROWS_MAX = 128 }; /* argp's key of a row without a letter: KEY_FIRST + its index */
enum { GROUP_NO_EFFECT = 1 };

/* Returns the name of the option that argp has just parsed. */
static const char *
name_given(const struct argp_state *state)
{
    const char *word = state->argv[state->next - 1];

    return word[0] == '-' || state->next < 2 ? word : state->argv[state->next - 2];
}

static void
mount_check_xlator_option(const char *text, struct argp_state *state)
{
    const char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

    if (!equals || !equals[1])
        argp_error(state, "--xlator-option %s: expected PATTERN.KEY=VALUE", text);
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
parse_source(struct mount_options *o, const char *arg, struct argp_state *state)
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
    if (o->is_upgrade_check)
        return; /* the rest of the command line is that of a mount that runs */
    if (o->is_service && (o->volfile || o->server_count || o->mountpoint))
        argp_error(state, "--serve takes no volume and no mount point");
    if (o->is_service)
        return;
    if (!o->volfile && !o->server_count && o->mountpoint && strstr(o->mountpoint, ":/"))
        argp_error(state, "the mount point is missing: expected %s DIR", o->mountpoint);
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
parse_argument(struct mount_options *o, const char *arg, struct argp_state *state)
{
    if (o->mountpoint && (o->volfile || state->arg_num > 1))
        argp_error(state, "unexpected argument '%s': expected one mount point", arg);
    if (o->mountpoint)
        parse_source(o, o->mountpoint, state);
    o->mountpoint = arg;
}

static void
parse_server_port(struct mount_options *o, const char *arg, struct argp_state *state)
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

static void
set_service(struct mount_options *o)
{
    o->is_service = o->is_shared = true;
}

static void
set_debug(struct mount_options *o)
{
    o->is_foreground = true;
    o->log_level = "DEBUG";
    o->log_path = "-";
}

static void
set_inside_socket(struct mount_options *o, const char *arg)
{
    o->inside = arg ? arg : FRONT_SOCKET;
    o->is_inside = true;
}

static void
set_secure_mgmt(struct mount_options *o, const char *arg, struct argp_state *state)
{
    o->is_secure_given = o->is_secure = true;
    if (arg && tls_management_word(arg, &o->is_secure))
        argp_error(state, "--secure-mgmt %s: expected on or off", arg);
}

static void
set_sandbox_mode(struct mount_options *o, const char *arg, struct argp_state *state)
{
    o->is_sandbox_given = true;
    if (sandbox_mode_parse(arg, &o->sandbox))
        argp_error(state, "--sandbox %s: expected on, off or log", arg);
}

/* Keeps the value of an option in its member. */
static void
store_plain_value(struct mount_options *o, const struct mount_option *row, const char *arg,
                  struct argp_state *state)
{
    char *at = (char *)o + row->at;
    unsigned *count = (unsigned *)(void *)((char *)o + row->count_at);

    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)(void *)at = arg ? arg : row->unsaid;
        break;
    case OPTION_TEXTS:
        if (*count == row->max)
            argp_error(state, "--%s is given more than %zu times", row->name, row->max);
        ((const char **)(void *)at)[(*count)++] = arg;
        break;
    case OPTION_FLAG:
        *(bool *)at = true;
        break;
    case OPTION_UNLESS_OFF:
        if (arg && is_word_in(arg, off_words))
            break;
        __attribute__((fallthrough));
    case OPTION_NOT_BUILT:
        argp_error(state, "%s is not built", name_given(state));
        break;
    case OPTION_NO_EFFECT:
    case OPTION_NUMBER: /* each has a function of its own */
    case OPTION_ACTS:
        break;
    }
}

static void
mount_take_value(struct mount_options *o, const struct mount_option *row, char *arg, struct argp_state *state)
{
    switch (row->take) {
    case TAKE_PLAIN:
        store_plain_value(o, row, arg, state);
        break;
    case TAKE_SERVER:
        add_server(o, arg, state);
        break;
    case TAKE_PORT:
        parse_server_port(o, arg, state);
        break;
    case TAKE_TRANSPORT:
        if (strcmp(arg, "tcp") != 0 && strcmp(arg, "socket") != 0)
            argp_error(state, "--volfile-server-transport %s is not built: expected tcp", arg);
        break;
    case TAKE_DEBUG:
        set_debug(o);
        break;
    case TAKE_DIRECT_IO:
        store_plain_value(o, row, direct_io_mode(arg), state);
        break;
    case TAKE_SECURE:
        set_secure_mgmt(o, arg, state);
        break;
    case TAKE_SANDBOX:
        set_sandbox_mode(o, arg, state);
        break;
    case TAKE_SERVE:
        set_service(o);
        break;
    case TAKE_INSIDE:
        set_inside_socket(o, arg);
        break;
    case TAKE_XLATOR:
        mount_check_xlator_option(arg, state);
        store_plain_value(o, row, arg, state);
        break;
    case TAKE_POOL_OPTION:
        if (pool_control_set(arg))
            argp_error(state, "--pool-option %s: expected %s", arg, pool_control_expected(arg));
        break;
    case TAKE_MANUAL:
        mount_options_print_manual();
        exit(EXIT_SUCCESS);
    }
}

static const struct mount_option *
row_of_key(int key)
{
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if (key == (row->letter ? row->letter : KEY_FIRST + (int)(row - mount_option_rows)))
            return row;
    }
    return NULL;
}

static error_t
mount_take_option(int key, char *arg, struct argp_state *state)
{
    struct mount_options *o = state->input;
    const struct mount_option *row;

    switch (key) {
    case ARGP_KEY_ARG:
        parse_argument(o, arg, state);
        return 0;
    case ARGP_KEY_END:
        check_options(o, state);
        name_source(o, state);
        return 0;
    default:
        row = row_of_key(key);
        if (!row)
            return ARGP_ERR_UNKNOWN;
        mount_take_value(o, row, arg, state);
        return 0;
    }
}

/* Makes argp's table from the rows. */
static void
mount_fill_argp_table(struct argp_option out[2 * ROWS_MAX])
{
    size_t n = 0;
    bool has_heading = false;

    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        bool is_idle = row->kind == OPTION_NO_EFFECT;

        assert(row - mount_option_rows < ROWS_MAX - 2);
        if (is_idle && !has_heading)
            out[n++] = (struct argp_option){
                .doc = "Options of the stock client, accepted without effect:", .group = GROUP_NO_EFFECT};
        has_heading |= is_idle;
        out[n++] = (struct argp_option){
            .name = row->name,
            .key = row->letter ? row->letter : KEY_FIRST + (int)(row - mount_option_rows),
            .arg = row->arg,
            .flags = (row->arg_may_lack ? OPTION_ARG_OPTIONAL : 0) |
                     (row->help || is_idle ? 0 : OPTION_HIDDEN),
            .doc = row->help,
            .group = is_idle ? GROUP_NO_EFFECT : 0,
        };
        if (row->alias)
            out[n++] = (struct argp_option){.name = row->alias, .flags = OPTION_ALIAS};
    }
    out[n] = (struct argp_option){0};
}

void
mount_options_parse(struct mount_options *o, int argc, char **argv, int bad_option_status)
{
    static struct argp_option table[2 * ROWS_MAX];
    static const struct argp argp = {
        .options = table,
        .parser = mount_take_option,
        .args_doc = "HOST:/VOLUME[/DIR] MOUNTPOINT\nMOUNTPOINT",
        .doc = "Mounts a GlusterFS volume."
               "\vReturns when the mount is ready, and serves it in the background. Signals: TERM and INT "
               "unmount "
               "and exit 0; HUP reopens the log and fetches the volfile again; USR1 writes a statedump; "
               "WINCH runs the present file of the program in this process.\n"
               "Exit status: 0; 1 the mount failed; 32 a volume is mounted there already; 64 wrong command "
               "line.",
    };

    *o = (struct mount_options){.server_port = GLUSTERD_PORT};
    mount_fill_argp_table(table);
    argp_err_exit_status = bad_option_status;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}
