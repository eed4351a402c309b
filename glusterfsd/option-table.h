/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* option-table: the options of kilnd, a row for each. The command line, --help, the configuration file and
 * the options part of doc/kilnd.8 come from the rows (tests/check/manuals compares the page).
 *
 * A new option is a row and the member of struct kilnd_options (kilnd.h) that keeps its value.
 *
 * The table is constant; any thread may read it. */
#ifndef KILN_GLUSTERFSD_OPTION_TABLE_H
#define KILN_GLUSTERFSD_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define STATE_DIR_DEFAULT "/var/lib/kiln"

/* How options.c takes a value. */
enum kilnd_option_take {
    TAKE_TEXT, /* member: const char * */
    TAKE_FLAG, /* member: bool; the option has no value */
    TAKE_PORT, /* member: int */
    TAKE_LOG_LEVEL, /* this and the next: a text that is checked */
    TAKE_METRICS,
    TAKE_VOLFILE,
    TAKE_BRICK_NAME,
    TAKE_SERVER_TRANSPORT,
    TAKE_SECURE,
    TAKE_DEBUG,
    TAKE_STATE,
    TAKE_BRICK_ROOT,
    TAKE_DEADLINE,
    TAKE_SANDBOX,
    TAKE_PROCESS_NAME,
    TAKE_POOLS,
    TAKE_POOL_OPTION,
    TAKE_XLATOR,
    TAKE_IGNORED,
    TAKE_MANUAL
};

struct kilnd_option {
    const char *name; /* long name */
    int letter;       /* of the short option; 0: none */
    const char *arg;  /* name of the value in --help and manual; NULL: no value */
    bool arg_may_lack;
    enum kilnd_option_take take;
    size_t at; /* offset in struct kilnd_options */
    /* The option is for a single process, or names its bricks: no configuration file may give it. */
    bool is_of_command_line;
    bool is_repeatable; /* lines of the file add to the command line */
    bool is_of_volumes; /* without effect in the file of a process that keeps no volumes */
    const char *help;   /* NULL: hidden */
    const char *manual; /* roff, with - for \-; NULL: no paragraph */
};

enum { KILND_OPTIONS_MAX = 64 };

/* All rows, in the order of the manual page; the last one has no name. */
extern const struct kilnd_option kilnd_option_rows[];

#endif
