/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verb store: definitions of volumes in a file, to take them to another kilnd or to a store. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/kiln.h"

/* The file has passwords of volumes, so only its owner may read it. */
static int
write_export(const char *path, const json_t *answer)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

    if (!f) {
        int err = errno;

        if (fd >= 0)
            close(fd);
        return refuse(KILN_REFUSED, "a new file in a folder that exists", NULL, "%s: %s", path,
                      strerror(err));
    }
    bool is_good = json_dumpf(answer, f, JSON_INDENT(2)) == 0 && fputc('\n', f) != EOF && fflush(f) == 0 &&
                   fsync(fd) == 0;
    int err = errno;
    is_good &= fclose(f) == 0;
    return is_good ? KILN_DONE : refuse(KILN_REFUSED, NULL, NULL, "%s: %s", path, strerror(err));
}

static int
store_export(const char *path)
{
    json_t *answer;
    int status = ask("store-export", json_object(), &answer);

    if (status)
        return status;
    status = path ? write_export(path, answer) : show_json(answer);
    if (!status && path && !kiln_options.is_json)
        printf("%zu volumes are in %s, with their passwords\n",
               json_array_size(json_object_get(answer, "volumes")), path);
    json_decref(answer);
    return status;
}

static const char *
store_text(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);

    return json_is_string(value) ? json_string_value(value) : "-";
}

int
adopt_volume(json_t *volume, json_t *options)
{
    json_t *answer, *left;
    size_t i;
    int status = ask("volume-adopt", json_pack("{so so*}", "volume", volume, "options", options), &answer);

    if (status)
        return status;
    if (kiln_options.is_json) {
        status = show_json(answer);
    } else {
        printf("volume %s: taken over; start it: kiln volume start %s\n", store_text(answer, "name"),
               store_text(answer, "name"));
        json_array_foreach(json_object_get(answer, "left_out"), i, left)
            printf("  left out: %s %s: %s\n", store_text(left, "option"), store_text(left, "value"),
                   store_text(left, "reason"));
    }
    json_decref(answer);
    return status;
}

static int
store_import(const char *path)
{
    json_error_t flaw;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &flaw), *v;
    json_int_t format = json_integer_value(json_object_get(json, "format"));
    int status = KILN_DONE;
    size_t i;

    if (!json || format != 1 || !json_is_array(json_object_get(json, "volumes"))) {
        json_decref(json);
        return refuse(KILN_REFUSED, "a file that kiln store export of this version has written",
                      "kiln store export FILE", "%s cannot be read: %s", path,
                      json ? "another format" : flaw.text);
    }
    json_array_foreach(json_object_get(json, "volumes"), i, v)
    {
        int one = adopt_volume(json_incref(v), NULL);

        status = status ? status : one;
    }
    json_decref(json);
    return status;
}

/* `args`: the place, for an etcd the name of this host, and the file of the password. */
static int
store_move(const struct verb *v, int argc, char **argv)
{
    bool is_folder = *argv[0] == '/';
    json_t *answer;

    if (!is_folder && strncmp(argv[0], "etcd://", 7) != 0 && strncmp(argv[0], "etcds://", 8) != 0)
        return usage(v, "'%.200s' is neither etcd://HOST:PORT nor the absolute path of a folder", argv[0]);
    if (is_folder ? argc != 1 : argc < 2)
        return usage(v, is_folder ? "a folder needs no host" : "a host of a store needs a name");
    int status = ask("store-move",
                     json_pack("{ss ss* ss*}", "to", argv[0], "host", argc > 1 ? argv[1] : NULL,
                               "password_file", argc > 2 ? argv[2] : NULL),
                     &answer);
    if (status)
        return status;
    if (kiln_options.is_json)
        status = show_json(answer);
    else if (is_folder)
        printf("%lld volumes are in %s, verified, and no longer in the store. Start kilnd anew:\n"
               "  kilnd --state=%s\n",
               json_integer_value(json_object_get(answer, "volumes")), argv[0], argv[0]);
    else
        printf("%lld volumes are in %s, verified. Start kilnd anew:\n"
               "  kilnd --store=%s%s%s --host=%s --state=%s\n",
               json_integer_value(json_object_get(answer, "volumes")), store_text(answer, "location"),
               argv[0], argc > 2 ? " --store-password-file=" : "", argc > 2 ? argv[2] : "", argv[1],
               store_text(answer, "state"));
    json_decref(answer);
    return status;
}

int
store(const struct verb *v, int argc, char **argv)
{
    if (strcmp(argv[0], "export") == 0 && argc <= 2)
        return store_export(argc == 2 ? argv[1] : NULL);
    if (strcmp(argv[0], "import") == 0 && argc == 2)
        return store_import(argv[1]);
    if (strcmp(argv[0], "move") == 0 && argc >= 2)
        return store_move(v, argc - 1, argv + 1);
    return usage_of_word(v, argv[0]);
}
