/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The parts of doc/kiln-mount.8 about options, from the tables of options. `tests/check/manuals --write` puts
 * them into the page, and `make check` compares them. */
#include <stdio.h>
#include <string.h>

#include "base/roff.h"
#include "mount/helper.h"
#include "mount/option-table.h"

/* A list of words that is being printed. The last word is kept back, because no comma follows it. */
struct list {
    const char *before;
};

static void
list_add(struct list *l, const char *word)
{
    char text[160];

    if (l->before) {
        snprintf(text, sizeof text, "%s,", l->before);
        roff_text(stdout, text);
    }
    l->before = word;
}

static void
list_end(struct list *l, const char *after)
{
    char text[256];

    snprintf(text, sizeof text, "%s%s", l->before ? l->before : "", after);
    roff_text(stdout, text);
    l->before = NULL;
}

static void
print_kind(enum mount_option_kind kind, const char *heading)
{
    static char words[128][64];
    struct list list = {0};
    size_t n = 0;

    roff_text(stdout, heading);
    for (const struct mount_option *row = mount_option_rows; row->name && n < 128; row++) {
        if (row->kind != kind)
            continue;
        snprintf(words[n], sizeof words[n], "--%s", row->name);
        list_add(&list, words[n++]);
    }
    list_end(&list, ".");
}

static void
print_options(void)
{
    roff_begin(stdout, "options");
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if (row->manual)
            roff_option(stdout, row->name, row->alias, row->letter, row->arg, row->arg_may_lack, row->manual);
    }
    roff_help_option(stdout);
    roff_text(stdout, ".SS Options of the stock client");
    print_kind(OPTION_NO_EFFECT, "kiln-mount accepts the following options without effect, because they only "
                                 "tune the internals of the stock client:");
    print_kind(OPTION_NOT_BUILT, ".PP\nIt refuses the following options by name:");
    print_kind(OPTION_UNLESS_OFF, ".PP\nIt accepts these only with a value that says off:");
    roff_end(stdout, "options");
}

static bool
is_supported(const struct mount_option *row)
{
    return row->kind != OPTION_NO_EFFECT && row->kind != OPTION_NOT_BUILT && row->kind != OPTION_UNLESS_OFF;
}

/* Prints the words of one kind, those of kiln-mount's own options first. */
static void
print_words(enum helper_kind kind, bool (*is_wanted)(const struct mount_option *row), const char *after)
{
    struct list list = {0};
    const char *word;

    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if (row->fstab && is_wanted && is_wanted(row))
            list_add(&list, row->fstab);
    }
    for (size_t n = 0; (word = helper_word(kind, n)); n++)
        list_add(&list, word);
    list_end(&list, after);
}

static bool
has_no_effect(const struct mount_option *row)
{
    return row->kind == OPTION_NO_EFFECT;
}

static bool
is_refused(const struct mount_option *row)
{
    return row->kind == OPTION_NOT_BUILT || row->kind == OPTION_UNLESS_OFF;
}

static void
print_fstab_option(const struct mount_option *row, const char *name)
{
    char text[256];

    snprintf(text, sizeof text, ".TP\n.B %s%s%s\nas --%s%s%s", name,
             row->arg ? row->fstab_separator ? "=HOST:HOST..." : "=" : "",
             row->arg && !row->fstab_separator ? row->arg : "", row->name,
             row->arg_may_lack ? ", also without a value" : "",
             row->fstab_is_alone && row->is_of_process ? "; in a process of its own" : "");
    roff_text(stdout, text);
}

static void
print_fstab(void)
{
    roff_begin(stdout, "options of mount(8)");
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if (row->fstab && is_supported(row))
            print_fstab_option(row, row->fstab);
        if (row->fstab_too && is_supported(row))
            print_fstab_option(row, row->fstab_too);
    }
    roff_text(stdout, ".TP\n.B noshared\nuse a separate process\n.TP\n.B for the kernel");
    print_words(HELPER_KERNEL, NULL, "");
    roff_text(stdout, ".TP\n.B accepted without effect");
    print_words(HELPER_IGNORED, has_no_effect, "");
    roff_text(stdout, ".TP\n.B refused by name");
    print_words(HELPER_REFUSED, is_refused,
                ", and every unknown option (with\n.B -s\nmount.kiln ignores unknown options)");
    roff_end(stdout, "options of mount(8)");
}

void
mount_options_print_manual(void)
{
    print_options();
    print_fstab();
}
