/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount.kiln takes the options of stock's mount.glusterfs, so that lines of fstab go on working. The helper
 * hands on the options that have a meaning in Kiln. The helper ignores options that only tune the stock
 * client, and refuses by name the options that would change the behaviour that users see. */
#include "mount/helper.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mount/option-table.h"

enum { STATUS_USAGE = 1, STATUS_PLACE = 2 };

/* Words that are no options of kiln-mount. */
static const struct row {
    const char *name; /* with a star at the end: the prefix of several names */
    enum helper_kind kind;
    const char *why; /* HELPER_REFUSED: the reason; the manual page has the reasons too */
} rows[] = {
    {"noshared", HELPER_ALONE, NULL},

    {"nodev", HELPER_KERNEL, NULL},
    {"nosuid", HELPER_KERNEL, NULL},
    {"noexec", HELPER_KERNEL, NULL},
    {"noatime", HELPER_KERNEL, NULL},
    {"nodiratime", HELPER_KERNEL, NULL},
    {"relatime", HELPER_KERNEL, NULL},
    {"strictatime", HELPER_KERNEL, NULL},
    {"sync", HELPER_KERNEL, NULL},
    {"dirsync", HELPER_KERNEL, NULL},

    /* options for mount(8) and systemd, and options for the default behaviour */
    {"_netdev", HELPER_IGNORED, NULL},
    {"auto", HELPER_IGNORED, NULL},
    {"noauto", HELPER_IGNORED, NULL},
    {"nofail", HELPER_IGNORED, NULL},
    {"defaults", HELPER_IGNORED, NULL},
    {"user", HELPER_IGNORED, NULL},
    {"users", HELPER_IGNORED, NULL},
    {"nouser", HELPER_IGNORED, NULL},
    {"owner", HELPER_IGNORED, NULL},
    {"group", HELPER_IGNORED, NULL},
    {"rw", HELPER_IGNORED, NULL},
    {"dev", HELPER_IGNORED, NULL},
    {"suid", HELPER_IGNORED, NULL},
    {"exec", HELPER_IGNORED, NULL},
    {"atime", HELPER_IGNORED, NULL},
    {"diratime", HELPER_IGNORED, NULL},
    {"async", HELPER_IGNORED, NULL},
    {"norelatime", HELPER_IGNORED, NULL},
    {"nostrictatime", HELPER_IGNORED, NULL},
    {"allow_other", HELPER_IGNORED, NULL},
    {"default_permissions", HELPER_IGNORED, NULL},
    {"x-*", HELPER_IGNORED, NULL},
    {"comment", HELPER_IGNORED, NULL},

    /* options for the internals of the stock client */
    {"halo-*", HELPER_IGNORED, NULL},

    {"remount", HELPER_REFUSED, "unmount it, and mount it again"},
    {"root-squash", HELPER_REFUSED, "not built: it is an option of the volume"},
    {"fuse-mountopts", HELPER_REFUSED, "not built: give the options themselves"},
    {"context", HELPER_REFUSED, "not built"},
    {"fscontext", HELPER_REFUSED, "not built"},
    {"defcontext", HELPER_REFUSED, "not built"},
    {"rootcontext", HELPER_REFUSED, "not built"},
};

bool
helper_is_wanted(const char *program)
{
    const char *slash = strrchr(program, '/');

    return strcmp(slash ? slash + 1 : program, "mount.kiln") == 0;
}

static int __attribute__((format(printf, 2, 3)))
fail(struct helper *h, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(h->error, sizeof h->error, fmt, ap);
    va_end(ap);
    return STATUS_USAGE;
}

static int __attribute__((format(printf, 2, 3)))
add(struct helper *h, const char *fmt, ...)
{
    char *word;
    va_list ap;

    if (h->count == HELPER_WORDS_MAX)
        return fail(h, "too many options");
    va_start(ap, fmt);
    int n = vasprintf(&word, fmt, ap);
    va_end(ap);
    if (n < 0)
        return fail(h, "no memory");
    h->words[h->count++] = word;
    return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

static const struct row *
helper_find_word(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].name);
        bool is_prefix = rows[i].name[len - 1] == '*';

        if (is_prefix ? strncmp(rows[i].name, name, len - 1) == 0 : strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static const struct mount_option *
helper_find_option(const char *name)
{
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if ((row->fstab && strcmp(row->fstab, name) == 0) ||
            (row->fstab_too && strcmp(row->fstab_too, name) == 0))
            return row;
    }
    return NULL;
}

