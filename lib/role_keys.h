/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of keys of a job file. To add a key, add a row here, its field in lib/roles.h, and the
 * code that uses its value. Then tests/unit/test_roles_keys tells what doc/user/roles.md must say.
 *
 * Only lib/roles_reader.c includes this file, with its meaning of ROLE_KEY; therefore it has no
 * include guard. The columns are the members of struct role_key (lib/roles_private.h). The first
 * one says where the key may be. `in` and `field` name the field that gets the value. The order is
 * that of messages, of documents, and of files that are written. */
/* clang-format off */

/* ---- of the job ------------------------------------------------------------------------------ */

ROLE_KEY(ROLES_PLACE_JOB, .name = "version",
    .kind = ROLES_KIND_VERSION,
    .min = 1, .max = 1,
    .builtin = "1",
    .help = "The version of this format")

ROLE_KEY(ROLES_PLACE_JOB, .name = "clean",
    FIELD(struct roles, clean),
    .kind = ROLES_KIND_WORD,
    .words = {[ROLES_CLEAN_RUNNING] = "running", [ROLES_CLEAN_NONE] = "none",
              [ROLES_CLEAN_ALL] = "all"},
    .builtin = "running",
    .help = "What happens to the other replicas when the leading role has ended. `running`: they "
            "are drained. `none`: they run on until they end, or the job's time is over. `all`: "
            "they are drained, and the job's state directory is removed, with its checkpoints")

ROLE_KEY(ROLES_PLACE_JOB, .name = "group",
    FIELD(struct roles, group),
    .kind = ROLES_KIND_LABEL,
    .help = "A name for several jobs that belong together, for `selastic list --group`")

ROLE_KEY(ROLES_PLACE_JOB, .name = "shared",
    FIELD(struct roles, shared),
    .kind = ROLES_KIND_PATH,
    .help = "A directory that all nodes see. It is made, and checked on each node. It must belong "
            "to you or to root, and others may write there only if it has a sticky bit: they "
            "could else replace what is in it. "
            "`ELASTIC_SHARED_DIR` names it")

ROLE_KEY(ROLES_PLACE_JOB, .name = "max-nodes",
    FIELD(struct roles, max_nodes),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = SIZES_NODES_MAX,
    .builtin = "0",
    .help = "The most nodes of the job, for all roles together. 0: as many as the roles need")

ROLE_KEY(ROLES_PLACE_JOB, .name = "compat",
    FIELD(struct roles, di_engine),
    .kind = ROLES_KIND_FLAG,
    .words = {"none", "di-engine"},
    .builtin = "none",
    .help = "`di-engine`: names, environment and HTTP are those of DI-orchestrator v1alpha1, too")

ROLE_KEY(ROLES_PLACE_JOB, .name = "service",
    FIELD(struct roles, service),
    .kind = ROLES_KIND_NAME,
    .help = "The job runs the service of that name, which has a role of kind `shards`. What the "
            "service has is kept in `~/.slurm-elastic/services/NAME` when the job ends")

ROLE_KEY(ROLES_PLACE_JOB, .name = "models",
    .kind = ROLES_KIND_MODELS,
    .help = "Which models the service has: a map")

ROLE_KEY(ROLES_PLACE_JOB, .name = "fit",
    .kind = ROLES_KIND_FIT,
    .help = "How a model of the service is trained: a map")

ROLE_KEY(ROLES_PLACE_JOB, .name = "handover",
    FIELD(struct roles, handover),
    .kind = ROLES_KIND_TIME,
    .builtin = "0",
    .help = "So long before its time limit, 2m or more, the job of a service submits the job that "
            "goes on with it. 0: none is submitted")

ROLE_KEY(ROLES_PLACE_JOB, .name = "roles",
    .kind = ROLES_KIND_ROLES,
    .required = true,
    .help = "The roles of the job, each by its name. A name has up to 31 small letters, digits "
            "and `-`, a letter first")

