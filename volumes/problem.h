/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* problem: explains to an operator why a request was refused: the error, the expected value, and a command
 * to type. */
#ifndef KILN_VOLUMES_PROBLEM_H
#define KILN_VOLUMES_PROBLEM_H

struct problem {
    int err; /* 0: no problem; else -errno */
    char wrong[768];
    char expected[512]; /* "": nothing to say, like the next field */
    char type[512];     /* a command line */
};

/* Sets `wrong` and empties the other two fields. Returns `err`, a negative errno. */
int problem_set(struct problem *p, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Add to a problem that is already set. */
void problem_expected(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void problem_type(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Sets the problem "no memory". Returns -ENOMEM. */
int problem_no_memory(struct problem *p);
/* Adds to `wrong`, as far as there is room; "; " divides the texts. */
void problem_also(struct problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
