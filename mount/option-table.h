/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* option-table: the options of kiln-mount, a row for each. Every other place takes an option from its row:
 *
 *      options.c   the command line and --help
 *      helper.c    the option of mount(8) and fstab
 *      shared.c    the packet to the process of the shared mounts, and the record of a mount
 *      volume.c    the option of a layer of the mount
 *      manual.c    the paragraphs of doc/kiln-mount.8 (tests/check/manuals compares them)
 *
 * A new option is a row, the member of struct mount_options that keeps its value (kiln-mount.h) and, if a
 * layer acts on it, a row in that layer's table. An option with a member is sent to the shared process unless
 * its row says is_of_process.
 *
 * The table is constant; any thread may read it. */
#ifndef KILN_MOUNT_OPTION_TABLE_H
#define KILN_MOUNT_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

enum mount_option_kind {
    OPTION_ACTS,      /* has no member of its own: options.c acts by `take` */
    OPTION_TEXT,      /* member: const char *; the last value counts */
    OPTION_TEXTS,     /* members: an array of const char *, and their number, an unsigned */
    OPTION_FLAG,      /* member: bool; the option has no value */
    OPTION_NUMBER,    /* member: unsigned */
    OPTION_NO_EFFECT, /* only tunes the internals of the stock client */
    OPTION_NOT_BUILT, /* changes the behaviour that users see: refused by name */
    OPTION_UNLESS_OFF /* as OPTION_NOT_BUILT, but accepted with a value that says off */
};

/* How options.c takes a value. */
enum mount_option_take {
    TAKE_PLAIN, /* as the kind says, without a check */
    TAKE_SERVER,
    TAKE_PORT,
    TAKE_TRANSPORT,
    TAKE_DEBUG,
    TAKE_DIRECT_IO,
    TAKE_SECURE,
    TAKE_SANDBOX,
    TAKE_SERVE,
    TAKE_INSIDE,
    TAKE_XLATOR,
    TAKE_POOL_OPTION,
    TAKE_MANUAL
};

/* The layers that get an option's value, under `key`; texts are joined by commas. */
#define TO_FUSE 0x1u
#define TO_HARD 0x2u
#define TO_BRICKS 0x4u /* each protocol/client */

struct mount_option {
    const char *name, *alias; /* long names; alias NULL: only one */
    int letter;               /* of the short option; 0: none */
    const char *arg;          /* name of the value in --help and manual; NULL: no value */
    bool arg_may_lack;
    const char *unsaid; /* OPTION_TEXT: the value if it lacks */
    enum mount_option_kind kind;
    enum mount_option_take take;
    size_t at, count_at, max; /* offsets in struct mount_options; max: size of the array of texts */
    bool is_of_process;       /* the first mount of a shared process decides: the option is not sent */
    const char *sent_as;      /* name in the packet; NULL: `name` */
    unsigned to;              /* TO_*; 0: no layer */
    const char *key;
    const char *fstab, *fstab_too; /* names of the option of mount(8); NULL: none */
    /* between the elements of a value, each of which repeats the option; 0: no list */
    char fstab_separator;
    bool fstab_is_alone;           /* in fstab the option asks for a process of its own */
    const char *help;   /* NULL: hidden, for OPTION_NO_EFFECT: without a text */
    const char *manual; /* roff, with - for \-; NULL: no paragraph */
};

/* All rows, in the order of the manual page; the last one has no name. */
extern const struct mount_option mount_option_rows[];

/* Prints the generated parts of doc/kiln-mount.8 on standard output (manual.c). */
void mount_options_print_manual(void);

#endif