/* ---- of a role ------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_ROLE, .name = "kind",
    FIELD(struct role, kind),
    .kind = ROLES_KIND_WORD,
    .words = {[ROLE_REPLICAS] = "replicas", [ROLE_WORLD] = "world", [ROLE_SHARDS] = "shards",
              [ROLE_ROUTER] = "router"},
    .builtin = "replicas",
    .world = true, .router = true,
    .help = "`replicas`: copies of one program. `world`: the training that `--elastic` alone "
            "would run. `shards`: servers of a service, each with a part of its models. "
            "`router`: the address of the service, as long as the job runs. At most one role is a "
            "world, one is of shards, and one is a router")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "template",
    .kind = ROLES_KIND_TEMPLATE,
    .world = true,
    .router = true,
    .help = "A file of the site, NAME.yaml in `roles_dir`, whose keys hold where the role does "
            "not have them")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "run",
    FIELD(struct role, run),
    .kind = ROLES_KIND_COMMAND,
    .required = true,
    .world = true,
    .help = "The program and its arguments, as a list. No shell reads it")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "leads",
    FIELD(struct role, leads),
    .kind = ROLES_KIND_YES_NO,
    .builtin = "no",
    .world = true,
    .no_shards = true,
    .help = "The job ends as this role ends. Exactly one role leads. In a job with `service` none "
            "has to")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "replicas",
    FIELD(struct role, min),
    .kind = ROLES_KIND_RANGE,
    .min = 0, .max = ROLES_REPLICAS_MAX,
    .builtin = "1",
    .help = "How many copies there are: N, or MIN:MAX. MIN are guaranteed, the others run while "
            "there are nodes. A role that leads has 1. Of shards: N, of each shard, none of which "
            "is guaranteed")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "nodes",
    FIELD(struct role, min),
    .kind = ROLES_KIND_RANGE,
    .min = 1, .max = SIZES_NODES_MAX,
    .builtin = "1",
    .only_world = true,
    .help = "How many nodes the world has: N, or MIN:MAX")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "tasks",
    FIELD(struct role, gang.tasks),
    .kind = ROLES_KIND_NUMBER,
    .min = 1, .max = ROLES_TASKS_MAX,
    .builtin = "1",
    .help = "The tasks of a replica. They run all together, or none of them")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "per-node",
    FIELD(struct role, gang.per_node),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = ROLES_TASKS_MAX,
    .builtin = "0",
    .help = "So many tasks of a replica are on each of its nodes. 0: as few nodes as it can be")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "cpus",
    FIELD(struct role, gang.size.cpus),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 65535,
    .builtin = "1", .builtin_world = "0",
    .world = true,
    .router = true,
    .help = "CPUs of a task. Of a world: of each of its nodes; 0: all that are left")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "gpus",
    FIELD(struct role, gang.size.gpus),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 1024,
    .builtin = "0",
    .world = true,
    .help = "GPUs of a task. Of a world: of each of its nodes; 0: all that are left")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "memory",
    FIELD(struct role, gang.size.memory),
    .kind = ROLES_KIND_MEMORY,
    .builtin = "0",
    .world = true,
    .router = true,
    .help = "Memory of a task, with K, M, G or T as Slurm's; without: MiB. 0: none is set aside. "
            "Of a world: of each of its nodes; 0: all that is left")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "base",
    FIELD(struct role, base),
    .kind = ROLES_KIND_POOL,
    .no_shards = true,
    .router = true,
    .help = "The pool of guaranteed replicas for which the base has no room. It should be one "
            "that nobody preempts. Without it they run on the base only")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "pool",
    FIELD(struct role, pools),
    .kind = ROLES_KIND_POOLS,
    .max = POLICY_POOLS_MAX,
    .world = true,
    .router = true,
    .help = "The pools of the other replicas, in this order. Without it: those of the job")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "ports",
    FIELD(struct role, ports),
    .kind = ROLES_KIND_NAMES,
    .max = ROLES_PORTS_MAX,
    .help = "Names of the ports of each task. Each gets a free one: `{port:NAME}` in `run`, and "
            "`ELASTIC_PORT_NAME`. The ports of a replica on a node are in a row: the "
            "first ones of all its tasks, then the second ones")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "api",
    FIELD(struct role, api),
    .kind = ROLES_KIND_YES_NO,
    .builtin = "no",
    .world = true,
    .help = "Its nodes offer the HTTP interface of the job to its tasks: `ELASTIC_API`")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "ready",
    .kind = ROLES_KIND_READY,
    .help = "How it is known that a task is ready: a map, or `told`. Without it a task is ready "
            "once its program has been executed")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "drain",
    .kind = ROLES_KIND_DRAIN,
    .help = "How a task is asked to end: a map")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "restart",
    .kind = ROLES_KIND_RESTART,
    .router = true,
    .help = "How often and when replicas are started again after a failure: a map")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "after",
    FIELD(struct role, after),
    .kind = ROLES_KIND_ROLE_NAMES,
    .help = "Roles that have to be ready before this one starts")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "grow",
    FIELD(struct role, asks),
    .kind = ROLES_KIND_FLAG,
    .words = {"auto", "ask"},
    .builtin = "auto",
    .world = true,
    .no_shards = true,
    .help = "`auto`: it grows as nodes are idle. `ask`: only when somebody asks for that")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "shield",
    FIELD(struct role, shield),
    .kind = ROLES_KIND_YES_NO,
    .builtin = "yes", .builtin_world = "no",
    .help = "Slurm's SIGTERM does not reach its tasks; `drain` is what asks them to end")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "shards",
    FIELD(struct role, shards.max),
    .kind = ROLES_KIND_SHARDS,
    .min = 1, .max = ROLES_SHARDS_MAX,
    .builtin = "1",
    .only_shards = true,
    .help = "How many shards there may be: N, or 1:N. There are as many as the models need")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "capacity",
    FIELD(struct role, shards.capacity),
    .kind = ROLES_KIND_MEMORY,
    .only_shards = true,
    .help = "Memory that a shard has for models, as `memory` is written. It must be there")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "load",
    FIELD(struct role, shards.load),
    .kind = ROLES_KIND_WORD,
    .words = {"file", "oip", "vllm-lora"},
    .builtin = "file",
    .only_shards = true,
    .help = "How models get into the program. `file`: it reads the file `{models}`, and reads it "
            "again when it is another one. `oip` and `vllm-lora`: the agent makes its server load "
            "and unload them, at the port that `ready` asks. It is ready once it has all of them")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "update",
    .kind = ROLES_KIND_UPDATE,
    .only_shards = true,
    .help = "How the replicas of a shard are replaced by new ones: a map")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "window",
    FIELD(struct role, shards.window),
    .kind = ROLES_KIND_TIME,
    .builtin = "5m",
    .only_shards = true,
    .help = "So long a change of models waits for others, at most, so that one update does them "
            "all. `selastic flush` ends it")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "scale",
    .kind = ROLES_KIND_SCALE,
    .only_shards = true,
    .help = "Replicas follow the requests that routers have: a map. `replicas` is the least then")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "listen",
    FIELD(struct role, router.listen),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 65535,
    .builtin = "0",
    .only_router = true,
    .help = "The port of the router, at all addresses of its node. 0: a free one, which "
            "`selastic endpoints` says")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "route-by",
    FIELD(struct role, router.by),
    .kind = ROLES_KIND_ROUTE_BY,
    .builtin = "json:$.model",
    .only_router = true,
    .help = "Where requests name their model, also for a `selastic router` beside the job: "
            "`json:$.model`, `path:/v2/models/`, `header:X-Tenant`")

ROLE_KEY(ROLES_PLACE_ROLE, .name = "tokens",
    FIELD(struct role, router.tokens),
    .kind = ROLES_KIND_PATH,
    .only_router = true,
    .help = "A file with one token in each line. `none`: everybody who reaches the router may ask. "
            "Without it: the file `tokens` of the service's directory, for which it waits")

/* ---- of ready -------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_READY, .name = "http",
    .kind = ROLES_KIND_PROBE,
    .probe = ROLE_PROBE_HTTP,
    .help = "GET of this path is answered with a status from 200 to 299")

ROLE_KEY(ROLES_PLACE_READY, .name = "tcp",
    .kind = ROLES_KIND_PROBE,
    .probe = ROLE_PROBE_TCP,
    .help = "`yes`: its port can be connected to")

ROLE_KEY(ROLES_PLACE_READY, .name = "file",
    .kind = ROLES_KIND_PROBE,
    .probe = ROLE_PROBE_FILE,
    .help = "This file exists, relative to the task's directory")

ROLE_KEY(ROLES_PLACE_READY, .name = "exec",
    .kind = ROLES_KIND_PROBE,
    .probe = ROLE_PROBE_EXEC,
    .help = "This command, a list, ends with status 0")

ROLE_KEY(ROLES_PLACE_READY, .name = "told",
    .kind = ROLES_KIND_PROBE,
    .probe = ROLE_PROBE_TOLD,
    .help = "`yes`: the task says so by `slurm_elastic.roles.ready()`")

ROLE_KEY(ROLES_PLACE_READY, .name = "port",
    FIELD(struct role, ready.port),
    .kind = ROLES_KIND_NAME,
    .help = "Which of `ports` is asked by `http` and `tcp`. Without it: the first one")

ROLE_KEY(ROLES_PLACE_READY, .name = "within",
    FIELD(struct role, ready.within),
    .kind = ROLES_KIND_TIME,
    .min = 1,
    .builtin = "60s",
    .help = "A task that is not ready so long after its start has failed")

ROLE_KEY(ROLES_PLACE_READY, .name = "every",
    FIELD(struct role, ready.every),
    .kind = ROLES_KIND_TIME,
    .min = 100,
    .builtin = "1s",
    .help = "The time from one look to the next one")

/* ---- of drain -------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_DRAIN, .name = "signal",
    FIELD(struct role, drain.signal),
    .kind = ROLES_KIND_SIGNAL,
    .builtin = "TERM",
    .help = "The signal that asks a task to end")

ROLE_KEY(ROLES_PLACE_DRAIN, .name = "within",
    FIELD(struct role, drain.within),
    .kind = ROLES_KIND_TIME,
    .builtin = "30s",
    .help = "A task that has not ended after so long gets SIGKILL")

/* ---- of restart ------------------------------------------------------------------------------ */

