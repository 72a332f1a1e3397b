# SPDX-License-Identifier: GPL-2.0-or-later
# The form with accounting: a private MariaDB, slurmdbd, users and QOS.
# shellcheck shell=bash

# The database is thrown away in the end, so it need not be safe against a crash.
DATABASE_OPTIONS=(--innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=64M
    --innodb-log-file-size=16M --innodb-doublewrite=OFF --skip-log-bin)

start_database() {
    local -a as=()
    mkdir -m 0700 "$DIR/database" "$DIR/database/data"
    if ((UID == 0)); then
        # mariadbd refuses root. The directory is entered by root's slurmdbd as well.
        as=(--user=mysql)
        chown -R mysql: "$DIR/database"
        if [[ $REAL ]]; then
            chgrp "$(id -g "$SERVICE_USER")" "$DIR/database"
            chmod 0710 "$DIR/database"
        fi
    fi
    mariadb-install-db --no-defaults "${as[@]}" --datadir="$DIR/database/data" --skip-test-db \
        --auth-root-authentication-method=normal "${DATABASE_OPTIONS[@]}" \
        >"$DIR/log/mariadb-install.out" 2>&1 || fail "mariadb-install-db failed" mariadb-install.out
    start_daemon mariadbd mariadbd --no-defaults "${as[@]}" --datadir="$DIR/database/data" \
        --socket="$DIR/database/socket" --pid-file="$DIR/database/pid" --skip-networking \
        "${DATABASE_OPTIONS[@]}"
    wait_until 180 database_answers || fail "mariadbd did not start" mariadbd.out
    # slurmdbd would make it after its first connection has been refused. libmariadb of 11.8.9 then takes no
    # answer on the second one.
    mariadb-admin --no-defaults --socket="$DIR/database/socket" --user=root create testbed \
        >>"$DIR/log/mariadb-install.out" 2>&1 || fail "no database could be made" mariadb-install.out
}

database_answers() {
    daemon_alive mariadbd || fail "mariadbd has ended" mariadbd.out
    mariadb-admin --no-defaults --socket="$DIR/database/socket" --user=root ping >/dev/null 2>&1
}

start_slurmdbd() {
    (umask 077 && cat >"$DIR/etc/slurmdbd.conf") <<CONF
# Made by scripts/testbed.
DbdHost=$(host_name)
DbdAddr=127.0.0.1
DbdPort=$(database_port)
SlurmUser=$(slurm_user)
AuthType=auth/munge
AuthInfo=socket=$MUNGE_SOCKET
CommunicationParameters=NoInAddrAny
PidFile=$DIR/state/slurmdbd.pid
LogFile=$DIR/log/slurmdbd.log
DebugLevel=verbose
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=root
StorageLoc=testbed
CONF
    # libmariadb takes the path of the socket from here; slurmdbd.conf has no word for it.
    DAEMON_ENV=(MYSQL_UNIX_PORT="$DIR/database/socket")
    as_slurm
    [[ -z $REAL ]] || chown "$SERVICE_USER:" "$DIR/etc/slurmdbd.conf"
    start_daemon slurmdbd "${AS_SLURM[@]}" slurmdbd -D
    DAEMON_ENV=()
    wait_until 180 slurmdbd_answers || fail "slurmdbd does not answer" slurmdbd.out
}

slurmdbd_answers() {
    daemon_alive slurmdbd || fail "slurmdbd has ended" slurmdbd.out
    slurm sacctmgr -n list cluster >/dev/null 2>&1
}

accounts() {
    slurm sacctmgr -i --quiet "$@" >>"$DIR/log/sacctmgr.out" 2>&1 ||
        fail "sacctmgr $* failed" sacctmgr.out
}

# Jobs of the QOS normal (everybody's default) and high displace those of elastic. Each call takes
# half a second, so there are as few as can be.
fill_accounts() {
    local qos=normal,high,elastic users=root
    [[ $SUBMITTER == root ]] || users+=,$SUBMITTER
    accounts add cluster testbed
    accounts add qos elastic PreemptMode=cancel GraceTime="$opt_grace" Priority=1
    accounts add qos high Preempt=elastic Priority=1000
    accounts modify qos normal set Preempt=elastic Priority=100
    accounts add account testbed Description=testbed Organization=testbed QOS="$qos" \
        DefaultQOS=normal
    accounts add user "$users" Account=testbed DefaultAccount=testbed
}
