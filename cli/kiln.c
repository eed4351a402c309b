/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include "cli/kiln.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/roff.h"
#include "volumes/front.h"

struct kiln_options kiln_options = {.socket = FRONT_SOCKET};

/* ---- help ------------------------------------------------------------------------------------ */

/* Verbs about mounts and about kiln itself have no prefix. All other verbs accept the word "volume" before
 * them. */
static const char *
prefix_of(const struct verb *v)
{
    return v->about == ALONE ? "" : "volume ";
}

static void
help_all(FILE *f)
{
    fprintf(f, "Usage: kiln [--json] [--yes] [--socket=FILE] VERB [ARGUMENT...]\n"
               "Manages the volumes of a kilnd --state on this machine.\n\n");
    for (const struct verb *v = verbs; v->name; v++)
        fprintf(f, "  kiln %s%s%s%s\n        %s\n", prefix_of(v), v->name, *v->args ? " " : "", v->args,
                v->text);
    fprintf(f, "  kiln help [VERB]\n        Print this list, or the usage of VERB\n\n"
               "  --json          print answers and errors as JSON\n"
               "  --yes           do not ask for confirmation\n"
               "  --socket=FILE   management socket of kilnd (default $KILN_SOCKET, else " FRONT_SOCKET ")\n"
               "  --version       print the version\n\n"
               "Exit status: 0 done, 1 refused, 2 wrong command line, 3 kilnd does not answer.\n");
}

/* Prints the list of verbs in doc/kiln.8. */
static int
print_manual(void)
{
    char line[512];

    roff_begin(stdout, "verbs");
    for (const struct verb *v = verbs; v->name; v++) {
        snprintf(line, sizeof line, ".br\n\\fBkiln %s%s\\fR %s%s\\(en %s.", prefix_of(v), v->name, v->args,
                 *v->args ? " " : "", v->text);
        roff_text(stdout, line);
    }
    roff_end(stdout, "verbs");
    return KILN_DONE;
}

static void
help_one(FILE *f, const struct verb *v)
{
    fprintf(f, "Usage: kiln %s%s%s%s\n%s.\n", prefix_of(v), v->name, *v->args ? " " : "", v->args, v->text);
    if (v->more)
        fprintf(f, "%s\n", v->more);
}

int
usage(const struct verb *v, const char *fmt, ...)
{
    char wrong[512], line[512], help[64];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(wrong, sizeof wrong, fmt, ap);
    va_end(ap);
    snprintf(line, sizeof line, "kiln %s%s%s%s", prefix_of(v), v->name, *v->args ? " " : "", v->args);
    snprintf(help, sizeof help, "kiln help %s", v->name);
    return refuse(KILN_USAGE, line, help, "%s", wrong);
}

int
usage_of_word(const struct verb *v, const char *word)
{
    size_t len = strlen(word);

    for (const char *form = v->args; form; form = (form = strstr(form, " | ")) ? form + 3 : NULL) {
        if (strncmp(form, word, len) != 0 || (form[len] != ' ' && form[len] != '\0'))
            continue;
        const char *end = strstr(form, " | ");
        int form_len = end ? (int)(end - form) : (int)strlen(form);
        char line[256], help[64];

        snprintf(line, sizeof line, "kiln %s%s %.*s", prefix_of(v), v->name, form_len, form);
        snprintf(help, sizeof help, "kiln help %s", v->name);
        return refuse(KILN_USAGE, line, help, "%s %s: wrong number of arguments", v->name, word);
    }
    return usage(v, "%s: '%.100s' is not known", v->name, word);
}

/* ---- words ----------------------------------------------------------------------------------- */

static const struct verb *
find_verb(const char *word)
{
    for (const struct verb *v = verbs; v->name; v++) {
        if (strcmp(v->name, word) == 0)
            return v;
    }
    return NULL;
}

/* Commands of gluster that Kiln does not have, with an alternative for the error message. */
static const struct unbuilt {
    const char *word, *expected, *type;
} unbuilt[] = {
    {"fix-layout", "a word of rebalance", "kiln volume rebalance NAME fix-layout start"},
    {"bitrot", "bricks on a file system with checksums, such as btrfs or zfs", NULL},
    {"snapshot", "snapshots of the file systems of the bricks while the volume is stopped", NULL},
    {"geo-replication", "another tool that copies a mount, such as rsync", NULL},
    {"peer", "hosts that register themselves: kilnd --store LOCATION --host NAME on each", "kiln host list"},
    {"pool", "hosts that register themselves: kilnd --store LOCATION --host NAME on each", "kiln host list"},
    {"sync", "hosts that follow their store by themselves", "kiln host list"},
    {"log", "logrotate on the log of kilnd; kilnd reopens the file on SIGHUP",
     "systemctl reload kilnd"},
};

/* The edit distance: the least number of letters to change, add or remove to get from `a` to `b`. `b` has
 * less than 32 letters. */
static unsigned
letters_between(const char *a, const char *b)
{
    unsigned row[32];
    size_t len = strlen(b);

    for (unsigned i = 0; i <= len; i++)
        row[i] = i;
    for (; *a; a++) {
        unsigned left_above = row[0]++;

        for (size_t i = 0; i < len; i++) {
            unsigned above = row[i + 1], least = above < row[i] ? above : row[i];

            row[i + 1] = *a == b[i] ? left_above : 1 + (least < left_above ? least : left_above);
            left_above = above;
        }
    }
    return row[len];
}

