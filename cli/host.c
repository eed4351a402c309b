/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verbs host and job: the hosts that share a store, and long work over several of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/kiln.h"

static const char *
host_text(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return json_is_string(value) ? json_string_value(value) : "-";
}

static const char *
host_state(const json_t *host)
{
    if (json_is_string(json_object_get(host, "refused")))
        return "refused";
    if (json_is_true(json_object_get(host, "alive")))
        return "up";
    return json_is_true(json_object_get(host, "registered")) ? "down" : "added";
}

static void
show_hosts(const json_t *answer)
{
    const json_t *store = json_object_get(answer, "store"), *host;
    size_t i;

    printf("%-32s %-7s %-7s %-12s %-19s  %s\n", "Host", "State", "Bricks", "Version", "Since", "Address");
    json_array_foreach(json_object_get(answer, "hosts"), i, host)
    {
        time_t since = (time_t)json_integer_value(json_object_get(host, "since"));
        bool is_up = json_is_true(json_object_get(host, "alive"));
        struct tm tm;
        char when[64] = "-";

        if (is_up && localtime_r(&since, &tm))
            strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &tm);
        const char *refused = json_string_value(json_object_get(host, "refused"));
        printf("%-32s %-7s %-7lld %-12s %-19s  %s%s\n", host_text(host, "name"), host_state(host),
               (long long)json_integer_value(json_object_get(host, "bricks")), host_text(host, "version"),
               when, json_string_value(json_object_get(host, "address")) ? host_text(host, "address") : "",
               json_is_true(json_object_get(host, "self")) ? "  (this host)" : "");
        if (refused)
            printf("  %s\n", refused);
    }
    if (strcmp(host_text(store, "state"), "answers") == 0)
        printf("Store: %s\n", host_text(store, "location"));
    else
        printf("Store: %s does not answer: the list may be old, and nothing can change\n  %s\n",
               host_text(store, "location"), host_text(store, "reason"));
}

static int
host_list(void)
{
    json_t *answer;
    int status = ask("host-list", json_object(), &answer);

    if (status)
        return status;
    if (kiln_options.is_json)
        status = show_json(answer);
    else
        show_hosts(answer);
    json_decref(answer);
    return status;
}

/* The store learns of the host first: a second run makes the file if this one dies between the two. */
static int
host_add(const char *name, const char *address, const char *given)
{
    char path[400], *authority;
    json_t *answer;

    snprintf(path, sizeof path, "%s", given ? given : name);
    if (!given)
        snprintf(path, sizeof path, "%.300s.pem", name);
    int status = tls_authority(name, address, &authority);
    if (!status && access(path, F_OK) == 0) {
        status = refuse(KILN_REFUSED, "the path of a file that does not exist", NULL, "%s exists", path);
        free(authority);
    }
    if (status)
        return status;
    status = ask("host-add",
                 json_pack("{ss ss ss}", "host", name, "address", address, "authority", authority), &answer);
    free(authority);
    if (status)
        return status;
    if (!(status = tls_issue(name, address, path)) && kiln_options.is_json)
        status = show_json(answer);
    else if (!status)
        printf("host %s is added; %s has its certificate and its key. Copy the file to %s and run there:\n"
               "  kiln tls take %s\n"
               "  kilnd --store=%s --host=%s\n",
               name, path, name, path, host_text(answer, "location"), name);
    json_decref(answer);
    return status;
}

int
host(const struct verb *v, int argc, char **argv)
{
    if (strcmp(argv[0], "list") == 0 && argc == 1)
        return host_list();
    if (strcmp(argv[0], "add") == 0 && argc >= 3)
        return host_add(argv[1], argv[2], argc > 3 ? argv[3] : NULL);
    if (strcmp(argv[0], "drain") == 0 && argc == 2)
        return ask_and_say(
            "host-drain", json_pack("{ss}", "host", argv[1]),
            "the bricks of host %s are being replaced by bricks on other hosts; see: kiln job list", argv[1]);
    if (strcmp(argv[0], "remove") == 0 && argc == 2)
        return ask_and_say("host-remove", json_pack("{ss}", "host", argv[1]), "host %s is removed", argv[1]);
    return usage_of_word(v, argv[0]);
}

static void
show_jobs(const json_t *answer)
{
    const json_t *job;
    size_t i;

    printf("%-36s  %-9s %-16s %-8s %-16s %-9s %s\n", "Job", "Kind", "Of", "State", "Owner", "Done", "");
    json_array_foreach(json_object_get(answer, "jobs"), i, job)
        printf("%-36s  %-9s %-16s %-8s %-16s %lld of %-4lld %s\n", host_text(job, "id"),
               host_text(job, "kind"), host_text(job, json_object_get(job, "volume") ? "volume" : "host"),
               host_text(job, "state"),
               host_text(job, "owner"), (long long)json_integer_value(json_object_get(job, "done")),
               (long long)json_integer_value(json_object_get(job, "total")), host_text(job, "text"));
    if (i == 0)
        printf("No jobs\n");
}

int
job(const struct verb *v, int argc, char **argv)
{
    json_t *answer;

    if (strcmp(argv[0], "stop") == 0 && argc == 2)
        return ask_and_say("job-stop", json_pack("{ss}", "job", argv[1]),
                           "job %s is stopped; the step that it is doing ends first", argv[1]);
    if (strcmp(argv[0], "list") != 0 || argc != 1)
        return usage_of_word(v, argv[0]);
    int status = ask("job-list", json_object(), &answer);
    if (status)
        return status;
    if (kiln_options.is_json)
        status = show_json(answer);
    else
        show_jobs(answer);
    json_decref(answer);
    return status;
}