static int
add_list(struct helper *h, const struct mount_option *row, char *list)
{
    const char separators[] = {row->fstab_separator, '\0'};
    char *at = list, *value;
    int status = 0;

    while ((value = strsep(&at, separators)) && !status) {
        if (*value)
            status = add(h, "--%s=%s", row->name, value);
    }
    return status;
}

/* Adds the words for an option of kiln-mount. `value` NULL: the option has no value. */
static int
translate_own(struct helper *h, const struct mount_option *row, const char *name, char *value)
{
    if (row->kind == OPTION_NO_EFFECT)
        return 0;
    if (row->kind == OPTION_NOT_BUILT || row->kind == OPTION_UNLESS_OFF)
        return fail(h, "option %s: not built", name);
    h->is_alone |= row->fstab_is_alone;
    if (!row->arg || (!value && row->arg_may_lack))
        return add(h, "--%s", row->name);
    if (!value)
        return fail(h, "option %s: its value is missing", name);
    return row->fstab_separator ? add_list(h, row, value) : add(h, "--%s=%s", row->name, value);
}

/* Adds the words for any other option. */
static int
translate_word(struct helper *h, const struct row *row, const char *name)
{
    switch (row->kind) {
    case HELPER_KERNEL:
        return add(h, "--fuse-mountopts=%s", row->name);
    case HELPER_REFUSED:
        return fail(h, "option %s: %s", name, row->why);
    case HELPER_ALONE:
        h->is_alone = true;
        return 0;
    default:
        return 0;
    }
}

/* `is_sloppy`: ignores unknown options. */
static int
translate_option(struct helper *h, const char *name, char *value, bool is_sloppy)
{
    const struct mount_option *option = helper_find_option(name);
    const struct row *word = option ? NULL : helper_find_word(name);

    if (option)
        return translate_own(h, option, name, value);
    if (word)
        return translate_word(h, word, name);
    return is_sloppy ? 0 : fail(h, "option %s: not known; the options: man kiln-mount", name);
}

const char *
helper_word(enum helper_kind kind, size_t n)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == kind && n-- == 0)
            return rows[i].name;
    }
    return NULL;
}

static int
translate_options(struct helper *h, const char *list, bool is_sloppy)
{
    char *copy = strdup(list), *at = copy, *option;
    int status = copy ? 0 : fail(h, "no memory");

    while (copy && (option = strsep(&at, ",")) && !status) {
        char *equals = strchr(option, '=');

        if (equals)
            *equals = '\0';
        if (*option)
            status = translate_option(h, option, equals ? equals + 1 : NULL, is_sloppy);
    }
    free(copy);
    return status;
}

/* ---- the command line ------------------------------------------------------------------------ */

static bool
is_bad_place(const char *dir)
{
    return strcmp(dir, "/") == 0 || strcmp(dir, "/tmp") == 0;
}

/* Puts mount(8)'s first two words, the source and the folder, at the end of the new words. Servers among the
 * options follow the servers of the source. */
int
helper_translate(struct helper *h, int argc, char **argv)
{
    bool is_sloppy = false;
    int option, status = 0;

    *h = (struct helper){.is_help = argc == 2 && strcmp(argv[1], "--help") == 0};
    if (h->is_help)
        return 0;
    status = add(h, "kiln-mount");
    for (int i = 1; i < argc && !status; i++) /* -s may come after -o */
        is_sloppy |= strcmp(argv[i], "-s") == 0;
    optind = 0;
    while (!status && (option = getopt(argc, argv, "fnrsvwo:t:")) != -1) {
        if (option == 'o')
            status = translate_options(h, optarg, is_sloppy);
        else if (option == 'r')
            status = add(h, "--read-only");
        else if (option == '?')
            status = fail(h, HELPER_USAGE);
        h->is_fake |= option == 'f';
    }
    if (!status && argc - optind != 2)
        status = fail(h, HELPER_USAGE);
    if (!status && is_bad_place(argv[optind + 1])) {
        fail(h, "%s: nothing is mounted there", argv[optind + 1]);
        return STATUS_PLACE;
    }
    if (!status)
        status = add(h, "--") || add(h, "%s", argv[optind]) || add(h, "%s", argv[optind + 1]);
    return status;
}

void
helper_free(struct helper *h)
{
    for (int i = 0; i < h->count; i++)
        free(h->words[i]);
}
