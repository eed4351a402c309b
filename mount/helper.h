/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* helper: what mount(8) runs, mount.kiln, is kiln-mount under another name: its words are made into those of
 * kiln-mount's command line. */
#ifndef KILN_MOUNT_HELPER_H
#define KILN_MOUNT_HELPER_H

#include <stdbool.h>
#include <stddef.h>

/* Was the program called as mount(8)'s helper? */
bool helper_is_wanted(const char *program);

#define HELPER_WORDS_MAX 128
#define HELPER_USAGE "usage: mount.kiln SOURCE DIR [-fnrsvw] [-t TYPE] [-o OPTIONS]"

struct helper {
    char *words[HELPER_WORDS_MAX + 1]; /* of the command line, NULL at the end; each is its own */
    int count;
    bool is_alone; /* noshared, or an option of the process, such as log-file */
    bool is_fake;  /* -f: nothing is to be mounted */
    bool is_help;  /* --help */
    char error[512];
};

/* SOURCE DIR [-fnrsvw] [-t TYPE] [-o OPTION[=VALUE],...]. 0, or the exit status with h->error (1: a bad
 * option; 2: no place to mount on). */
int helper_translate(struct helper *h, int argc, char **argv);
void helper_free(struct helper *h);

#endif
