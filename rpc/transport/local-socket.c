/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/local-socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/transport/port.h"
#include "rpc/transport/saved.h"

/* The ports that the kernel gives to a client that does not ask for a low one. */
enum { HIGH_FIRST = 32768, HIGH_LAST = 60999, HIGH_TRIES = 64 };
enum { BUFFER_BYTES = 1 << 20 };

/* ---- addresses and names --------------------------------------------------------------------- */

static bool
is_any(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)a)->sin6_addr)
                                    : ((const struct sockaddr_in *)a)->sin_addr.s_addr == INADDR_ANY;
}

static bool
is_loopback(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6
               ? IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr)
               : ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static const void *
bytes_of(const struct sockaddr_storage *a)
{
    return a->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)a)->sin6_addr
                                    : (const void *)&((const struct sockaddr_in *)a)->sin_addr;
}

static void
put_address(const struct sockaddr_storage *a, char out[INET6_ADDRSTRLEN])
{
    if (!inet_ntop(a->ss_family, bytes_of(a), out, INET6_ADDRSTRLEN))
        strcpy(out, "?");
}

/* False: `text` is no address. */
static bool
get_address(const char *text, uint16_t port, struct sockaddr_storage *out)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, text, &four.sin_addr) == 1)
        memcpy(out, &four, sizeof four);
    else if (inet_pton(AF_INET6, text, &six.sin6_addr) == 1)
        memcpy(out, &six, sizeof six);
    else
        return false;
    return true;
}

struct name {
    struct sockaddr_un un;
    socklen_t bytes;
};

/* An abstract name begins with a NUL, and has no other. */
static struct name
name_of(const char *text)
{
    struct name n = {.un.sun_family = AF_UNIX};
    size_t len = strnlen(text, sizeof n.un.sun_path - 1);

    memcpy(n.un.sun_path + 1, text, len);
    n.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    return n;
}

static struct name
listeners_name(const struct sockaddr_storage *bound)
{
    char text[sizeof(struct sockaddr_un)], address[INET6_ADDRSTRLEN] = "any";

    if (!is_any(bound))
        put_address(bound, address);
    snprintf(text, sizeof text, "kiln/%s:%u", address, port_of(bound));
    return name_of(text);
}

static int
new_socket(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd < 0 ? -errno : fd;
}

static int
close_with(int fd, int err)
{
    close(fd);
    return err;
}

/* Room for a large read or write in one go, as TCP has. Without the privilege to exceed the system's limit,
 * SO_SNDBUF sets as much as the limit allows. */
static void
widen(int fd)
{
    int bytes = BUFFER_BYTES;

    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes))
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static bool
is_with_root(int fd)
{
    struct ucred cred;
    socklen_t size = sizeof cred;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) == 0 && cred.uid == 0;
}

/* ---- addresses of this machine --------------------------------------------------------------- */

/* The address that TCP would have here. A socket of UDP sends nothing when it connects. */
static int
own_address(const struct sockaddr_storage *to, socklen_t to_bytes, struct sockaddr_storage *out)
{
    socklen_t size = sizeof *out;
    int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    memset(out, 0, sizeof *out);
    int err = connect(fd, (const struct sockaddr *)to, to_bytes) ||
                      getsockname(fd, (struct sockaddr *)out, &size)
                  ? -errno
                  : 0;

    close(fd);
    return err;
}

/* A machine reaches its own address from the same address. Link-local addresses are left to TCP, because
 * their text does not name the link. */
static int
find_own(const struct sockaddr_storage *to, socklen_t to_bytes, struct sockaddr_storage *out)
{
    if (to->ss_family != AF_INET && to->ss_family != AF_INET6)
        return -EAFNOSUPPORT;
    if (to->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)to)->sin6_addr))
        return -EADDRNOTAVAIL;
    int err = own_address(to, to_bytes, out);

    if (err)
        return err;
    size_t bytes = to->ss_family == AF_INET6 ? sizeof(struct in6_addr) : sizeof(struct in_addr);
    bool is_ours = is_loopback(to) || memcmp(bytes_of(to), bytes_of(out), bytes) == 0;
    return is_ours && out->ss_family == to->ss_family ? 0 : -EADDRNOTAVAIL;
}