/* Returns NULL if no verb is similar. */
static const char *
nearest_verb(const char *word)
{
    const char *nearest = NULL;
    /* in a short word a second change already makes another word */
    unsigned least = strlen(word) < 5 ? 2 : 3;

    for (const struct verb *v = verbs; v->name; v++) {
        unsigned letters = letters_between(word, v->name);

        if (letters < least) {
            least = letters;
            nearest = v->name;
        }
    }
    return letters_between(word, "volume") < least ? "volume" : nearest;
}

static int
unknown_verb(const char *word)
{
    const char *nearest = strcmp(word, "version") == 0 ? "kiln --version" : nearest_verb(word);
    char expected[64] = "a verb that kiln help lists", type[64];

    if (nearest)
        snprintf(expected, sizeof expected, "did you mean %s?", nearest);
    for (size_t i = 0; i < sizeof unbuilt / sizeof unbuilt[0]; i++) {
        if (strcmp(word, unbuilt[i].word) == 0)
            return refuse(KILN_REFUSED, unbuilt[i].expected, unbuilt[i].type, "%s is not built", word);
    }
    snprintf(type, sizeof type, !nearest || strncmp(nearest, "kiln", 4) == 0 ? "%s" : "kiln help %s",
             nearest ? nearest : "kiln help");
    return refuse(KILN_USAGE, expected, type, "unknown verb '%s'", word);
}

static int
help(int argc, char **argv)
{
    bool has_volume = argc > 1 && strcmp(argv[0], "volume") == 0;
    const char *word = argc > 0 ? argv[has_volume] : NULL;
    const struct verb *v = word ? find_verb(word) : NULL;

    if (!word || (!v && strcmp(word, "volume") == 0)) {
        help_all(stdout);
        return KILN_DONE;
    }
    if (!v)
        return unknown_verb(word);
    help_one(stdout, v);
    return KILN_DONE;
}

static int
verb_run(const struct verb *v, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") != 0 && (i > 0 || strcmp(argv[i], "help") != 0))
            continue;
        help_one(stdout, v);
        return KILN_DONE;
    }
    for (int i = 0; i < argc && v->max_args >= 0; i++)
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2] && !strstr(v->args, argv[i]))
            return usage(v,
                         strncmp(argv[i], "--socket", 8) == 0 ? "%s: '%.200s' stands before the verb"
                                                              : "%s: there is no option '%.200s'",
                         v->name, argv[i]);
    if (argc < v->min_args)
        return usage(v, "%s: an argument is missing", v->name);
    if (v->max_args >= 0 && argc > v->max_args)
        return usage(v, "'%s' is one argument too many", argv[v->max_args]);
    return v->run(v, argc, argv);
}

static int
run_words(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[0], "volume") == 0) {
        argc--;
        argv++;
    }
    if (argc == 0 || strcmp(argv[0], "volume") == 0) {
        help_all(stderr);
        return KILN_USAGE;
    }
    if (strcmp(argv[0], "help") == 0)
        return help(argc - 1, argv + 1);
    const struct verb *v = find_verb(argv[0]);

    return v ? verb_run(v, argc - 1, argv + 1) : unknown_verb(argv[0]);
}

/* ---- main ------------------------------------------------------------------------------------ */

/* Accepts --json and --yes at any place, because users append them to a complete command line. Returns the
 * number of the other words, which stay in argv. */
static int
remove_flags(int argc, char **argv)
{
    int kept = 1;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            kiln_options.is_json = true;
        else if (strcmp(argv[i], "--yes") == 0)
            kiln_options.is_yes = true;
        else
            argv[kept++] = argv[i];
    }
    argv[kept] = NULL;
    return kept;
}

int
main(int argc, char **argv)
{
    static const struct option options[] = {{"yes", no_argument, NULL, 'y'},
                                            {"socket", required_argument, NULL, 's'},
                                            {"help", no_argument, NULL, 'h'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"print-manual", no_argument, NULL, 'M'},
                                            {0}};
    const char *socket = getenv("KILN_SOCKET");
    int c;

    if (socket && *socket)
        kiln_options.socket = socket;
    argc = remove_flags(argc, argv);
    while ((c = getopt_long(argc, argv, "+yhs:V", options, NULL)) != -1) {
        switch (c) {
        case 'y':
            kiln_options.is_yes = true;
            break;
        case 's':
            kiln_options.socket = optarg;
            break;
        case 'h':
            help_all(stdout);
            return KILN_DONE;
        case 'M': /* for tests/check/manuals */
            return print_manual();
        case 'V':
            printf("kiln " PACKAGE_VERSION "\n");
            return KILN_DONE;
        default: /* getopt(3) has printed the wrong option */
            fprintf(stderr, "  try:      kiln help\n");
            return KILN_USAGE;
        }
    }
    int status = run_words(argc - optind, argv + optind);
    if (fflush(stdout) == 0)
        return status;
    perror("kiln: standard output");
    return status ? status : KILN_REFUSED;
}
