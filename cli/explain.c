/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln explain: reads a statedump and prints an explanation. The verb asks no daemon, because the file may be
 * of another machine. */
#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/kiln.h"
#include "cli/printable.h"

#define DUMP_BYTES_MAX (256u << 20)

/* Returns the contents of the file or of stdin ("-"). The caller frees the text. NULL: errno says why. */
static char *
read_file(const char *path, size_t *size)
{
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    char *text = NULL, *more;
    size_t room = 0, n;

    *size = 0;
    if (!f)
        return NULL;
    do {
        if (*size == room) {
            room = room ? room * 2 : 65536;
            more = room <= DUMP_BYTES_MAX ? realloc(text, room) : NULL;
            if (!more) {
                errno = room > DUMP_BYTES_MAX ? EFBIG : ENOMEM;
                break;
            }
            text = more;
        }
        n = fread(text + *size, 1, room - *size, f);
        *size += n;
    } while (n > 0);
    bool is_bad = ferror(f) != 0 || *size == room;
    int err = errno;
    if (f != stdin)
        fclose(f);
    if (!is_bad)
        return text;
    free(text);
    errno = err;
    return NULL;
}

static void
show_part(const json_t *all, const char *key, const char *title, const char *none)
{
    const json_t *list = json_object_get(all, key), *sentence;
    size_t i;

    printf("%s\n", title);
    json_array_foreach(list, i, sentence) printf("  %s\n", json_string_value(sentence));
    if (i == 0)
        printf("  %s\n", none);
}

int
explain(const struct verb *v, int argc, char **argv)
{
    size_t size;
    char *text = read_file(argv[0], &size);

    (void)v;
    (void)argc;
    if (!text)
        return refuse(KILN_REFUSED, "a statedump: its text, or what /statedump.json has answered",
                      "kiln statedump", "%s cannot be read: %s", argv[0], strerror(errno));
    json_t *dump = explain_read(text, size), *said = dump ? explain_say(dump) : NULL;
    json_t *all = said && !kiln_options.is_json ? printable(said) : json_incref(said);
    int status = KILN_DONE;
    if (!all) {
        status = refuse(KILN_REFUSED, "a statedump: its text, or what /statedump.json has answered",
                        "kiln statedump", "%s is no statedump", argv[0]);
    } else if (kiln_options.is_json) {
        status = show_json(all);
    } else {
        show_part(all, "waits", "What waits", "Nothing.");
        show_part(all, "slow", "The ten slowest calls of ten minutes", "None took 0.1 ms.");
        show_part(all, "memory", "Where memory is", "The dump does not tell.");
        show_part(all, "bricks", "Bricks", "There is none.");
    }
    json_decref(all);
    json_decref(said);
    json_decref(dump);
    free(text);
    return status;
}
