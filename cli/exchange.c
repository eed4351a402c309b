/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "cli/exchange.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { ROOM_FIRST = 64 << 10 };

/* ---- the question ---------------------------------------------------------------------------- */

static int
exchange_connect(const char *socket_name)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};

    if (strlen(socket_name) >= sizeof name.sun_path)
        return -ENAMETOOLONG;
    strcpy(name.sun_path, socket_name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&name, sizeof name)) {
        int err = -errno;

        close(fd);
        return err;
    }
    return fd < 0 ? -errno : fd;
}

/* Returns 0 when kilnd closes the connection before the last byte is sent, because kilnd may have answered
 * already. exchange_read() then finds the answer or the end of the connection. */
static int
send_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return errno == EPIPE || errno == ECONNRESET ? 0 : -errno;
        bytes += sent;
        size -= (size_t)sent;
    }
    return 0;
}

int
exchange_begin(struct exchange *x, const char *socket_name, const char *path, const char *body)
{
    char head[512], about_body[96] = "";

    *x = (struct exchange){.fd = exchange_connect(socket_name)};
    if (x->fd < 0)
        return x->fd;
    if (body)
        snprintf(about_body, sizeof about_body, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                 strlen(body));
    int len = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: kilnd\r\nConnection: close\r\n%s\r\n",
                       body ? "POST" : "GET", path, about_body);
    if ((size_t)len >= sizeof head)
        return -EINVAL;
    int err = send_all(x->fd, head, (size_t)len);
    return err || !body ? err : send_all(x->fd, body, strlen(body));
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Makes room for the next piece of the answer and for the 0 behind that piece. */
static int
make_room(struct exchange *x)
{
    size_t wanted = x->room ? 2 * x->room : ROOM_FIRST;

    if (x->room - x->size > ROOM_FIRST / 2)
        return 0;
    if (x->size >= EXCHANGE_MAX)
        return -EMSGSIZE;
    char *more = realloc(x->bytes, wanted);
    if (!more)
        return -ENOMEM;
    x->bytes = more;
    x->room = wanted;
    return 0;
}

/* Reads "HTTP/1.1 200 OK" and the header "Content-Length: 12". Returns 0, -EPROTO, or -EMSGSIZE. */
static int
read_head(struct exchange *x)
{
    static const char length[] = "\r\nContent-Length:";
    unsigned long long bytes = 0;
    int end = 0;

    if (sscanf(x->bytes, "HTTP/1.%*1[01] %3u%n", &x->status, &end) != 1 || !end)
        return -EPROTO;
    const char *at = strcasestr(x->bytes, length);
    if (!at || at >= x->bytes + x->head || sscanf(at + strlen(length), " %20llu", &bytes) != 1)
        return -EPROTO;
    x->body_bytes = (size_t)bytes;
    return bytes > EXCHANGE_MAX ? -EMSGSIZE : 0;
}

int
exchange_read(struct exchange *x)
{
    int err = make_room(x);

    if (err)
        return err;
    ssize_t got = recv(x->fd, x->bytes + x->size, x->room - x->size - 1, 0);
    if (got < 0)
        return errno == EINTR ? 0 : -errno;
    if (got == 0)
        return -ECONNRESET;
    size_t from = x->size > 3 ? x->size - 3 : 0;
    x->size += (size_t)got;
    x->bytes[x->size] = '\0';
    if (!x->head) {
        const char *end = memmem(x->bytes + from, x->size - from, "\r\n\r\n", 4);

        if (!end)
            return 0;
        x->head = (size_t)(end - x->bytes) + 4;
        err = read_head(x);
    }
    return err ? err : x->size - x->head >= x->body_bytes;
}

void
exchange_end(struct exchange *x)
{
    if (x->fd >= 0)
        close(x->fd);
    free(x->bytes);
    *x = (struct exchange){.fd = -1};
}
