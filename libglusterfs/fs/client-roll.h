/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client-roll: the name of a getxattr on a brick's root by which a process of the volume learns which clients
 * are logged in to the brick. protocol/server/roll.c answers; distribute/clients.c asks. */
#ifndef KILN_FS_CLIENT_ROLL_H
#define KILN_FS_CLIENT_ROLL_H

#define CLIENT_ROLL_KEY "kiln.clients"

#endif
