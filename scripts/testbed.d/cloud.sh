# SPDX-License-Identifier: GPL-2.0-or-later
# Cloud nodes, which Slurm powers up and down, and the zones that they come from.
# shellcheck shell=bash

# Not empty: "ZONE:FIRST:LAST …", the numbers of each zone's nodes.
CLOUD=
# Seconds without a job after which Slurm powers a node down, and until it may be powered up again.
SUSPEND_TIME=2 SUSPEND_TIMEOUT=1
# The partition of all cloud nodes that displaces jobs of the zones.
OWNERS=owners

# What a zone can have, with what it has at first; the capacity is the number of its nodes.
ZONE_KEYS=(capacity price boot failure pause trace speed began)
ZONE_START=('' 1 2 fast 3 none 1 0)

# parse_cloud TEXT: sets CLOUD, and adds the cloud nodes to opt_nodes.
parse_cloud() {
    local entry zone count
    local -a entries
    IFS=, read -ra entries <<<"$1"
    opt_static=$opt_nodes
    for entry in "${entries[@]}"; do
        [[ $entry == *=* ]] || entry=cloud=$entry
        zone=${entry%%=*}
        [[ $zone =~ ^[a-z][a-z0-9_-]{0,15}$ && ! $zone =~ ^(batch|whole|elastic|spare|owners|default)$ ]] ||
            die "--cloud $1: '$zone' cannot be the name of a zone"
        [[ " $CLOUD" != *" $zone:"* ]] || die "--cloud $1: zone $zone is there twice"
        count=$(number "--cloud" "${entry#*=}" 1 "$MAX_NODES") || exit 1
        CLOUD+="$zone:$((opt_nodes + 1)):$((opt_nodes + count)) "
        opt_nodes=$((opt_nodes + count))
    done
    [[ $CLOUD ]] || die "--cloud: want N or ZONE=N, with commas between them"
    ((opt_nodes <= MAX_NODES)) || die "--cloud $1: more than $MAX_NODES nodes in all"
}

# zone_range ZONE: sets FIRST and LAST; fails if there is no such zone.
zone_range() {
    local entry
    for entry in $CLOUD; do
        IFS=: read -r zone FIRST LAST <<<"$entry"
        [[ $zone != "$1" ]] || return 0
    done
    return 1
}

# Sets ZONE to that of a node (a number); empty: it is no cloud node.
zone_of() {
    local entry first last
    for entry in $CLOUD; do
        IFS=: read -r ZONE first last <<<"$entry"
        if (($1 >= first && $1 <= last)); then
            return 0
        fi
    done
    ZONE=
}

# ---- configuration -------------------------------------------------------------------------------

cloud_conf() {
    [[ $CLOUD ]] || return 0
    cat <<CONF
SlurmctldParameters=cloud_dns,idle_on_node_suspend,power_save_interval=1
ResumeProgram=$DIR/etc/cloud-resume
SuspendProgram=$DIR/etc/cloud-suspend
ResumeFailProgram=$DIR/etc/cloud-fail
ResumeTimeout=$opt_resume_timeout
ResumeRate=0
SuspendRate=0
SuspendTime=$SUSPEND_TIME
SuspendTimeout=$SUSPEND_TIMEOUT
SuspendExcNodes=$(node_range 1 "$opt_static")
CONF
}

cloud_partitions() {
    local entry zone first last
    [[ $CLOUD ]] || return 0
    for entry in $CLOUD; do
        IFS=: read -r zone first last <<<"$entry"
        printf 'PartitionName=%s Nodes=%s PriorityTier=1 PreemptMode=CANCEL GraceTime=%d ResumeTimeout=%d\n' \
            "$zone" "$(node_range "$first" "$last")" "$opt_grace" "$opt_resume_timeout"
    done
    printf 'PartitionName=%s Nodes=%s PriorityTier=10 PreemptMode=OFF\n' "$OWNERS" \
        "$(node_range $((opt_static + 1)) "$opt_nodes")"
}

zone_names() {
    local entry
    for entry in $CLOUD; do
        printf '%s\n' "${entry%%:*}"
    done
}

