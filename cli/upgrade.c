/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln upgrade: has kilnd run a newer program, and waits until that program serves. kilnd does not answer
 * between the two programs. Where a glusterd runs several kilnds, all of them are upgraded, one after the
 * other. */
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/exchange.h"
#include "cli/kiln.h"

enum { WAIT_S = 60, LOOK_MS = 20 };

/* Asks without a word about a kilnd that does not answer at this moment. NULL: no answer. */
static json_t *
ask_version(const char *socket)
{
    struct exchange x;
    int err = exchange_begin(&x, socket, "/v1/version", "{}");

    while (!err)
        err = exchange_read(&x);
    json_t *json = err > 0 && x.status == 200 ? json_loadb(x.bytes + x.head, x.body_bytes, 0, NULL) : NULL;

    exchange_end(&x);
    return json;
}

static long
figure(const json_t *answer, const char *key)
{
    return (long)json_integer_value(json_object_get(answer, key));
}

static int
show_upgraded(const json_t *before, const json_t *now)
{
    if (kiln_options.is_json)
        return show_json(now);
    printf("kilnd %s (process %ld) follows %s: %ld connections and %ld open files came along, calls waited "
           "%ld ms\n",
           json_string_value(json_object_get(now, "version")), figure(now, "pid"),
           json_string_value(json_object_get(before, "version")), figure(now, "connections"),
           figure(now, "files"), figure(now, "stall_ms"));
    if (figure(now, "mounts"))
        printf("%ld mounts inside of kilnd go on\n", figure(now, "mounts"));
    if (figure(now, "lost_mounts"))
        printf("%ld mounts inside of kilnd are lost; see: journalctl -u kilnd, and: kiln mount VOLUME DIR "
               "-o inside\n",
               figure(now, "lost_mounts"));
    if (figure(now, "lost_clients"))
        printf("%ld clients have to connect again\n", figure(now, "lost_clients"));
    return KILN_DONE;
}

/* The process's answer. While a program follows another, a further kilnd of the glusterd may take the socket,
 * and the process then answers at the socket with its process id. If the process has ended, as after a crash,
 * the answer is the next kilnd's. NULL: no answer. */
static json_t *
ask_process(long pid)
{
    char own[PATH_MAX];
    json_t *now = ask_version(kiln_options.socket);

    if (now && (figure(now, "pid") == pid || (kill((pid_t)pid, 0) && errno == ESRCH)))
        return now;
    json_decref(now);
    snprintf(own, sizeof own, "%s.%ld", kiln_options.socket, pid);
    now = ask_version(own);
    if (!now || figure(now, "pid") == pid)
        return now;
    json_decref(now);
    return NULL;
}

static int
wait_for_next(const json_t *before)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    long pid = figure(before, "pid");

    for (unsigned ms = 0; ms < WAIT_S * 1000; ms += LOOK_MS) {
        json_t *now = ask_process(pid);
        const char *flaw = json_string_value(json_object_get(now, "upgrade_error"));
        int status = -1;

        if (now && (figure(now, "upgrades") > figure(before, "upgrades") || figure(now, "pid") != pid))
            status = show_upgraded(before, now);
        else if (flaw && *flaw)
            status =
                refuse(KILN_REFUSED, NULL, "kiln upgrade   # later", "the running kilnd goes on: %s", flaw);
        json_decref(now);
        if (status >= 0)
            return status;
        nanosleep(&pause, NULL);
    }
    return refuse(KILN_NO_DAEMON, NULL, "journalctl -u kilnd", "kilnd does not answer after %d seconds",
                  WAIT_S);
}

/* The kilnd at `socket`, whose answer is `before`. kiln_options.socket is the first kilnd's. */
static int
upgrade_daemon(const char *socket, const json_t *before, const char *program)
{
    const char *first = kiln_options.socket;
    json_t *answer;

    kiln_options.socket = socket;
    int status = ask("upgrade", json_pack("{ss*}", "program", program), &answer);

    kiln_options.socket = first;
    json_decref(answer);
    return !status || status == KILN_NO_DAEMON ? wait_for_next(before) : status;
}

/* The further kilnds of a glusterd: their process ids follow the name of the socket (questions.h). A kilnd
 * that was killed has left its socket. Returns the first failure. */
static int
upgrade_further(long first_pid, const char *program)
{
    char pattern[PATH_MAX];
    int status = KILN_DONE;
    glob_t found;

    snprintf(pattern, sizeof pattern, "%s.[0-9]*", kiln_options.socket);
    if (glob(pattern, 0, NULL, &found))
        return KILN_DONE; /* none */
    for (size_t i = 0; i < found.gl_pathc; i++) {
        json_t *before = ask_version(found.gl_pathv[i]);
        int one = before && figure(before, "pid") != first_pid
                      ? upgrade_daemon(found.gl_pathv[i], before, program)
                      : KILN_DONE;

        json_decref(before);
        status = status ? status : one;
    }
    globfree(&found);
    return status;
}

int
upgrade(const struct verb *v, int argc, char **argv)
{
    json_t *before;

    if (argc && strcmp(argv[0], "mounts") == 0)
        return upgrade_mounts(argc - 1, argv + 1);
    const bool is_rolling = argc && strcmp(argv[0], "--rolling") == 0;
    const char *program = argc > is_rolling ? argv[is_rolling] : NULL;

    if (argc > 1 + is_rolling)
        return usage(v, "'%.200s' is one argument too many", argv[1 + is_rolling]);
    if (program && *program == '-')
        return usage(v, "upgrade: there is no option '%.200s'", program);
    if (program && *program != '/')
        return usage(v, "'%.200s' is not the absolute path of a program", program);
    if (is_rolling)
        return ask_and_say("host-upgrade", json_pack("{ss*}", "program", program),
                           "the hosts are being upgraded one after the other; see: kiln job list");
    int status = ask("version", json_object(), &before);

    if (status)
        return status;
    long pid = figure(before, "pid");

    status = upgrade_daemon(kiln_options.socket, before, program);
    json_decref(before);
    int further = upgrade_further(pid, program);

    return status ? status : further;
}
