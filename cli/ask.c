/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include <curl/curl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kiln.h"
#include "cli/printable.h"

#define ANSWER_MAX (64u << 20)

/* ---- what is said ---------------------------------------------------------------------------- */

int
show_json(const json_t *answer)
{
    /* In one piece: hundreds of kilobytes are a token each for json_dumpf(). */
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
        json_t *json = json_pack("{ss ss* ss*}", "error", wrong, "expected", expected, "type", type);

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

/* ---- HTTP ------------------------------------------------------------------------------------ */

struct bytes {
    char *at;
    size_t size;
};

static size_t
take(char *data, size_t one, size_t count, void *arg)
{
    struct bytes *b = arg;
    size_t size = one * count;
    char *more = b->size + size < ANSWER_MAX ? realloc(b->at, b->size + size + 1) : NULL;

    if (!more)
        return 0;
    memcpy(more + b->size, data, size);
    b->at = more;
    b->size += size;
    more[b->size] = '\0';
    return size;
}

/* `body` NULL: GET. */
static CURLcode
set_all(CURL *curl, const char *url, const char *body, struct curl_slist *headers, struct bytes *answer)
{
    CURLcode err = curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, kiln_options.socket);

    err = err ? err : curl_easy_setopt(curl, CURLOPT_URL, url);
    err = err ? err : curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    err = err ? err : curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
    if (body) {
        err = err ? err : curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        err = err ? err : curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)strlen(body));
        err = err ? err : curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    }
    err = err ? err : curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
    err = err ? err : curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    return err ? err : curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
}

/* Waits for as long as kilnd works: it may attach many bricks. */
static CURLcode
exchange(const char *path, const char *body, struct bytes *answer, long *status)
{
    char url[256];
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    CURLcode err = curl && headers ? CURLE_OK : CURLE_OUT_OF_MEMORY;

    snprintf(url, sizeof url, "http://kilnd%s", path);
    err = err ? err : set_all(curl, url, body, headers, answer);
    err = err ? err : curl_easy_perform(curl);
    err = err ? err : curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return err;
}

static int
no_daemon(CURLcode err)
{
    char start[512];

    snprintf(start, sizeof start, "systemctl start kilnd   # or kilnd --state /var/lib/kiln%s%s",
             kiln_options.socket ? " --management-socket=" : "",
             kiln_options.socket ? kiln_options.socket : "");
    return refuse(KILN_NO_DAEMON, "a kilnd with --state that listens there, and to be root", start,
                  "kilnd does not answer at %s: %s", kiln_options.socket, curl_easy_strerror(err));
}

static int
refused_by_daemon(const json_t *answer, long status)
{
    const char *wrong = json_string_value(json_object_get(answer, "error"));

    if (!wrong)
        return refuse(KILN_REFUSED, "a kilnd of version " PACKAGE_VERSION, NULL,
                      "kilnd's answer (status %ld) cannot be understood", status);
    say_refusal(wrong, json_string_value(json_object_get(answer, "expected")),
                json_string_value(json_object_get(answer, "type")));
    return KILN_REFUSED;
}

/* What people are shown can be shown; JSON escapes by itself. NULL: not JSON, or no memory. */
static json_t *
read_answer(const struct bytes *bytes)
{
    json_t *json = bytes->at ? json_loadb(bytes->at, bytes->size, 0, NULL) : NULL;
    json_t *shown = json && !kiln_options.is_json ? printable(json) : json_incref(json);

    json_decref(json);
    return shown;
}

/* Said of an answer that is an error, or none; `json` is given back. An exit status. */
static int
no_answer(CURLcode err, json_t *json, long status, bool is_quiet)
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

    json_decref(args);
    *answer = NULL;
    if (!body)
        return refuse(KILN_REFUSED, "text in UTF-8", NULL, "the arguments cannot be sent");
    snprintf(path, sizeof path, "/v1/%s", verb);
    struct bytes bytes = {0};
    long status = 0;
    CURLcode err = exchange(path, body, &bytes, &status);
    json_t *json = err ? NULL : read_answer(&bytes);
    free(bytes.at);
    free(body);
    if (err || status != 200 || !json)
        return no_answer(err, json, status, false);
    *answer = json;
    return KILN_DONE;
}

/* The first line is JSON, all behind it becomes its member "lines". NULL: it is not, or no memory. */
static json_t *
read_top(const struct bytes *bytes)
{
    const char *end = bytes->at ? memchr(bytes->at, '\n', bytes->size) : NULL;
    size_t size = end ? (size_t)(end - bytes->at) : 0;
    json_t *json = end ? json_loadb(bytes->at, size, 0, NULL) : NULL;

    if (json &&
        json_object_set_new(json, "lines", json_stringn_nocheck(end + 1, bytes->size - size - 1)) == 0)
        return json;
    json_decref(json);
    return NULL;
}

int
ask_top(unsigned slow, json_t **sample, bool is_quiet)
{
    struct bytes bytes = {0};
    char path[64];
    long status = 0;

    *sample = NULL;
    snprintf(path, sizeof path, "/top?slow=%u", slow);
    CURLcode err = exchange(path, NULL, &bytes, &status);
    json_t *json = err ? NULL : status == 200 ? read_top(&bytes) : read_answer(&bytes);
    free(bytes.at);
    if (err || status != 200 || !json)
        return no_answer(err, json, status, is_quiet);
    *sample = json;
    return KILN_DONE;
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