ROLE_KEY(ROLES_PLACE_RESTART, .name = "max",
    FIELD(struct role, restart.max),
    .kind = ROLES_KIND_BUDGET,
    .builtin = "10/3600",
    .help = "So many starts after failures, of all replicas together: N in all, or N/SECONDS "
            "within any so many seconds")

ROLE_KEY(ROLES_PLACE_RESTART, .name = "backoff",
    FIELD(struct role, restart.first_pause),
    .kind = ROLES_KIND_PAUSES,
    .min = 100,
    .builtin = "1s..60s",
    .help = "The pause before a start after a failure: FIRST..MOST. It doubles from the first to "
            "the longest one")

/* ---- of update ------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_UPDATE, .name = "max-surge",
    FIELD(struct role, shards.surge),
    .kind = ROLES_KIND_AMOUNT,
    .builtin = "50%",
    .help = "So many replicas more than `replicas`, or so many percent, rounded up")

ROLE_KEY(ROLES_PLACE_UPDATE, .name = "max-unavailable",
    FIELD(struct role, shards.unavailable),
    .kind = ROLES_KIND_AMOUNT,
    .builtin = "50%",
    .help = "So many replicas fewer are ready, or so many percent, rounded down. One stays ready")

ROLE_KEY(ROLES_PLACE_UPDATE, .name = "fail-fast",
    FIELD(struct role, shards.fail_fast),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = ROLES_REPLICAS_MAX,
    .builtin = "2",
    .help = "So many new replicas in a row that do not get ready end an update: the shard goes "
            "back to what it had. 0: none do")

/* ---- of scale -------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_SCALE, .name = "max",
    FIELD(struct role, shards.most),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = ROLES_REPLICAS_MAX,
    .builtin = "0",
    .help = "The most replicas of a shard. It goes with `sessions`")

ROLE_KEY(ROLES_PLACE_SCALE, .name = "sessions",
    FIELD(struct role, shards.sessions),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 1000000,
    .builtin = "0",
    .help = "Requests that a replica should have at the same time. It goes with `max`")

ROLE_KEY(ROLES_PLACE_SCALE, .name = "calm",
    FIELD(struct role, shards.calm),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "60s",
    .help = "Replicas that nobody has needed for so long go")

ROLE_KEY(ROLES_PLACE_SCALE, .name = "idle",
    FIELD(struct role, shards.idle),
    .kind = ROLES_KIND_TIME,
    .builtin = "0",
    .help = "A shard that nobody has asked for so long goes, with all its replicas. A model is "
            "loaded when somebody asks a router for it. 0: all models are always loaded")

/* ---- of models ------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_MODELS, .name = "repository",
    FIELD(struct roles, models.repository),
    .kind = ROLES_KIND_PATH,
    .help = "A directory that all nodes see, or `s3://BUCKET/PREFIX`. Each directory MODEL in it "
            "has states of that model, as `elastic-state` writes them. It must be there")

ROLE_KEY(ROLES_PLACE_MODELS, .name = "every",
    FIELD(struct roles, models.every),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "10s",
    .help = "The time between two looks at it")

ROLE_KEY(ROLES_PLACE_MODELS, .name = "copies",
    FIELD(struct roles, models.copies),
    .kind = ROLES_KIND_PATH,
    .help = "Of a repository on S3: a directory that all nodes see. In it, in a directory with the "
            "name of the service, are copies of the versions that are served. Without it: `copies` "
            "in the directory of the service")

ROLE_KEY(ROLES_PLACE_MODELS, .name = "copies-max",
    FIELD(struct roles, models.copies_max),
    .kind = ROLES_KIND_MEMORY,
    .builtin = "0",
    .help = "… have at most so much together, as `memory` of a role is written. A model that has "
            "no room stays as it was. 0: there is no limit")

/* ---- of fit ---------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_FIT, .name = "run",
    FIELD(struct roles, fit.run),
    .kind = ROLES_KIND_COMMAND,
    .help = "The training and its arguments, as a list. No shell reads it")

ROLE_KEY(ROLES_PLACE_FIT, .name = "role",
    FIELD(struct roles, fit.role),
    .kind = ROLES_KIND_NAME,
    .help = "Instead of `run`: a role of this file is the training, of kind `replicas` or `world`. "
            "It is there only while a fit needs it")

ROLE_KEY(ROLES_PLACE_FIT, .name = "call",
    FIELD(struct roles, fit.call),
    .kind = ROLES_KIND_PATH,
    .help = "The role is a server, which trains when it is asked by POST of this path, such as "
            "`/fit`. Without it: the role is a program that trains, and ends")

ROLE_KEY(ROLES_PLACE_FIT, .name = "stage",
    FIELD(struct roles, fit.stage),
    .kind = ROLES_KIND_COMMAND,
    .help = "A program that gets the data before, on the same node, as a list")

ROLE_KEY(ROLES_PLACE_FIT, .name = "cpus",
    FIELD(struct roles, fit.size.cpus),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 65535,
    .builtin = "1",
    .only_run = true,
    .help = "CPUs of the training")

ROLE_KEY(ROLES_PLACE_FIT, .name = "gpus",
    FIELD(struct roles, fit.size.gpus),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 1024,
    .builtin = "0",
    .only_run = true,
    .help = "GPUs of the training")

ROLE_KEY(ROLES_PLACE_FIT, .name = "memory",
    FIELD(struct roles, fit.size.memory),
    .kind = ROLES_KIND_MEMORY,
    .builtin = "0",
    .only_run = true,
    .help = "Memory of the training, as `memory` of a role is written. 0: none is set aside")

ROLE_KEY(ROLES_PLACE_FIT, .name = "pool",
    FIELD(struct roles, fit.pools),
    .kind = ROLES_KIND_POOLS,
    .max = POLICY_POOLS_MAX,
    .only_run = true,
    .help = "The pools of the training, in this order. Without it: those of the job")

ROLE_KEY(ROLES_PLACE_FIT, .name = "within",
    .kind = ROLES_KIND_WITHIN,
    .help = "How long the parts of a fit may take: a map")

ROLE_KEY(ROLES_PLACE_FIT, .name = "replace",
    FIELD(struct roles, fit.replace),
    .kind = ROLES_KIND_WORD,
    .words = {[ROLES_FIT_ROLLING] = "rolling", [ROLES_FIT_ALL] = "all", [ROLES_FIT_LOAD] = "load"},
    .builtin = "rolling",
    .help = "How replicas come to another version of a model. `rolling`: they are replaced as "
            "`update` of their role says; where that does not say how many, and `fit` has "
            "`trainer`, one at a time, the new one first. `all`: one is started, then all others "
            "are replaced at once. `load`: none is replaced, the program loads the version")

ROLE_KEY(ROLES_PLACE_FIT, .name = "states",
    FIELD(struct roles, fit.states),
    .kind = ROLES_KIND_PATH,
    .help = "`s3://BUCKET/PREFIX`: states of MODEL are below `PREFIX/MODEL`, too. The repository "
            "has copies of those that a fit has needed or made")

ROLE_KEY(ROLES_PLACE_FIT, .name = "keep",
    FIELD(struct roles, fit.keep),
    .kind = ROLES_KIND_NUMBER,
    .min = 0, .max = 1000000,
    .builtin = "0",
    .help = "So many complete states of a model stay. 0: all of them")

ROLE_KEY(ROLES_PLACE_FIT, .name = "trainer",
    FIELD(struct roles, fit.trainer),
    .kind = ROLES_KIND_PATH,
    .help = "Instead of `run`: `SERVICE@USER`, a service of another user whose `allow` names this "
            "one. `selastic fit start` asks it, as with `--trainer`")

ROLE_KEY(ROLES_PLACE_FIT, .name = "grant",
    FIELD(struct roles, fit.grant),
    .kind = ROLES_KIND_PATH,
    .help = "How a trainer of another user gets at data and states on S3. The ARN of a role, such "
            "as `arn:aws:iam::123456789012:role/fit`: by session credentials of that role. The "
            "ARN of its S3 user, such as `arn:aws:iam::123456789012:user/anna`: by the policies of "
            "the buckets")

ROLE_KEY(ROLES_PLACE_FIT, .name = "grant-time",
    FIELD(struct roles, fit.grant_time),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "15m",
    .help = "So long that access holds. It is given once more while the training runs. For a role "
            "servers take 15 minutes at least")

ROLE_KEY(ROLES_PLACE_FIT, .name = "allow",
    FIELD(struct roles, fit.allow),
    .kind = ROLES_KIND_COMMAND,
    .only_run = true,
    .help = "Other users who may have their models trained here (`selastic fit start --trainer`), "
            "and may do nothing else: a list of names, or `@GROUP`")

/* ---- of within ------------------------------------------------------------------------------- */

ROLE_KEY(ROLES_PLACE_WITHIN, .name = "start",
    FIELD(struct roles, fit.within.start),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "1h",
    .help = "Until the training has a place, and the data is there")

ROLE_KEY(ROLES_PLACE_WITHIN, .name = "fit",
    FIELD(struct roles, fit.within.fit),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "12h",
    .help = "For the training")

ROLE_KEY(ROLES_PLACE_WITHIN, .name = "target",
    FIELD(struct roles, fit.within.target),
    .kind = ROLES_KIND_TIME,
    .min = 1000,
    .builtin = "1h",
    .help = "Until all replicas have the new state")

#undef ROLE_KEY
