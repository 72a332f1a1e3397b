/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of job options. To add an option, add a row here and the code that uses its value. Then
 * tests/unit/test_manuals tells what the manuals and etc/elastic.conf must say about the option.
 *
 * lib/policy.h and lib/policy.c include this file, each with its own meaning of the two macros;
 * therefore it has no include guard. struct policy gets an int for each row of POLICY_INT: the
 * first argument is the name of that field. The field of a row of POLICY_OTHER has another type,
 * and stands in struct policy itself. The columns are the members of struct policy_option.
 *
 * The order is that of help texts, of policy files that are written, and of `selastic show`. */
/* clang-format off */

POLICY_OTHER(sizes,
    .option = "elastic",
    .environment = "ELASTIC_SIZES",
    .json = "nodes",
    .argument = "SIZES",
    .kind = POLICY_KIND_SIZES,
    .allowed = "a string such as \"2:8\", \"2:8:2\" or \"2,4,8\"",
    .help = "make the job elastic: it starts on MIN nodes and grows into idle ones. SIZES is "
            "MIN:MAX, MIN:MAX:STEP or a list N,N,N")

/* Nodes that are one data-parallel unit. */
POLICY_INT(replica,
    .option = "elastic-replica",
    .environment = "ELASTIC_REPLICA_NODES",
    .json = "replica",
    .argument = "N",
    .kind = POLICY_KIND_NUMBER,
    .unit = "nodes",
    .builtin = 1,
    .min = 1,
    .max = SIZES_NODES_MAX,
    .help = "nodes that are added, removed and lost together")

POLICY_INT(grace,
    .option = "elastic-grace",
    .environment = "ELASTIC_GRACE",
    .json = "grace",
    .conf = "grace",
    .label = "grace",
    .argument = "S",
    .kind = POLICY_KIND_NUMBER,
    .unit = "seconds",
    .symbol = "s",
    .builtin = 600,
    .max = POLICY_SECONDS_MAX,
    .help = "seconds to save a checkpoint and leave a node")

POLICY_INT(grow_delay,
    .option = "elastic-grow-delay",
    .environment = "ELASTIC_GROW_DELAY",
    .json = "grow_delay",
    .conf = "grow_delay",
    .label = "grow delay",
    .argument = "S",
    .kind = POLICY_KIND_NUMBER,
    .unit = "seconds",
    .symbol = "s",
    .builtin = 60,
    .max = POLICY_SECONDS_MAX,
    .help = "seconds after a shrink until more nodes are asked for")

POLICY_INT(snooze,
    .option = "elastic-snooze",
    .environment = "ELASTIC_SNOOZE",
    .json = "snooze",
    .conf = "snooze",
    .label = "snooze",
    .argument = "S",
    .kind = POLICY_KIND_NUMBER,
    .unit = "seconds",
    .symbol = "s",
    .builtin = 0,
    .max = POLICY_SECONDS_MAX,
    .help = "seconds after any restart without growth")

POLICY_INT(fault_wait,
    .option = "elastic-fault-wait",
    .environment = "ELASTIC_FAULT_WAIT",
    .json = "fault_wait",
    .conf = "fault_wait",
    .label = "fault wait",
    .argument = "S",
    .kind = POLICY_KIND_NUMBER,
    .unit = "seconds",
    .symbol = "s",
    .builtin = 30,
    .max = POLICY_SECONDS_MAX,
    .help = "seconds to wait for the replacement of a lost node")

/* 0: a world without steps is never taken for hung. */
POLICY_INT(hang_wait,
    .option = "elastic-hang-wait",
    .environment = "ELASTIC_HANG_WAIT",
    .json = "hang_wait",
    .conf = "hang_wait",
    .label = "hang wait",
    .argument = "S",
    .kind = POLICY_KIND_NUMBER,
    .unit = "seconds",
    .symbol = "s",
    .builtin = 0,
    .max = POLICY_SECONDS_MAX,
    .help = "seconds without a step after which a training hangs; 0: never")

