/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* helper: mount(8) runs mount.kiln, which is kiln-mount under another name. This module translates mount(8)'s
 * command line into kiln-mount's command line. */
#ifndef KILN_MOUNT_HELPER_H
#define KILN_MOUNT_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/* Tells whether the program was called as mount(8)'s helper. */
bool helper_is_wanted(const char *program);

#define HELPER_WORDS_MAX 128
#define HELPER_USAGE "usage: mount.kiln SOURCE DIR [-fnrsvw] [-t TYPE] [-o OPTIONS]"

struct helper {
    char *words[HELPER_WORDS_MAX + 1]; /* allocated words of the command line, NULL at the end */
    int count;
    bool is_alone; /* noshared, or an option of the process, such as log-file */
    bool is_fake;  /* -f: nothing is to be mounted */
    bool is_help;  /* --help */
    char error[512];
};

/* Translates SOURCE DIR [-fnrsvw] [-t TYPE] [-o OPTION[=VALUE],...]. Returns 0, or the exit status with the
 * reason in h->error (1: a bad option; 2: no place to mount on). */
int helper_translate(struct helper *h, int argc, char **argv);
void helper_free(struct helper *h);

/* The words of mount(8) that are no options of kiln-mount (option-table.h). */
enum helper_kind {
    HELPER_ALONE,  /* asks for a process of its own */
    HELPER_KERNEL, /* for mount(2): --fuse-mountopts */
    HELPER_IGNORED,
    HELPER_REFUSED
};

/* Returns the n-th word of a kind, from 0, for the manual page. NULL: there are fewer. */
const char *helper_word(enum helper_kind kind, size_t n);

#endif
