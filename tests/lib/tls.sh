# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# tls: certificates for tests, made by openssl(1) in $T/tls.
#
#   tls_ca NAME                      a CA: NAME.ca, NAME.ca.key
#   tls_cert NAME [CA]               a certificate of CA (default ca) with CN=NAME, valid for 30 days: NAME.pem, NAME.key
#   tls_cert_dated NAME FROM TO      the same of ca, valid between two times in the words of date(1)
#   tls_options PATTERN NAME [CA]    words PATTERN.KEY=VALUE that turn TLS on with that certificate, for --xlator-option

tls_dir=$T/tls

tls_ca() {
    mkdir -p "$tls_dir"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "/CN=$1" \
        -keyout "$tls_dir/$1.ca.key" -out "$tls_dir/$1.ca" 2>/dev/null
}

tls_request() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$tls_dir/$1.key" \
        -out "$tls_dir/$1.csr" 2>/dev/null
    chmod 600 "$tls_dir/$1.key"
}

tls_cert() {
    local name=$1 ca=${2:-ca}
    tls_request "$name"
    openssl x509 -req -in "$tls_dir/$name.csr" -CA "$tls_dir/$ca.ca" -CAkey "$tls_dir/$ca.ca.key" -CAcreateserial \
        -days 30 -out "$tls_dir/$name.pem" 2>/dev/null
}

# openssl x509 takes no dates before 3.4, and no negative number of days from 3.4 on, but openssl ca takes dates.
tls_cert_dated() {
    local name=$1 from to
    from=$(date -u -d "$2" +%Y%m%d%H%M%SZ)
    to=$(date -u -d "$3" +%Y%m%d%H%M%SZ)
    tls_request "$name"
    mkdir "$tls_dir/dated.$name"
    touch "$tls_dir/dated.$name/index"
    printf '%s\n' '[ca]' default_ca=d '[d]' "database=$tls_dir/dated.$name/index" "new_certs_dir=$tls_dir/dated.$name" \
        default_md=sha256 rand_serial=yes policy=p '[p]' commonName=supplied >"$tls_dir/dated.$name/ca.cnf"
    openssl ca -batch -notext -config "$tls_dir/dated.$name/ca.cnf" -cert "$tls_dir/ca.ca" -keyfile "$tls_dir/ca.ca.key" \
        -startdate "$from" -enddate "$to" -in "$tls_dir/$name.csr" -out "$tls_dir/$name.pem" 2>/dev/null
}

tls_options() {
    printf '%s\n' "$1.transport.socket.ssl-enabled=on" "$1.transport.socket.ssl-own-cert=$tls_dir/$2.pem" \
        "$1.transport.socket.ssl-private-key=$tls_dir/$2.key" "$1.transport.socket.ssl-ca-list=$tls_dir/${3:-ca}.ca"
}