# slurmctld runs the programs as its own user, who can start no node. They only pass the request on.
# slurmctld starts them with SIGTERM blocked: where nobody reads any more, only SIGKILL ends them.
cloud_files() {
    local what zone i
    [[ $CLOUD ]] || return 0
    mkdir "$DIR/zones"
    mkfifo -m 0600 "$DIR/run/cloud"
    chown "$(slurm_user)" "$DIR/run/cloud"
    for what in resume suspend fail; do
        printf '#!/bin/sh\nexec timeout -s KILL 5 sh -c '\''printf "%%s\\n" "$1" >"$2"'\'' - "%s $1" %s\n' \
            "$what" "$DIR/run/cloud" >"$DIR/etc/cloud-$what"
        chmod 0755 "$DIR/etc/cloud-$what"
    done
    while read -r zone; do
        zone_range "$zone"
        for ((i = 0; i < ${#ZONE_KEYS[@]}; i++)); do
            printf '%s=%s\n' "${ZONE_KEYS[i]}" "${ZONE_START[i]:-$((LAST - FIRST + 1))}"
        done >"$DIR/zones/$zone"
    done < <(zone_names)
}

start_cloud() {
    [[ ! $CLOUD ]] || start_daemon cloud "$TOP/scripts/testbed" run-cloud --dir "$DIR"
}

# Before anything else ends: it would boot nodes.
stop_cloud() {
    local name pid start
    while read -r name pid start; do
        [[ $name == cloud ]] || continue
        kill -s TERM "$pid" 2>/dev/null
        wait_until 30 process_gone "$pid" "$start" || kill -s KILL "$pid" 2>/dev/null
    done < <(living_daemons)
}

# ---- a zone's control file -----------------------------------------------------------------------

# read_zone ZONE: sets VALUE[ZONE.KEY], if the file is another one than the last. A line that makes no sense changes nothing.
declare -A VALUE=() READ=()
read_zone() {
    local line
    local -a lines
    mapfile -t lines 2>/dev/null <"$DIR/zones/$1"
    [[ ${lines[*]} != "${READ[$1]:-}" ]] || return 0
    READ[$1]=${lines[*]}
    for line in "${lines[@]}"; do
        ! valid_setting "${line%%=*}" "${line#*=}" || VALUE[$1.${line%%=*}]=${line#*=}
    done
}

valid_setting() {
    case $1 in
    capacity | speed | began) [[ $2 =~ ^[0-9]{1,10}$ ]] ;;
    price | boot | pause) [[ $2 =~ ^[0-9]{1,6}(\.[0-9]{1,3})?$ ]] ;;
    failure) [[ $2 =~ ^(fast|slow)$ ]] ;;
    trace) [[ $2 ]] ;;
    *) return 1 ;;
    esac
}

# convert_trace FILE: prints the seconds of a step of a trace, then its capacities, one a line.
convert_trace() {
    python3 -c '
import json, sys
trace = json.load(open(sys.argv[1]))
print(int(trace["metadata"]["gap_seconds"]), *(int(n) for n in trace["data"]), sep="\n")
' "$1" 2>/dev/null
}

