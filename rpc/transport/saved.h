/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* saved: connections and listeners that survive an exec(2), so that a newer program serves on where this
 * program stopped (bricks/upgrade.h).
 *
 *   the old program                                     the new program, with the same process id
 *   transport_freeze()      nothing is accepted, read   listeners_restore()   before listeners are opened,
 *                           or run any more                                   which find the sockets
 *   conn_save(), each       unread and unsent bytes     conn_restore(), each  paused
 *   listeners_save()                                    conn_start_restored() reads and sends
 *   transport_keep_open()   exec leaves the sockets     listeners_drop_rest() closes the other sockets
 *   transport_thaw()        after a failed exec
 *
 * Dialled connections are saved in the same way, each by its owner (rpc/client/rpc-client.h), who knows that
 * no call is under way: conn_pause(), conn_dialled_rests(), conn_save(), conn_keep_open(); in the new program
 * conn_restore_dialled() and conn_start_restored().
 *
 * Connections with TLS have secrets in OpenSSL's memory and are not saved: exec closes these connections, and
 * the clients connect again. Connections without a login are not saved either. thread: the main thread
 * alone calls these functions, one at a time. */
#ifndef KILN_TRANSPORT_SAVED_H
#define KILN_TRANSPORT_SAVED_H

#include "base/parcel.h"
#include "rpc/transport/transport.h"

/* Stops accepting and reading, cuts off peers that have not read the replies after half the time, and waits
 * until every accepted connection rests: no reader, batch or sender works, and no call is under way but calls
 * that wait for other calls, of which `parked` returns the number.
 * 0; -EBUSY: some call has not ended in `ms` milliseconds, and everything goes on as before. */
int transport_freeze(unsigned ms, unsigned (*parked)(void));
/* Everything goes on. After a transport_freeze() that has returned 0. */
void transport_thaw(void);

/* Of a frozen transport: true if the connection can be saved. */
bool conn_can_be_saved(const struct conn *c);
/* Writes the connection; `calls` (whole records with their marks) will be received again, before all that is
 * unread. The connection's socket is kept open by transport_keep_open(). */
void conn_save(struct conn *c, const void *calls, size_t bytes, struct parcel *to);
/* Writes all connections that the listeners of this `arg` have accepted and that can be saved. */
void conns_save(const void *arg, struct parcel *to);
void listeners_save(struct parcel *to);
/* Lets the sockets of all saved connections and listeners survive exec(2), or not. 0 or -errno. */
int transport_keep_open(bool keeps);

/* The sockets of a parcel's listeners, which listener_open_*() uses in place of new ones with the same
 * address. */
void listeners_restore(struct parcel *from);
/* A socket for this address, bound and listening; the caller owns it. -1: there is none. */
int listeners_take(const struct sockaddr *address, socklen_t bytes);
void listeners_drop_rest(void);

/* Reads one connection, makes it, paused, and asks `accepted`. Returns a reference, because the peer may end
 * the connection at any time from then on. NULL: no such socket any more, or the connection was refused and
 * the socket is closed. */
struct conn *conn_restore(struct parcel *from, const struct transport_ops *ops, void *arg);
/* Reads the bytes that the old program has received and not run, then the socket; sends the unsent bytes. The
 * caller holds a reference. */
void conn_start_restored(struct conn *c);

/* Restores and starts the connections that conns_save() has written. */
void conns_restore(struct parcel *from, const struct transport_ops *ops, void *arg);

/* Of a paused dialled connection: true if no reader, batch or sender works. A look that finds rest may come
 * between two batches, so the caller looks twice. Any thread that holds a reference. */
bool conn_dialled_rests(struct conn *c);
/* True if such a connection can be saved: it lives, and is not encrypted. */
bool conn_dialled_can_be_saved(const struct conn *c);
/* Lets the socket survive exec(2), or not. 0 or -errno. */
int conn_keep_open(struct conn *c, bool keeps);
/* As conn_restore(), for a connection that this side has dialled. */
struct conn *conn_restore_dialled(struct parcel *from, const struct transport_ops *ops, void *arg);

/* A connection of which both ends are in this process (fop-path.h). The dialled end's owner writes the name
 * of the accepted end (NULL: none), and offers a path to that end after both were restored. */
void conn_save_partner(const struct conn *accepted, struct parcel *to);
bool conn_offer_to_partner(struct parcel *from, const struct gfid *token);

#endif
