/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/tls-files.h"

#include <errno.h>

#include "base/reason.h"
#include "data/option.h"
#include "rpc/transport/tls-config.h"
#include "volumes/volume-options.h"

/* Returns the value of a key after the change; NULL: not set. */
static const char *
text_after(const struct volume *v, const json_t *options, const char *key)
{
    const char *text = json_string_value(json_object_get(options, key));

    return text ? text : volume_option_of(v, key);
}

static bool
turns_on(const json_t *options, const char *key)
{
    const char *text = json_string_value(json_object_get(options, key));
    bool is_on = false;

    return text && option_bool(text, &is_on) == 0 && is_on;
}

int
tls_files_check(const struct volume *v, const json_t *options, struct problem *why)
{
    const char *key = turns_on(options, "server.ssl") ? "server.ssl" : "client.ssl";
    struct tls_files files = {.own_cert = text_after(v, options, "ssl.own-cert"),
                              .private_key = text_after(v, options, "ssl.private-key"),
                              .ca_list = text_after(v, options, "ssl.ca-list"),
                              .depth = TLS_DEPTH_DEFAULT};
    struct reason reason = {""};

    if (!turns_on(options, key))
        return 0;
    struct tls_config *c = tls_config_new(&files);
    int err = c ? tls_config_load(c, &reason) : problem_no_memory(why);

    tls_config_unref(c);
    if (!err || !c)
        return err;
    problem_set(why, err, "volume %s: %s on: %s", v->name, key, reason.text);
    problem_expected(why, "a certificate, its key and an authority on this machine");
    problem_type(why, "kiln tls init   # or, with an authority elsewhere: kiln tls take FILE");
    return err;
}

static bool
is_on_after(const struct volume *v, const json_t *options, const char *key)
{
    const char *text = text_after(v, options, key);
    bool is_on = false;

    return text && option_bool(text, &is_on) == 0 && is_on;
}

int
tls_sides_check(const struct volume *v, const json_t *options, struct problem *why)
{
    bool server = is_on_after(v, options, "server.ssl"), client = is_on_after(v, options, "client.ssl");

    if (v->status != VOLUME_STARTED || server == client ||
        (!json_object_get(options, "server.ssl") && !json_object_get(options, "client.ssl")))
        return 0;
    problem_set(why, -EINVAL, "volume %s: with server.ssl %s and client.ssl %s no client can connect",
                v->name, server ? "on" : "off", client ? "on" : "off");
    problem_expected(why, "the same value for both, in one command, or --force");
    problem_type(why, "kiln volume set %s tls %s", v->name,
                 turns_on(options, server ? "server.ssl" : "client.ssl") ? "on" : "off");
    return why->err;
}
