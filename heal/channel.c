/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "heal/channel.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "heal/heal-volume.h"
#include "heal/rebalance-jobs.h"
#include "log/log.h"

enum { LINE_MAX_BYTES = 64 * 1024 * 1024, READ_BYTES = 64 * 1024 };

static pthread_mutex_t send_lock = PTHREAD_MUTEX_INITIALIZER; /* keeps lines whole */

static void
write_whole(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, count);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* kilnd has gone: the main thread sees that, too */
        bytes += n;
        count -= (size_t)n;
    }
}

void
channel_answer(json_int_t id, json_t *answer)
{
    int err = answer ? json_object_set_new(answer, "id", json_integer(id)) : -1;
    char *line = err ? NULL : json_dumps(answer, JSON_COMPACT);

    json_decref(answer);
    if (!line)
        return;
    pthread_mutex_lock(&send_lock);
    write_whole(line, strlen(line));
    write_whole("\n", 1);
    pthread_mutex_unlock(&send_lock);
    free(line);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void
take_volume(const char *name, bool heals, const json_t *sets)
{
    size_t count = json_array_size(sets), whole = 0;
    char **texts = calloc(count + 1, sizeof *texts);

    for (; texts && whole < count; whole++) {
        texts[whole] = (char *)json_string_value(json_array_get(sets, whole)); /* stays the message's */
        if (!texts[whole])
            break;
    }
    if (!texts || !count || whole < count)
        log_event(LOG_ERROR, NULL, "channel-volume", "volume %s is not healed: %s", name,
                  texts ? "a volfile is missing in the message" : "no memory");
    else
        (void)heal_volume_add(name, heals, texts, count); /* it logs */
    free(texts);
}

static void
execute(const char *line, size_t bytes)
{
    json_error_t error;
    json_t *message = json_loadb(line, bytes, 0, &error);
    const char *what = json_string_value(json_object_get(message, "do"));
    const char *name = json_string_value(json_object_get(message, "name"));

    if (!what || !name)
        log_event(LOG_ERROR, NULL, "channel-message", "a message of kilnd cannot be read: %s",
                  message ? "expected the members do and name" : error.text);
    else if (strcmp(what, "volume") == 0)
        take_volume(name, json_is_true(json_object_get(message, "heals")), json_object_get(message, "sets"));
    else if (strcmp(what, "drop") == 0)
        heal_volume_drop(name);
    else if (strcmp(what, "rebalance") == 0)
        rebalance_jobs_take(message);
    else if (strcmp(what, "drop-rebalance") == 0)
        rebalance_jobs_drop(name);
    else
        answer_question(message);
    json_decref(message);
}

/* ---- lines ----------------------------------------------------------------------------------- */

struct line_buffer {
    char *bytes;
    size_t count, room, looked; /* looked: bytes without a newline */
};

/* Returns false at the end of the channel. */
static bool
read_more(struct line_buffer *b)
{
    if (b->room - b->count < READ_BYTES) {
        size_t room = b->room ? 2 * b->room : 2 * READ_BYTES;
        char *bytes = room <= LINE_MAX_BYTES ? realloc(b->bytes, room) : NULL;

        if (!bytes) {
            log_event(LOG_CRITICAL, NULL, "channel-memory", "a message of kilnd needs too much memory");
            return false;
        }
        b->bytes = bytes;
        b->room = room;
    }
    ssize_t n;
    do
        n = read(STDIN_FILENO, b->bytes + b->count, READ_BYTES);
    while (n < 0 && errno == EINTR);
    b->count += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static void
execute_lines(struct line_buffer *b)
{
    size_t done = 0;
    char *end;

    while ((end = memchr(b->bytes + b->looked, '\n', b->count - b->looked))) {
        execute(b->bytes + done, (size_t)(end - b->bytes) - done);
        done = b->looked = (size_t)(end - b->bytes) + 1;
    }
    memmove(b->bytes, b->bytes + done, b->count - done);
    b->count -= done;
    b->looked = b->count;
    if (b->count == 0 && b->room > 2 * READ_BYTES) { /* after the volfile of a large volume */
        free(b->bytes);
        *b = (struct line_buffer){0};
    }
}

void
channel_serve(void)
{
    struct line_buffer b = {0};

    channel_answer(0, json_pack("{sI}", "pid", (json_int_t)getpid()));
    while (read_more(&b))
        execute_lines(&b);
    free(b.bytes);
}
