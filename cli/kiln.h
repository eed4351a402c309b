/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln: the operator's command. The declarations that the files of the command share.
 *
 * A verb is a row of one table (verbs.def): a name, the arguments, a help text and a function. The function
 * returns the exit status. A question to kilnd goes over kilnd's management socket as HTTP with JSON (ask.c).
 * The command prints the answer as text for people, or as JSON with --json.
 */
#ifndef KILN_CLI_KILN_H
#define KILN_CLI_KILN_H

#include <jansson.h>
#include <stdbool.h>

enum {
    KILN_DONE = 0,
    KILN_REFUSED = 1,  /* kilnd or the machine refuses */
    KILN_USAGE = 2,    /* the command line is wrong */
    KILN_NO_DAEMON = 3 /* no process answers at the socket */
};

struct exchange;

struct kiln_options {
    const char *socket;
    bool is_json, is_yes;
};
extern struct kiln_options kiln_options;

struct verb {
    const char *name; /* "create"; users may type the word "volume" before a verb about volumes */
    const char *args;
    const char *text; /* a line of help */
    const char *more; /* further lines of the verb's help; NULL: none */
    int min_args, max_args; /* max -1: any number */
    int (*run)(const struct verb *v, int argc, char **argv);
    /* ALONE: not about one volume. Help shows "kiln VERB", for the others "kiln volume VERB". */
    enum { OF_VOLUME, ALONE } about;
};
extern const struct verb verbs[]; /* ends with a row without a name */

/* ---- ask.c ----------------------------------------------------------------------------------- */

/* Takes `args` over (NULL: no memory). Returns 0 with the answer in *answer; the caller drops that reference.
 * On failure prints the error on stderr (with --json on stdout) and returns an exit status. */
int ask(const char *verb, json_t *args, json_t **answer);
/* Like ask(), but prints the formatted text `done` after success; with --json prints the answer. */
int ask_and_say(const char *verb, json_t *args, const char *done, ...) __attribute__((format(printf, 3, 4)));
/* Asks for the rates of the next `ms` milliseconds; 0: the rates since kilnd's start. Returns 0 or -errno;
 * the caller passes that result to top_take(). */
int top_ask(struct exchange *x, unsigned ms);
/* Waits for the answer and ends the exchange. On success returns KILN_DONE with the answer in *rates; the
 * caller drops that reference. With `rates` NULL top_take() prints kilnd's bytes unchanged instead. On
 * failure returns an exit status, and prints the error unless is_quiet. bricks/top-answer.c describes
 * the answer. The texts in *rates are not escaped. */
int top_take(struct exchange *x, int err, json_t **rates, bool is_quiet);
/* Prints the answer as JSON. Returns KILN_DONE, or KILN_REFUSED when the write to stdout fails. */
int show_json(const json_t *answer);
/* Prints "kiln: ERROR", "expected: ..." and "try: ..."; `expected` and `type` may be NULL. With --json
 * prints an object. Returns `status`. */
int refuse(int status, const char *expected, const char *type, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- show.c ---------------------------------------------------------------------------------- */

int show_info(const json_t *answer);
int show_status(const json_t *answer);
int show_quota(const json_t *answer);
int show_list(const json_t *answer);
int show_profile(const json_t *answer);
int show_slow(const json_t *answer);
/* Returns KILN_REFUSED when a brick has flaws or reports an error. */
int show_check(const json_t *answer);
int show_heal(const json_t *answer);
int show_full_heal(const json_t *answer);
int show_resolved(const json_t *answer);
int show_heal_summary(const json_t *answer);
int show_split_brain(const json_t *answer);
int show_heal_statistics(const json_t *answer);
/* Prints text, or JSON with --json. Returns KILN_REFUSED, with a reason, if the rebalance has failed. */
int show_rebalance(const json_t *answer);
int show_options(const json_t *answer);

/* ---- the functions of the table -------------------------------------------------------------- */

#define VERB(name, args, text, more, min_args, max_args, run, about)                                         \
    int run(const struct verb *v, int argc, char **argv);
#include "cli/verbs.def"
#undef VERB

/* upgrade-mounts.c: the process ids; none: all kiln-mounts. The exit status. */
int upgrade_mounts(int argc, char **argv);

/* mount.c: mounts the volume on a temporary folder, calls fn with that folder, and unmounts the volume.
 * Returns fn's result, or an exit status when the mount or the unmount fails. */
int on_own_mount(const char *name, int (*fn)(const char *dir, void *arg), void *arg);
/* store.c: lets kilnd take over a volume whose bricks exist, and prints the result. Takes both arguments
 * over; `options` may be NULL. Returns an exit status. */
int adopt_volume(json_t *volume, json_t *options);
/* tls.c: an exit status, with the error printed. */
/* *pem: the certificate of this machine's authority, which the caller frees, if `name` and `address` can be
 * in a certificate. */
int tls_authority(const char *name, const char *address, char **pem);
/* Makes the file `path`: key and certificate of a host, and the authority's certificate. */
int tls_issue(const char *name, const char *address, const char *path);
/* kiln.c: prints the verb's usage on stderr. Returns KILN_USAGE. */
int usage(const struct verb *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* kiln.c: like usage(), for a verb whose first argument selects a form, as "add" in "kiln host add". Prints
 * the form of a word that the verb knows, because then the number of arguments is wrong, else all forms. */
int usage_of_word(const struct verb *v, const char *word);

#endif
