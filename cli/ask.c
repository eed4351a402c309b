/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exchange.h"
#include "cli/kiln.h"
#include "cli/printable.h"

/* ---- output ---------------------------------------------------------------------------------- */

int
show_json(const json_t *answer)
{
    /* Prints one text, because json_dumpf() writes each token of hundreds of kilobytes by a call. */
    char *text = json_dumps(answer, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    bool is_shown = text && puts(text) != EOF && fflush(stdout) == 0;

    free(text);
    if (is_shown)
        return KILN_DONE;
    perror("kiln: standard output");
    return KILN_REFUSED;
}

static void
say_refusal(const char *wrong, const char *expected, const char *type)
{
    if (kiln_options.is_json) {
        json_t *json = json_pack("{ss ss* ss*}", "error", wrong, "expected", expected, "try", type);

        if (json)
            (void)show_json(json);
        json_decref(json);
        return;
    }
    fprintf(stderr, "kiln: %s\n", wrong);
    if (expected)
        fprintf(stderr, "  expected: %s\n", expected);
    if (type)
        fprintf(stderr, "  try:      %s\n", type);
}

int
refuse(int status, const char *expected, const char *type, const char *fmt, ...)
{
    char wrong[1024];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(wrong, sizeof wrong, fmt, ap);
    va_end(ap);
    say_refusal(wrong, expected, type);
    return status;
}

/* ---- kilnd ----------------------------------------------------------------------------------- */

/* Waits without a limit, because kilnd may have to attach many bricks. */
static int
read_all(struct exchange *x, int err)
{
    while (!err)
        err = exchange_read(x);
    return err < 0 ? err : 0;
}

static const char *
words_of(int err)
{
    return err == -EPROTO ? "that is no answer of kilnd's" : strerror(-err);
}

static int
no_daemon(int err)
{
    char start[512];

    snprintf(start, sizeof start, "systemctl start kilnd   # or kilnd --state /var/lib/kiln%s%s",
             kiln_options.socket ? " --management-socket=" : "",
             kiln_options.socket ? kiln_options.socket : "");
    return refuse(
        KILN_NO_DAEMON,
        "a kilnd with this management socket (under a glusterd: in /etc/kiln/kilnd.conf), and to be root",
        start, "kilnd does not answer at %s: %s", kiln_options.socket, words_of(err));
}

static int
refused_by_daemon(const json_t *answer, unsigned status)
{
    const char *wrong = json_string_value(json_object_get(answer, "error"));

    if (!wrong)
        return refuse(KILN_REFUSED, "a kilnd of version " PACKAGE_VERSION, NULL,
                      "kilnd's answer (status %u) cannot be understood", status);
    say_refusal(wrong, json_string_value(json_object_get(answer, "expected")),
                json_string_value(json_object_get(answer, "try")));
    return KILN_REFUSED;
}

/* Parses the answer's body. NULL: the body is not JSON, or there is no memory. */
static json_t *
read_json(const struct exchange *x)
{
    return json_loadb(x->bytes + x->head, x->body_bytes, 0, NULL);
}

/* Escapes control characters in an answer for people. The encoder of JSON escapes an answer for --json. */
static json_t *
read_answer(const struct exchange *x)
{
    json_t *json = read_json(x);
    json_t *shown = json && !kiln_options.is_json ? printable(json) : json_incref(json);

    json_decref(json);
    return shown;
}

/* Prints the error of a failed exchange or of kilnd's refusal, unless is_quiet. Drops the reference to
 * `json`. Returns an exit status. */
static int
no_answer(int err, json_t *json, unsigned status, bool is_quiet)
{
    int result = err ? KILN_NO_DAEMON : KILN_REFUSED;

    if (!is_quiet)
        result = err ? no_daemon(err) : refused_by_daemon(json, status);
    json_decref(json);
    return result;
}

int
ask(const char *verb, json_t *args, json_t **answer)
{
    char *body = args ? json_dumps(args, JSON_COMPACT) : NULL, path[128];
    struct exchange x;

    json_decref(args);
    *answer = NULL;
    if (!body)
        return refuse(KILN_REFUSED, "text in UTF-8", NULL, "the arguments cannot be sent");
    snprintf(path, sizeof path, "/v1/%s", verb);
    int err = read_all(&x, exchange_begin(&x, kiln_options.socket, path, body));
    json_t *json = err ? NULL : read_answer(&x);
    unsigned status = x.status;
    exchange_end(&x);
    free(body);
    if (err || status != 200 || !json)
        return no_answer(err, json, status, false);
    *answer = json;
    return KILN_DONE;
}

/* ---- top ------------------------------------------------------------------------------------- */

/* The slowest calls of all bricks together. A brick keeps sixteen; a thousand bricks have too many to
 * read. */
enum { SLOWEST = 100 };

int
top_ask(struct exchange *x, unsigned ms)
{
    char path[64];

    snprintf(path, sizeof path, "/top-hosts?ms=%u&slow=%d", ms, SLOWEST);
    return exchange_begin(x, kiln_options.socket, path, NULL);
}

static int
show_top(const struct exchange *x)
{
    if (fwrite(x->bytes + x->head, 1, x->body_bytes, stdout) == x->body_bytes && fflush(stdout) == 0)
        return KILN_DONE;
    perror("kiln: standard output");
    return KILN_REFUSED;
}

int
top_take(struct exchange *x, int err, json_t **rates, bool is_quiet)
{
    err = read_all(x, err);
    bool is_well = !err && x->status == 200;
    json_t *json = !err && (rates || !is_well) ? read_json(x) : NULL;
    int status = KILN_DONE;

    if (rates)
        *rates = NULL;
    if (!is_well || (rates && !json))
        status = no_answer(err, json, x->status, is_quiet);
    else if (rates)
        *rates = json;
    else
        status = show_top(x);
    exchange_end(x);
    return status;
}

int
ask_and_say(const char *verb, json_t *args, const char *done, ...)
{
    json_t *answer;
    int status = ask(verb, args, &answer);
    va_list ap;

    if (status)
        return status;
    if (kiln_options.is_json) {
        status = show_json(answer);
    } else {
        va_start(ap, done);
        vprintf(done, ap);
        va_end(ap);
        putchar('\n');
    }
    json_decref(answer);
    return status;
}
