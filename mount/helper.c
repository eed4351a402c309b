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

enum { STATUS_USAGE = 1, STATUS_PLACE = 2 };

enum kind {
    VALUE,   /* NAME=V: --TO=V */
    FLAG,    /* --TO */
    INSIDE,  /* not in the shared process; --TO, or NAME=V: --TO=V */
    SERVERS, /* NAME=A:B: --TO=A --TO=B */
    KERNEL,  /* for mount(2): --fuse-mountopts */
    ALONE, /* not in the shared process; with `to`: NAME=V: --TO=V, an option of the process */
    IGNORED,
    REFUSED, /* `to`: the reason, for the error message; the manual page has the reasons too */
};

struct row {
    const char *name; /* with a star at the end: the prefix of several names */
    enum kind kind;
    const char *to;
};

static const struct row rows[] = {
    {"log-file", ALONE, "log-file"},
    {"log-level", ALONE, "log-level"},
    {"sandbox", ALONE, "sandbox"},
    {"attribute-timeout", VALUE, "attribute-timeout"},
    {"entry-timeout", VALUE, "entry-timeout"},
    {"negative-timeout", VALUE, "negative-timeout"},
    {"hard", VALUE, "hard"},
    {"direct-io-mode", VALUE, "direct-io-mode"},
    {"kernel-writeback-cache", VALUE, "kernel-writeback-cache"},
    {"server-port", VALUE, "volfile-server-port"},
    {"transport", VALUE, "volfile-server-transport"},
    {"volume-id", VALUE, "volfile-id"},
    {"volume-name", VALUE, "volume-name"},
    {"client-pid", VALUE, "client-pid"},
    {"subdir-mount", VALUE, "subdir-mount"},
    {"xlator-option", VALUE, "xlator-option"},
    {"backup-volfile-servers", SERVERS, "volfile-server"},
    {"backupvolfile-server", SERVERS, "volfile-server"},
    {"acl", FLAG, "acl"},
    {"ro", FLAG, "read-only"},
    {"shared", FLAG, "shared"},
    {"inside", INSIDE, "inside"},
    {"noshared", ALONE, NULL},

    {"nodev", KERNEL, NULL},
    {"nosuid", KERNEL, NULL},
    {"noexec", KERNEL, NULL},
    {"noatime", KERNEL, NULL},
    {"nodiratime", KERNEL, NULL},
    {"relatime", KERNEL, NULL},
    {"strictatime", KERNEL, NULL},
    {"sync", KERNEL, NULL},
    {"dirsync", KERNEL, NULL},

    /* options for mount(8) and systemd, and options for the default behaviour */
    {"_netdev", IGNORED, NULL},
    {"auto", IGNORED, NULL},
    {"noauto", IGNORED, NULL},
    {"nofail", IGNORED, NULL},
    {"defaults", IGNORED, NULL},
    {"user", IGNORED, NULL},
    {"users", IGNORED, NULL},
    {"nouser", IGNORED, NULL},
    {"owner", IGNORED, NULL},
    {"group", IGNORED, NULL},
    {"rw", IGNORED, NULL},
    {"dev", IGNORED, NULL},
    {"suid", IGNORED, NULL},
    {"exec", IGNORED, NULL},
    {"atime", IGNORED, NULL},
    {"diratime", IGNORED, NULL},
    {"async", IGNORED, NULL},
    {"norelatime", IGNORED, NULL},
    {"nostrictatime", IGNORED, NULL},
    {"allow_other", IGNORED, NULL},
    {"default_permissions", IGNORED, NULL},
    {"x-*", IGNORED, NULL},
    {"comment", IGNORED, NULL},
    {"process-name", IGNORED, NULL},

    /* options for the internals of the stock client */
    {"fetch-attempts", IGNORED, NULL},
    {"volfile-check", IGNORED, NULL},
    {"gid-timeout", IGNORED, NULL},
    {"lru-limit", IGNORED, NULL},
    {"invalidate-limit", IGNORED, NULL},
    {"background-qlen", IGNORED, NULL},
    {"congestion-threshold", IGNORED, NULL},
    {"use-readdirp", IGNORED, NULL},
    {"reader-thread-count", IGNORED, NULL},
    {"resolve-gids", IGNORED, NULL}, /* requests always carry all groups of the process that fit */
    {"fopen-keep-cache", IGNORED, NULL},
    {"auto-invalidation", IGNORED, NULL},
    {"attr-times-granularity", IGNORED, NULL},
    {"fuse-flush-handle-interrupt", IGNORED, NULL},
    {"fuse-dev-eperm-ratelimit-ns", IGNORED, NULL},
    {"event-history", IGNORED, NULL},
    {"mem-accounting", IGNORED, NULL},
    {"thin-client", IGNORED, NULL},
    {"global-threading", IGNORED, NULL},
    {"io-engine", IGNORED, NULL},
    {"oom-score-adj", IGNORED, NULL},
    {"localtime-logging", IGNORED, NULL},
    {"halo-*", IGNORED, NULL},

    {"remount", REFUSED, "unmount it, and mount it again"},
    {"worm", REFUSED, "not built"},
    {"selinux", REFUSED, "not built"},
    {"capability", REFUSED, "not built"},
    {"enable-ino32", REFUSED, "not built"},
    {"aux-gfid-mount", REFUSED, "not built"},
    {"dump-fuse", REFUSED, "not built"},
    {"root-squash", REFUSED, "not built: it is an option of the volume"},
    {"no-root-squash", REFUSED, "not built"},
    {"fuse-mountopts", REFUSED, "not built: give the options themselves"},
    {"context", REFUSED, "not built"},
    {"fscontext", REFUSED, "not built"},
    {"defcontext", REFUSED, "not built"},
    {"rootcontext", REFUSED, "not built"},
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
find(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = strlen(rows[i].name);
        bool is_prefix = rows[i].name[len - 1] == '*';

        if (is_prefix ? strncmp(rows[i].name, name, len - 1) == 0 : strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}

static int
add_servers(struct helper *h, const char *to, char *list)
{
    char *at = list, *server;
    int status = 0;

    while ((server = strsep(&at, ":")) && !status) {
        if (*server)
            status = add(h, "--%s=%s", to, server);
    }
    return status;
}

/* Adds the words for an option. `value` NULL: the option has no value. `is_sloppy`: ignores unknown
 * options. */
static int
translate_option(struct helper *h, const char *name, char *value, bool is_sloppy)
{
    const struct row *row = find(name);

    if (!row)
        return is_sloppy ? 0 : fail(h, "option %s: not known", name);
    switch (row->kind) {
    case VALUE:
        return value ? add(h, "--%s=%s", row->to, value) : fail(h, "option %s: its value is missing", name);
    case SERVERS:
        return value ? add_servers(h, row->to, value) : fail(h, "option %s: its value is missing", name);
    case FLAG:
        return add(h, "--%s", row->to);
    case INSIDE:
        h->is_alone = true;
        return value ? add(h, "--%s=%s", row->to, value) : add(h, "--%s", row->to);
    case KERNEL:
        return add(h, "--fuse-mountopts=%s", row->name);
    case ALONE:
        h->is_alone = true;
        if (!row->to)
            return 0;
        return value ? add(h, "--%s=%s", row->to, value) : fail(h, "option %s: its value is missing", name);
    case REFUSED:
        return fail(h, "option %s: %s", name, row->to);
    default:
        return 0;
    }
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
