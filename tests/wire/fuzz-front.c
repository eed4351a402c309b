/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* libFuzzer's way into what a kilnd with --state reads: the files of its state folder, and keys and values of
 * options. The first byte says which. What is taken must make volfiles that can be read, and come back from
 * its own text as it was: so no name, path or value gets out of its place in a volfile.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "graph/volfile.h"
#include "volumes/state-dir.h"
#include "volumes/volfile-text.h"
#include "volumes/volume-options.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes the text over. */
static void
must_parse(char *text, size_t sections)
{
    char error[512];
    struct volfile *v = text ? volfile_parse("fuzz", text, strlen(text), error, sizeof error) : NULL;

    if (text && (!v || (sections && v->section_count != sections)))
        abort();
    volfile_free(v);
    free(text);
}

static bool
is_all_allowed(const struct volume *v)
{
    struct problem why;

    for (unsigned i = 0; i < v->option_count; i++) {
        if (volume_option_check(v, v->options[i].key, v->options[i].value, &why))
            return false;
    }
    return true;
}

static void
use(const struct volume *v)
{
    const struct volfile_place here = {"192.0.2.1", false};
    unsigned layers = 17 + volume_option_bool(v, "features.acl");

    if (!is_all_allowed(v)) /* nobody can have set that: the file was written by hand */
        return;
    must_parse(volfile_text_brick(v, 0, 1), layers);
    must_parse(volfile_text_client(v, &here), 0);
    must_parse(volfile_text_heal(v, 49152), 0);
}

static void
run_state(const char *text, size_t size)
{
    struct problem why;
    struct volume *v = state_dir_parse(text, size, &why), *again;

    if (!v)
        return;
    use(v);
    json_t *json = volume_to_json(v), *back;
    if (!json || !(again = volume_from_json(json, &why)) || !(back = volume_to_json(again)))
        abort();
    if (!json_equal(json, back))
        abort();
    json_decref(json);
    json_decref(back);
    volume_free(again);
    volume_free(v);
}

/* "key\0value" */
static void
run_option(const char *text, size_t size)
{
    struct volume *v = volume_new("v", 2, false);
    struct problem why;
    size_t key = strlen(text);

    if (!v || volume_add_brick(v, "", "/b/1", false) || volume_add_brick(v, "", "/b/2", false))
        abort();
    const char *value = key < size ? text + key + 1 : "";
    (void)volume_key_like(text);
    if (volume_option_check(v, text, value, &why) == 0) {
        if (volume_set_option(v, text, value))
            abort();
        use(v);
    }
    volume_free(v);
}

static void
run_path(const char *text)
{
    char normal[VOLUME_BRICK_PATH_MAX + 1], again[VOLUME_BRICK_PATH_MAX + 1];
    struct problem why;

    (void)volume_check_name(text, &why);
    if (volume_check_path(text, normal, &why))
        return;
    if (volume_check_path(normal, again, &why) || strcmp(normal, again) != 0)
        abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    /* A copy of its own size, so that ASan sees a step outside; with a NUL. */
    char *text = malloc(size);

    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 3) {
    case 0:
        run_state(text, size - 1);
        break;
    case 1:
        run_option(text, size - 1);
        break;
    default:
        run_path(text);
    }
    free(text);
    return 0;
}
