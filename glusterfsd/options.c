/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include <argp.h>
#include <errno.h>
#include <stdlib.h>

#include "glusterfsd/kilnd.h"

const char *argp_program_version = "kilnd " PACKAGE_VERSION;

enum { KEY_BRICK_NAME = 256, KEY_BRICK_PORT, KEY_PORT_FILE, KEY_DUMP_DIR, KEY_POOLS, KEY_XLATOR };

static const struct argp_option table[] = {
    {"volfile", 'f', "FILE", 0, "A brick's volfile; may be given again for further bricks", 0},
    {"brick-name", KEY_BRICK_NAME, "PATH", 0, "Name of the brick of the n-th volfile (default: the volfile's own)", 0},
    {"brick-port", KEY_BRICK_PORT, "PORT", 0, "TCP port; 0: any that is free (default: the volfile's, else 49152)", 0},
    {"port-file", KEY_PORT_FILE, "FILE", 0, "Where to write the port once it is listening", 0},
    {"socket-file", 'S', "FILE", 0, "Listen on this unix socket too", 0},
    {"log-file", 'l', "FILE", 0, "Log to FILE (default: stderr, in the background /var/log/glusterfs/kilnd.log)", 0},
    {"log-level", 'L', "LEVEL", 0, "CRITICAL, ERROR, WARNING, INFO (default), DEBUG or TRACE", 0},
    {"pid-file", 'p', "FILE", 0, "Where to write the process id", 0},
    {"no-daemon", 'N', NULL, 0, "Stay in the foreground", 0},
    {"statedump-dir", KEY_DUMP_DIR, "DIR", 0, "Where SIGUSR1 writes statedumps (default: the volfile's statedump-path, else /var/run/gluster)", 0},
    {"pools", KEY_POOLS, "MODE", 0, "Memory pools: on, off, poison or trace:K", 0},
    {"xlator-option", KEY_XLATOR, "PATTERN.KEY=VALUE", 0, "Set an option of the volumes whose name matches", 0},
    {0},
};

static int
parse_port(struct argp_state *state, const char *text)
{
    char *end;

    errno = 0;
    long port = strtol(text, &end, 10);
    if (errno || end == text || *end || port < 0 || port > 65535)
        argp_error(state, "--brick-port %s: expected a number from 0 to 65535", text);
    return (int)port;
}

static void
append(struct argp_state *state, const char ***array, unsigned *count, const char *text)
{
    if (*count == KILND_BRICKS_MAX)
        argp_error(state, "an option is given more than %d times", KILND_BRICKS_MAX);
    const char **more = reallocarray(*array, *count + 1, sizeof *more);

    if (!more)
        argp_failure(state, EXIT_FAILURE, ENOMEM, "reading the command line");
    *array = more;
    more[(*count)++] = text;
}

static error_t
take(int key, char *arg, struct argp_state *state)
{
    struct kilnd_options *o = state->input;

    switch (key) {
    case 'f':
        append(state, &o->volfiles, &o->volfile_count, arg);
        break;
    case KEY_BRICK_NAME:
        append(state, &o->brick_names, &o->brick_name_count, arg);
        break;
    case KEY_XLATOR:
        append(state, &o->xlator_options, &o->xlator_option_count, arg);
        break;
    case KEY_BRICK_PORT:
        o->port = parse_port(state, arg);
        break;
    case KEY_PORT_FILE:
        o->port_path = arg;
        break;
    case KEY_DUMP_DIR:
        o->dump_dir = arg;
        break;
    case KEY_POOLS:
        o->pools_mode = arg;
        break;
    case 'S':
        o->socket_path = arg;
        break;
    case 'l':
        o->log_path = arg;
        break;
    case 'L':
        o->log_level = arg;
        break;
    case 'p':
        o->pid_path = arg;
        break;
    case 'N':
        o->is_foreground = true;
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        break;
    case ARGP_KEY_END:
        if (!o->volfile_count)
            argp_error(state, "no volfile: at least one -f FILE is needed");
        if (o->brick_name_count > o->volfile_count)
            argp_error(state, "more --brick-name options than volfiles");
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
        .parser = take,
        .doc = "Serves the GlusterFS bricks that the volfiles describe, all in this process and on one port."
               "\vSignals: TERM and INT finish what is running and exit 0; HUP reopens the log; USR1 writes a statedump.\n"
               "Exit status: 0; 1 a brick could not be started; 64 a bad option; 98 the port is taken.",
    };

    *o = (struct kilnd_options){.port = -1};
    argp_err_exit_status = EXIT_OPTION;
    argp_parse(&argp, argc, argv, 0, NULL, o);
}