command_zone() {
    local word key
    read_record
    [[ $CLOUD ]] || die "zone needs a testbed that was started with --cloud"
    zone_range "${opt_node:-}" || die "zone ${opt_node:-is missing}: want one of $(zone_names | xargs)"
    read_zone "$opt_node"
    for word in "${opt_words[@]}"; do
        key=${word%%=*}
        [[ $word == *=* && $key != began ]] && valid_setting "$key" "${word#*=}" ||
            die "zone $opt_node $word: want capacity=N, price=P, boot=S, failure=fast|slow," \
                "pause=S, trace=FILE|none or speed=N"
        VALUE[$opt_node.$key]=${word#*=}
        if [[ $word == trace=* && $word != trace=none ]]; then
            convert_trace "${word#*=}" >"$DIR/zones/.$opt_node.trace" ||
                die "zone $opt_node $word: not a file with gap_seconds and data"
            VALUE[$opt_node.began]=$EPOCHSECONDS
        fi
    done
    for key in "${ZONE_KEYS[@]}"; do
        printf '%s=%s\n' "$key" "${VALUE[$opt_node.$key]}"
    done >"$DIR/zones/.$opt_node.new"
    mv "$DIR/zones/.$opt_node.new" "$DIR/zones/$opt_node"
    say "zone $opt_node: $(grep -v ^began= "$DIR/zones/$opt_node" | xargs)"
}

# ---- the daemon ----------------------------------------------------------------------------------

# By node: off, booting, never (it will not boot), running, down; since when (booting) or until when; in which order it was asked for;
# why it was taken.
declare -A POWER=() UNTIL=() TURN=() DOWN_REASON=()
TURNS=0 CLOUD_ENDS=

# Milliseconds, of this machine's clock.
cloud_now() {
    NOW=$((${EPOCHREALTIME/./} / 1000))
}

# milliseconds SECONDS, which may have three decimals.
milliseconds() {
    local whole=${1%%.*} part=000
    [[ $1 != *.* ]] || part=${1#*.}000
    MS=$((10#$whole * 1000 + 10#${part:0:3}))
}

# A capacity that follows a trace: its step, and again from the beginning at its end.
follow_trace() {
    local -a steps
    [[ ${VALUE[$1.trace]:-none} != none ]] || return 0
    mapfile -t steps 2>/dev/null <"$DIR/zones/.$1.trace"
    ((${#steps[@]} > 1 && steps[0] > 0)) || return 0
    VALUE[$1.capacity]=${steps[1 + (NOW / 1000 - VALUE[$1.began]) * VALUE[$1.speed] / steps[0] % (${#steps[@]} - 1)]}
}

# Sets USED to the nodes that the zone gives, NEWEST to the one that was asked for last.
count_zone() {
    local i
    zone_range "$1"
    USED=0 NEWEST=
    for ((i = FIRST; i <= LAST; i++)); do
        [[ ${POWER[n$i]:-off} =~ ^(booting|running)$ ]] || continue
        USED=$((USED + 1))
        if [[ -z $NEWEST || ${TURN[n$i]} -ge ${TURN[$NEWEST]} ]]; then
            NEWEST=n$i
        fi
    done
}

# cloud_down NODE CODE TEXT: as the daemons of cloud services tell Slurm. After the zone's pause it can be
# used again.
cloud_down() {
    say "$1: ($2) $3"
    DOWN_REASON[$1]="(Code:$2) $3"
    slurm scontrol update "nodename=$1" state=down "reason=${DOWN_REASON[$1]}"
    zone_of "${1#n}"
    milliseconds "${VALUE[$ZONE.pause]}"
    POWER[$1]='down' UNTIL[$1]=$((NOW + MS))
}

resume_node() {
    zone_of "${1#n}"
    read_zone "$ZONE"
    follow_trace "$ZONE"
    count_zone "$ZONE"
    if ((USED < VALUE[$ZONE.capacity])); then
        POWER[$1]=booting UNTIL[$1]=$NOW TURN[$1]=$((++TURNS))
        say "$1 boots in ${VALUE[$ZONE.boot]} s"
    elif [[ ${VALUE[$ZONE.failure]} == fast ]]; then
        cloud_down "$1" InsufficientInstanceCapacity "zone $ZONE has no more than ${VALUE[$ZONE.capacity]} nodes"
    else
        POWER[$1]=never
        say "$1 will not boot"
    fi
}

power_off() {
    [[ ${POWER[$1]:-off} != running ]] || (crash_node "$1")
    POWER[$1]='off'
    say "$1 is off"
}

# Slurm has given it up: it stays DOWN until somebody sets another state.
give_up_node() {
    (crash_node "$1")
    zone_of "${1#n}"
    milliseconds "${VALUE[$ZONE.pause]}"
    POWER[$1]='down' UNTIL[$1]=$((NOW + MS))
}

handle_request() {
    local what nodes node
    read -r what nodes <<<"$1"
    for node in $(slurm scontrol show hostnames "$nodes"); do
        case $what in
        resume) resume_node "$node" ;;
        suspend) power_off "$node" ;;
        fail) give_up_node "$node" ;;
        esac
    done
}

# advance_node NODE ZONE: what is due of it. What the zone says now of the time for a boot holds for those that boot already.
advance_node() {
    MS=0
    [[ ${POWER[$1]:-off} != booting ]] || milliseconds "${VALUE[$2.boot]}"
    ((NOW >= ${UNTIL[$1]:-0} + MS)) || return 0
    case ${POWER[$1]:-off} in
    booting)
        (boot_node "$1" -b)
        POWER[$1]=running
        ;;
    down)
        POWER[$1]='off'
        # A late answer of the node may have made it IDLE since: a job that Slurm has put there would be COMPLETING for minutes.
        slurm scontrol update "nodename=$1" state=down "reason=${DOWN_REASON[$1]:-Slurm has given it up}"
        slurm scontrol update "nodename=$1" state=power_down
        ;;
    esac
}

advance_zone() {
    local i
    read_zone "$1"
    follow_trace "$1"
    count_zone "$1"
    while ((USED > VALUE[$1.capacity])); do
        (crash_node "$NEWEST")
        cloud_down "$NEWEST" InstanceReclaimed "zone $1 has no more than ${VALUE[$1.capacity]} nodes"
        count_zone "$1"
    done
    for ((i = FIRST; i <= LAST; i++)); do
        advance_node "n$i" "$1"
    done
}

# For up only: the daemon that is the cloud.
command_run_cloud() {
    local part line='' entry
    set +e
    read_record
    trap 'CLOUD_ENDS=yes' TERM
    exec 9<>"$DIR/run/cloud" # start_daemon closes it in what it starts
    while [[ ! $CLOUD_ENDS && -e $DIR/run/cloud ]]; do
        cloud_now
        for entry in $CLOUD; do
            advance_zone "${entry%%:*}"
        done
        if IFS= read -r -t 0.2 -u 9 part; then
            cloud_now
            handle_request "$line$part"
            line=
        else
            line+=$part # the time may be over in the middle of a line
        fi
    done
}