/* ---- the listener's side --------------------------------------------------------------------- */

int
local_socket_bind(const struct sockaddr_storage *bound)
{
    struct name n = listeners_name(bound);
    int fd = listeners_take((struct sockaddr *)&n.un, n.bytes);

    if (fd >= 0)
        return fd;
    fd = new_socket();

    if (fd >= 0 && bind(fd, (struct sockaddr *)&n.un, n.bytes))
        return close_with(fd, -errno);
    return fd;
}

/* Any process of root's writes the name, also a process in a container that shares this network and has none
 * of root's capabilities. By TCP the kernel would let that process send from addresses of this machine alone;
 * any other address becomes the loopback address. Needs no capability and asks no route of another machine:
 * nothing is sent. */
static void
believe_address(struct sockaddr_storage *peer)
{
    struct sockaddr_storage own;
    socklen_t bytes =
        peer->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);

    if (!is_any(peer) && find_own(peer, bytes, &own) == 0)
        return;
    (void)get_address(peer->ss_family == AF_INET6 ? "::1" : "127.0.0.1", port_of(peer), peer);
}

int
local_socket_peer(int fd, struct sockaddr_storage *peer, struct sockaddr_storage *reached)
{
    char text[sizeof(struct sockaddr_un) + 1] = "", from[64], to[64];
    struct sockaddr_un un;
    struct sockaddr_storage unused;
    socklen_t size = sizeof un;
    uint16_t from_port, to_port;
    int end = 0;

    if (!is_with_root(fd))
        return -EPERM;
    if (getpeername(fd, (struct sockaddr *)&un, &size) || un.sun_family != AF_UNIX ||
        size <= offsetof(struct sockaddr_un, sun_path) + 1 || size > sizeof un || un.sun_path[0])
        return -EINVAL;
    size -= (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
    memcpy(text, un.sun_path + 1, size);
    if (sscanf(text, "kiln/%63s %5hu %63s %5hu%n", from, &from_port, to, &to_port, &end) != 4 ||
        (size_t)end != size || from_port <= PORT_LOW_LAST || !get_address(from, from_port, peer) ||
        !get_address(to, to_port, reached ? reached : &unused))
        return -EINVAL;
    believe_address(peer);
    widen(fd);
    return 0;
}

/* ---- the client's side ----------------------------------------------------------------------- */

struct client_name {
    int fd;
    char own[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    uint16_t to_port;
};

static int
bind_port(void *arg, uint16_t port)
{
    const struct client_name *c = arg;
    char text[sizeof(struct sockaddr_un)];

    snprintf(text, sizeof text, "kiln/%s %u %s %u", c->own, port, c->to, c->to_port);
    struct name n = name_of(text);

    return bind(c->fd, (struct sockaddr *)&n.un, n.bytes) ? -errno : 0;
}

static int
bind_client(int fd, const struct sockaddr_storage *own, const struct sockaddr_storage *to)
{
    struct client_name c = {.fd = fd, .to_port = port_of(to)};

    put_address(own, c.own);
    put_address(to, c.to);
    return port_bind(HIGH_FIRST, HIGH_LAST, HIGH_TRIES, bind_port, &c);
}

static int
connect_name(int fd, struct name n)
{
    return connect(fd, (struct sockaddr *)&n.un, n.bytes) ? -errno : 0;
}

int
local_socket_connect(const struct sockaddr *to_any, socklen_t to_bytes)
{
    struct sockaddr_storage to = {0}, own, all;

    if (geteuid() != 0)
        return -EPERM;
    memcpy(&to, to_any, to_bytes < sizeof to ? to_bytes : sizeof to);
    int err = find_own(&to, to_bytes, &own);
    int fd = err ? err : new_socket();

    if (fd < 0)
        return fd;
    err = bind_client(fd, &own, &to);
    if (!err)
        err = connect_name(fd, listeners_name(&to));
    if (err == -ECONNREFUSED && get_address("0.0.0.0", port_of(&to), &all))
        err = connect_name(fd, listeners_name(&all));
    if (!err && !is_with_root(fd))
        err = -EPERM;
    if (err)
        return close_with(fd, err);
    widen(fd);
    return fd;
}
