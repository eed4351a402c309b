# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
#
# client-state: the state of the bricks as a mounted stock client sees it.
#
#   client_is_settled MNT VOL LAYOUT PID [DOWN]     succeeds when the client PID has a live connection to each of its bricks,
#                                                   except the bricks with the numbers in DOWN ("1 3"), and each layer
#                                                   knows which bricks are up
#
# A client connects to each brick separately, with a new attempt every three seconds, and replicate and distribute learn
# of the bricks one after the other. Meanwhile some names seem to be missing. A script that has started a daemon again
# must wait for this state before it looks at the mount. (A new mount waits until each brick has answered or refused.)
#
# The client's own view is in the files of its hidden folder .meta. A client that has not yet noticed that a daemon was
# replaced still believes in its old connection: but that one is half closed, as the kernel knows.

client_is_settled() {
    local mnt=$1 vol=$2 layout=$3 pid=$4 down=" ${5:-} " want= live=0 i j up alive graph=$1/.meta/graphs/active
    local size=$((${layout#*x})) groups=${layout%x*} needed=1 children statuses=
    local -a files=()

    [[ $layout != *+* ]] || needed=$((size - ${layout#*+})) # a dispersed file is read from so many bricks
    for ((i = 0; i < groups; i++)); do
        alive=0
        children=
        for ((j = 0; j < size; j++)); do
            [[ $down == *" $((i * size + j)) "* ]] && up=0 || up=1
            alive=$((alive + up))
            files+=("$graph/$vol-client-$((i * size + j))/private")
            want+="connected = $up"$'\n'
            children+="child_up[$j] = $up"$'\n'
        done
        live=$((live + alive))
        statuses+="subvolume_status[$i] = $((alive >= needed))"$'\n'
        [[ $size -gt 1 ]] || continue
        if [[ $layout == *+* ]]; then
            files+=("$graph/$vol-disperse-$i/private")
            want+="childs_up = $alive"$'\n'
        else
            files+=("$graph/$vol-replicate-$i/private")
            want+=$children
        fi
    done
    files+=("$graph/$vol-dht/private")
    want+=$statuses
    # First the connections, then the view: one that was new before the view was read cannot have been the old one.
    [[ $(ss -Htnp state established | grep -c "pid=$pid,") -ge $live ]] &&
        [[ $(cat "${files[@]}" |
            grep -E '^(connected|child_up\[[0-9]+\]|childs_up|subvolume_status\[[0-9]+\]) = ')$'\n' == "$want" ]]
}
