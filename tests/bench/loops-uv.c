/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The ten children of loops-pump.c by libuv: uv_spawn() and a pipe for each, one loop for all. Each pipe has
 * a buffer of 64 KiB for the whole run. Built with -DLOOPS_UV where the package libuv1-dev is installed. */
#include "loops-bench.h"

#ifdef LOOPS_UV

#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <uv.h>

enum { BLOCK_BYTES = 65536 };

struct uv_child {
    uv_process_t process;
    uv_pipe_t pipe;
    char *block;
    ten_take take;
    void *arg;
};

static void
uv_hand_block(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct uv_child *c = handle->data;

    (void)suggested;
    *buf = uv_buf_init(c->block, BLOCK_BYTES);
}

static void
uv_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct uv_child *c = stream->data;

    if (count > 0)
        c->take(c->arg, buf->base, (size_t)count);
    if (count < 0) {
        must(count == UV_EOF, "uv_read");
        uv_close((uv_handle_t *)stream, NULL);
    }
}

static void
uv_ended(uv_process_t *process, int64_t status, int sig)
{
    must(status == 0 && sig == 0, "child");
    uv_close((uv_handle_t *)process, NULL);
}

void
ten_by_uv(char *argv[], unsigned count, ten_take take, void *const *args, struct allocations *started)
{
    struct uv_child *children = calloc(count, sizeof *children);
    uv_loop_t loop;

    must(children && uv_loop_init(&loop) == 0, "uv_loop_init");
    for (unsigned i = 0; i < count; i++) {
        struct uv_child *c = &children[i];
        uv_stdio_container_t stdio[3] = {
            {.flags = UV_IGNORE},
            {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&c->pipe},
            {.flags = UV_INHERIT_FD, .data.fd = 2}};
        uv_process_options_t o = {
            .file = "/proc/self/exe", .args = argv, .stdio = stdio, .stdio_count = 3, .exit_cb = uv_ended};

        *c = (struct uv_child){.block = malloc(BLOCK_BYTES), .take = take, .arg = args[i]};
        must(c->block && uv_pipe_init(&loop, &c->pipe, 0) == 0, "uv_pipe_init");
        c->pipe.data = c;
        must(uv_spawn(&loop, &c->process, &o) == 0, "uv_spawn");
        must(uv_read_start((uv_stream_t *)&c->pipe, uv_hand_block, uv_bytes) == 0, "uv_read_start");
    }
    *started = allocations_now();
    must(uv_run(&loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&loop) == 0, "uv_run");
    for (unsigned i = 0; i < count; i++)
        free(children[i].block);
    free(children);
}

#else

void
ten_by_uv(char *argv[], unsigned count, ten_take take, void *const *args, struct allocations *started)
{
    (void)argv, (void)count, (void)take, (void)args, (void)started;
    must(false, "built without libuv");
}

#endif
