# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# gfapi: programs of Debian that open volumes themselves, with Kiln's libgfapi in the place of stock's.
#
#   with_kiln COMMAND...     runs a program with the library of the build
#   with_stock COMMAND...    runs a program with Debian's library

gfapi_dir=${KILN_BUILD:-$source_dir/build}
[[ -e $gfapi_dir/libgfapi.so.0 ]] || skip_all "there is no $gfapi_dir/libgfapi.so.0: build first"
! grep -q '^SAN_FLAGS = ..*' "$gfapi_dir/Makefile" || skip_all "a sanitizer belongs to the program, which is Debian's"

with_kiln() {
    LD_LIBRARY_PATH=$gfapi_dir "$@"
}

with_stock() {
    LD_LIBRARY_PATH='' "$@"
}

# smb_start LIBRARY VOLUME HOST [LINE...]    smbd serves the volume as the share `v`, with the library "kiln" or "stock";
#                              the password of the user root is "secret". LINE is one of the share in smb.conf(5).
# smb_stop                     ends smbd and its children
# smb COMMAND                  smbclient runs the command on the share
smb_port=4450
smb_pid=

smb_start() {
    local library=$1 volume=$2 host=$3 dir=$T/smb-$1-$2 path=
    mkdir -p "$dir"/{private,lock,state,cache,run,rpc}
    cat >"$dir/smb.conf" <<EOS
[global]
    server role = standalone server
    smb ports = $smb_port
    bind interfaces only = yes
    interfaces = lo
    disable spoolss = yes
    load printers = no
    server min protocol = NT1
    client min protocol = NT1
    private dir = $dir/private
    lock directory = $dir/lock
    state directory = $dir/state
    cache directory = $dir/cache
    pid directory = $dir/run
    ncalrpc dir = $dir/rpc
    log file = $T/log/smbd-$library-$volume.log
[v]
    path = /
    read only = no
    kernel share modes = no
    vfs objects = glusterfs
    glusterfs:volume = $volume
    glusterfs:volfile_server = $host
    glusterfs:logfile = $T/log/smbd-gfapi-$library-$volume.log
    glusterfs:loglevel = 7
$(printf '    %s\n' "${@:4}")
EOS
    smb_conf=$dir/smb.conf
    printf 'secret\nsecret\n' | smbpasswd -c "$smb_conf" -L -s -a root >>"$T/log/smbpasswd.out" 2>&1
    [[ $library == stock ]] || path=$gfapi_dir
    LD_LIBRARY_PATH=$path smbd -F -s "$smb_conf" >>"$T/log/smbd-$library-$volume.out" 2>&1 </dev/null &
    smb_pid=$!
    wait_for 240 "smbd to answer" smb_answers_or_ended
    smb ls >/dev/null
}

smb_answers_or_ended() {
    process_gone "$smb_pid" || smb ls
}

smb() {
    smbclient -s "$smb_conf" -p "$smb_port" -U root%secret //localhost/v -c "$1" 2>>"$T/log/smbclient.err"
}

smb_stop() {
    local pid=$smb_pid status=0
    smb_pid=
    kill -TERM "$pid"
    wait_for 240 "smbd to end" process_gone "$pid"
    { wait "$pid" || status=$?; } 2>/dev/null
    [[ $status -eq 143 ]] || # smbd signals its process group, and itself
        { echo "smbd ended with status $status" >&2; return 1; }
}