/* Of enum policy_straggler. */
POLICY_INT(straggler,
    .option = "elastic-straggler",
    .environment = "ELASTIC_STRAGGLER",
    .json = "straggler",
    .conf = "straggler",
    .label = "straggler",
    .argument = "MODE",
    .kind = POLICY_KIND_WORD,
    .builtin = POLICY_STRAGGLER_REPORT,
    .words = {[POLICY_STRAGGLER_OFF] = "off", [POLICY_STRAGGLER_REPORT] = "report",
              [POLICY_STRAGGLER_REPLACE] = "replace"},
    .allowed = "report, replace or off",
    .help = "slow workers: report them, replace their nodes, or do not look: off")

POLICY_OTHER(restarts,
    .option = "elastic-max-restarts",
    .environment = "ELASTIC_MAX_RESTARTS",
    .json = "max_restarts",
    .conf = "max_restarts",
    .label = "max restarts",
    .argument = "N",
    .kind = POLICY_KIND_RESTARTS,
    .builtin = 3,
    .max = RECOVERY_RESTARTS_MAX,
    .allowed = "a number, or \"N/SECONDS\" for N within any so many seconds",
    .help = "restarts after failures of workers; N/S: within any S seconds")

/* The number of the signal, 0 for none. */
POLICY_INT(signal,
    .option = "elastic-signal",
    .environment = "ELASTIC_SIGNAL",
    .json = "signal",
    .label = "signal",
    .argument = "SIGNAL",
    .kind = POLICY_KIND_SIGNAL,
    .builtin = 0,
    .allowed = "a name such as USR1 or SIGTERM, a number from 1 to 64, or none; KILL and STOP "
               "cannot be caught",
    .help = "signal that tells a worker of a change: none, USR1, ...")

/* Of enum policy_grow. */
POLICY_INT(grow,
    .option = "elastic-grow",
    .environment = "ELASTIC_GROW",
    .json = "grow",
    .conf = "grow",
    .label = "grow",
    .argument = "MODE",
    .kind = POLICY_KIND_WORD,
    .builtin = POLICY_GROW_AUTO,
    .words = {[POLICY_GROW_AUTO] = "auto", [POLICY_GROW_ASK] = "ask"},
    .allowed = "auto or ask",
    .help = "auto: grow into idle nodes; ask: only when somebody asks for that")

/* Bits of enum policy_requeue, 0 for none. */
POLICY_INT(requeue,
    .option = "elastic-requeue",
    .environment = "ELASTIC_REQUEUE",
    .json = "requeue",
    .conf = "requeue",
    .label = "requeue",
    .argument = "WHEN",
    .kind = POLICY_KIND_WORDS,
    .builtin = 0,
    .words = {"limit", "fault"},
    .allowed = "limit, fault, limit,fault or none",
    .help = "put the job back into the queue: limit, fault, limit,fault")

POLICY_OTHER(pools,
    .option = "elastic-pool",
    .environment = "ELASTIC_POOL",
    .json = "pool",
    .conf = "default_pool",
    .label = "pools",
    .argument = "NAME,...",
    .kind = POLICY_KIND_POOLS,
    .allowed = "\"a,b\" or [\"a\", \"b\"]",
    .help = "where more nodes may come from, in this order")

POLICY_OTHER(deadline,
    .option = "elastic-deadline",
    .environment = "ELASTIC_DEADLINE",
    .json = "deadline",
    .label = "deadline",
    .argument = "TIME",
    .kind = POLICY_KIND_TIME,
    .allowed = WHEN_FORM,
    .help = "when the job should be done: 2026-12-01T08:00, 16:00, now+60hours")

POLICY_INT(fallback,
    .option = "elastic-fallback",
    .environment = "ELASTIC_FALLBACK",
    .json = "fallback",
    .label = "fallback",
    .argument = "WHEN",
    .kind = POLICY_KIND_NUMBER_OR_WORD,
    .unit = "seconds",
    .symbol = "s",
    .builtin = POLICY_UNSET,
    .max = POLICY_SECONDS_MAX,
    .words = {"never", "deadline"},
    .allowed = "never, deadline or whole seconds from 0 to 31536000",
    .help = "when fallback pools are used: never, deadline, or S seconds after a loss")

