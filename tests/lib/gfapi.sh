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

# ganesha_start LIBRARY VOLUME HOST [UPCALLS]   NFS-Ganesha exports the volume by NFS 4 as /v, keeps attributes for 600 s; UPCALLS
#                              `false`: it does not register for upcalls
# ganesha_stop                 ends it
# nfs_url PATH                 the path in the words of libnfs
has_ganesha() {
    local program
    for program in ganesha.nfsd nfs-ls nfs-cp nfs-cat; do
        command -v "$program" >/dev/null || return 1
    done
}

nfs_url() {
    echo "nfs://127.0.0.1/v/$1?version=4"
}

ganesha_start() {
    mkdir -p /run/ganesha /var/lib/nfs/ganesha
    cat >"$T/ganesha.conf" <<EOS
NFS_CORE_PARAM { Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; }
NFSv4 { Graceless = true; RecoveryBackend = fs; }
EXPORT {
    Export_Id = 1; Path = "/"; Pseudo = "/v"; Access_Type = RW; Squash = No_Root_Squash;
    Disable_ACL = true; Protocols = 4; Transports = TCP; SecType = sys; Attr_Expiration_Time = 600;
    FSAL { Name = GLUSTER; Hostname = "$3"; Volume = "$2"; enable_upcall = ${4:-true}; }
}
EOS
    rm -f "$T/log/ganesha.log"
    "with_$1" ganesha.nfsd -F -L "$T/log/ganesha.log" -f "$T/ganesha.conf" -N NIV_EVENT -p "$T/ganesha.pid" >"$T/log/ganesha.out" 2>&1 &
    wait_for 120 "NFS-Ganesha" nfs-ls "$(nfs_url '')"
}

ganesha_stop() {
    local pid
    pid=$(cat "$T/ganesha.pid")
    kill "$pid"
    wait_for 60 "the end of NFS-Ganesha" process_gone "$pid"
}
