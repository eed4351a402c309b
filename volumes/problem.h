/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* problem: why something that an operator asked for was refused: what was wrong, what was expected, what to
 * type. */
#ifndef KILN_VOLUMES_PROBLEM_H
#define KILN_VOLUMES_PROBLEM_H

struct problem {
    int err; /* 0: none; else -errno */
    char wrong[768];
    char expected[512]; /* "": nothing to say, as the next */
    char type[512];     /* a command line */
};

/* Sets `wrong` and empties the other two; returns `err`, a negative errno. */
int problem_set(struct problem *p, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* To one that is set. */
void problem_expected(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void problem_type(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* -ENOMEM, in words. */
int problem_no_memory(struct problem *p);

#endif