POLICY_OTHER(budget,
    .option = "elastic-budget",
    .environment = "ELASTIC_BUDGET",
    .json = "budget",
    .label = "budget",
    .argument = "AMOUNT",
    .kind = POLICY_KIND_AMOUNT,
    .allowed = "an amount greater than 0",
    .help = "the most that the nodes of the job may cost")

POLICY_OTHER(max_price,
    .option = "elastic-max-price",
    .environment = "ELASTIC_MAX_PRICE",
    .json = "max_price",
    .label = "max price",
    .argument = "P",
    .kind = POLICY_KIND_AMOUNT,
    .allowed = "an amount greater than 0",
    .help = "the most that a node may cost in an hour")

/* Of enum policy_wake. */
POLICY_INT(wake,
    .option = "elastic-wake",
    .environment = "ELASTIC_WAKE",
    .json = "wake",
    .label = "wake",
    .argument = "MODE",
    .kind = POLICY_KIND_WORD,
    .builtin = POLICY_WAKE_YES,
    .words = {[POLICY_WAKE_NO] = "no", [POLICY_WAKE_YES] = "yes"},
    .allowed = "yes or no",
    .help = "may the job power nodes up, in pools that allow it: yes or no")

/* Of enum policy_reclaim. */
POLICY_INT(reclaim,
    .option = "elastic-reclaim",
    .environment = "ELASTIC_RECLAIM",
    .json = "reclaim",
    .label = "reclaim",
    .argument = "MODE",
    .kind = POLICY_KIND_WORD,
    .builtin = POLICY_RECLAIM_REPLACE,
    .words = {[POLICY_RECLAIM_REPLACE] = "replace", [POLICY_RECLAIM_SHRINK] = "shrink"},
    .allowed = "replace or shrink",
    .help = "replace: ask at once for the successor of a node that is taken away; shrink: not")

POLICY_OTHER(mlflow_tracking_uri,
    .option = "elastic-mlflow",
    .environment = "ELASTIC_MLFLOW",
    .json = "mlflow_tracking_uri",
    .conf = "mlflow_tracking_uri",
    .argument = "URL",
    .kind = POLICY_KIND_TEXT,
    .form = POLICY_FORM_URL,
    .allowed = "none, or an address such as http://mlflow.example:5000, without a name or password "
               "(MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD have these)",
    .help = "the MLflow server that keeps a run of the job; none: no server")

POLICY_OTHER(mlflow_experiment_name,
    .option = "elastic-experiment",
    .environment = "ELASTIC_EXPERIMENT",
    .json = "mlflow_experiment_name",
    .argument = "EXP",
    .kind = POLICY_KIND_TEXT,
    .form = POLICY_FORM_LINE,
    .allowed = "1 to 250 characters in a line",
    .help = "the MLflow experiment of the run; it is made if it is not there")

POLICY_OTHER(mlflow_run_name,
    .option = "elastic-run-name",
    .environment = "ELASTIC_RUN_NAME",
    .json = "mlflow_run_name",
    .argument = "NAME",
    .kind = POLICY_KIND_TEXT,
    .form = POLICY_FORM_LINE,
    .allowed = "1 to 250 characters in a line",
    .help = "the name of the MLflow run; else name and number of the job")

POLICY_OTHER(mlflow_run_id,
    .option = "elastic-run-id",
    .environment = "ELASTIC_RUN_ID",
    .json = "mlflow_run_id",
    .argument = "ID",
    .kind = POLICY_KIND_TEXT,
    .form = POLICY_FORM_ID,
    .allowed = "the id of a run: 1 to 64 letters, digits, - and _",
    .help = "the MLflow run to go on with; else a new one")

POLICY_OTHER(scale_config,
    .environment = "ELASTIC_POLICY",
    .json = "scale_config",
    .kind = POLICY_KIND_SCALE_CONFIG,
    .allowed = "{\"WORLD_SIZE\": {...}, ...}")

#undef POLICY_INT
#undef POLICY_OTHER
