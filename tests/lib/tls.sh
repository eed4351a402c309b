# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# tls: certificates for tests, made by openssl(1) in $T/tls.
#
#   tls_ca NAME                      a CA: NAME.ca, NAME.ca.key
#   tls_cert NAME [CA [DAYS]]        a certificate of CA (default ca) with CN=NAME: NAME.pem, NAME.key. DAYS: how long it is valid
#   tls_options PATTERN NAME [CA]    words PATTERN.KEY=VALUE that turn TLS on with that certificate, for --xlator-option

tls_dir=$T/tls

tls_ca() {
    mkdir -p "$tls_dir"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$1" \
        -keyout "$tls_dir/$1.ca.key" -out "$tls_dir/$1.ca" 2>/dev/null
}

tls_cert() {
    local name=$1 ca=${2:-ca} days=${3:-30}
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$name" -keyout "$tls_dir/$name.key" \
        -out "$tls_dir/$name.csr" 2>/dev/null
    openssl x509 -req -in "$tls_dir/$name.csr" -CA "$tls_dir/$ca.ca" -CAkey "$tls_dir/$ca.ca.key" -CAcreateserial \
        -days "$days" -out "$tls_dir/$name.pem" 2>/dev/null
    chmod 600 "$tls_dir/$name.key"
}

tls_options() {
    printf '%s\n' "$1.transport.socket.ssl-enabled=on" "$1.transport.socket.ssl-own-cert=$tls_dir/$2.pem" \
        "$1.transport.socket.ssl-private-key=$tls_dir/$2.key" "$1.transport.socket.ssl-ca-list=$tls_dir/${3:-ca}.ca"
}
