/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/hooks.h"

#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/pump.h"
#include "log/log.h"
#include "volumes/heal/child-log.h"

enum { ARGS_MAX = 128, PATH_BYTES = 4352 };

/* written before the first verb runs */
static const char *state_dir;
static unsigned deadline_s = HOOKS_DEADLINE_S;

void
hooks_begin(const char *dir, unsigned seconds)
{
    state_dir = dir;
    deadline_s = seconds;
}

/* ---- one script ------------------------------------------------------------------------------ */

struct hook {
    struct child_log log; /* used by the pump while it runs */
    struct pump_result result;
    sem_t done;
};

static int
log_script_output(void *arg, const char *bytes, size_t count)
{
    struct hook *h = arg;

    child_log_put(&h->log, bytes, count);
    return 0;
}

static void
script_ended(struct pump *p, const struct pump_result *r, void *arg)
{
    struct hook *h = arg;

    (void)p;
    h->result = *r;
    sem_post(&h->done);
}

static void
log_result(const struct hook *h)
{
    const struct pump_result *r = &h->result;

    if (r->error == -ETIMEDOUT)
        log_event(LOG_ERROR, NULL, "hook-deadline", "%s: killed because it ran longer than %u s", h->log.name,
                  deadline_s);
    else if (r->error)
        log_event(LOG_ERROR, NULL, "hook-failed", "%s could not be run: %s", h->log.name,
                  strerror(-r->error));
    else if (r->signal)
        log_event(LOG_ERROR, NULL, "hook-killed", "%s: ended by signal %d", h->log.name, r->signal);
    else if (r->exit_code)
        log_event(LOG_ERROR, NULL, "hook-status", "%s: exit status %d", h->log.name, r->exit_code);
}

static void
run_script(const char *path, char *const *argv)
{
    struct hook h = {0};
    const struct pump_options o = {.path = path,
                                   .argv = argv,
                                   .out = {.kind = PUMP_FN, .fn = log_script_output},
                                   .err = {.kind = PUMP_SAME},
                                   .timeout_ms = deadline_s * 1000,
                                   .buffer_bytes = 4096,
                                   .done = script_ended,
                                   .arg = &h};

    child_log_begin(&h.log, "hook %s", path + strlen(state_dir) + strlen("/hooks/"));
    sem_init(&h.done, 0, 0);
    int err = pump_start(&o, NULL);
    if (err) {
        h.result.error = err;
    } else {
        while (sem_wait(&h.done) < 0)
            continue;
        child_log_end(&h.log);
    }
    sem_destroy(&h.done);
    log_result(&h);
}

/* ---- which, and with what -------------------------------------------------------------------- */

static bool
is_ours_alone(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

static bool
may_run(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IXUSR))
        return false;
    if (is_ours_alone(&st))
        return true;
    log_event(LOG_ERROR, NULL, "hook-owner", "%s is not run: expected a file that user %u alone may write",
              path, (unsigned)geteuid());
    return false;
}

static int
is_script(const struct dirent *e)
{
    return e->d_name[0] == 'S';
}

static void
run_scripts(const char *dir, char **argv)
{
    struct dirent **found = NULL;
    int n = scandir(dir, &found, is_script, alphasort);
    char path[PATH_BYTES];

    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", dir, found[i]->d_name) < (int)sizeof path && may_run(path)) {
            argv[0] = path;
            run_script(path, argv);
        }
        free(found[i]);
    }
    free(found);
}

/* Appends "-o", "KEY=VALUE" for each option to `words`. Returns the number of words. The caller frees each
 * of `owned`. */
static unsigned
option_words(const json_t *args, char **words, char **owned, unsigned *owned_count)
{
    unsigned n = 0;
    const char *key;
    json_t *value;

    json_object_foreach(json_object_get(args, "options"), key, value)
    {
        static char option[] = "-o";
        char *text;

        if (n + 2 > ARGS_MAX || !json_is_string(value) ||
            asprintf(&text, "%s=%s", key, json_string_value(value)) < 0)
            continue;
        owned[(*owned_count)++] = text;
        words[n++] = option;
        words[n++] = text;
    }
    return n;
}

void
hooks_run(const char *verb, const char *when, const json_t *args)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    char dir[PATH_BYTES - 256], volume[512], *argv[ARGS_MAX + 3] = {NULL, volume}, *owned[ARGS_MAX];
    unsigned owned_count = 0;
    struct stat st;

    if (!state_dir || !name ||
        snprintf(dir, sizeof dir, "%s/hooks/%s/%s", state_dir, verb, when) >= (int)sizeof dir ||
        stat(dir, &st) < 0)
        return;
    if (!S_ISDIR(st.st_mode) || !is_ours_alone(&st)) {
        log_event(LOG_ERROR, NULL, "hooks-folder",
                  "%s: no hook is run: expected a folder that user %u alone may write", dir,
                  (unsigned)geteuid());
        return;
    }
    snprintf(volume, sizeof volume, "--volname=%s", name);
    (void)option_words(args, argv + 2, owned, &owned_count);
    run_scripts(dir, argv);
    while (owned_count > 0)
        free(owned[--owned_count]);
}
