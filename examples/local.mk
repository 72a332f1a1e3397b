# SPDX-License-Identifier: GPL-2.0-or-later
#
# examples/: what users start from; each is a directory with a README.
acceleratedir = $(examplesdir)/accelerate
dist_accelerate_DATA = \
    examples/accelerate/README.md \
    examples/accelerate/elastic_accelerate.py \
    examples/accelerate/train.py

containerdir = $(examplesdir)/container
dist_container_DATA = \
    examples/container/README.md \
    examples/container/train.py
dist_container_SCRIPTS = \
    examples/container/apptainer.sh \
    examples/container/bubblewrap.sh \
    examples/container/job.sh

daskdir = $(examplesdir)/dask
dist_dask_DATA = \
    examples/dask/README.md \
    examples/dask/dask.yaml \
    examples/dask/primes.py
dist_dask_SCRIPTS = examples/dask/job.sh

deadlinedir = $(examplesdir)/deadline
dist_deadline_DATA = \
    examples/deadline/README.md \
    examples/deadline/train.py
dist_deadline_SCRIPTS = \
    examples/deadline/job.sh

deepspeeddir = $(examplesdir)/deepspeed
dist_deepspeed_DATA = \
    examples/deepspeed/README.md \
    examples/deepspeed/elastic_deepspeed.py \
    examples/deepspeed/train.py

digitsdir = $(examplesdir)/digits
dist_digits_DATA = \
    examples/digits/README.md \
    examples/digits/check_log.py \
    examples/digits/digits.py \
    examples/digits/images.py \
    examples/digits/train_dcp.py \
    examples/digits/train_ddp.py \
    examples/digits/train_elastic.py \
    examples/digits/train_fsdp.py \
    examples/digits/train_pipeline.py \
    examples/digits/train_restart.py

fitdir = $(examplesdir)/fit
dist_fit_DATA = \
    examples/fit/README.md \
    examples/fit/fit.yaml \
    examples/fit/further.py
dist_fit_SCRIPTS = examples/fit/job.sh

huggingfacedir = $(examplesdir)/huggingface
dist_huggingface_DATA = \
    examples/huggingface/README.md \
    examples/huggingface/elastic_trainer.py \
    examples/huggingface/train.py \
    examples/huggingface/train_live.py

lightningdir = $(examplesdir)/lightning
dist_lightning_DATA = \
    examples/lightning/README.md \
    examples/lightning/elastic_lightning.py \
    examples/lightning/train.py

raydir = $(examplesdir)/ray
dist_ray_DATA = \
    examples/ray/README.md \
    examples/ray/primes.py \
    examples/ray/ray.yaml
dist_ray_SCRIPTS = examples/ray/job.sh

rldir = $(examplesdir)/rl
dist_rl_DATA = \
    examples/rl/README.md \
    examples/rl/cartpole.py \
    examples/rl/collector.py \
    examples/rl/coordinator.py \
    examples/rl/learner.py \
    examples/rl/rl.yaml
dist_rl_SCRIPTS = examples/rl/job.sh

servedir = $(examplesdir)/serve
dist_serve_DATA = \
    examples/serve/README.md \
    examples/serve/client.py \
    examples/serve/serve.py \
    examples/serve/serve.yaml \
    examples/serve/train.py
dist_serve_SCRIPTS = examples/serve/job.sh

worldsdir = $(examplesdir)/worlds
dist_worlds_DATA = \
    examples/worlds/README.md \
    examples/worlds/worlds.c

# With our warnings; the tests build it as a user does.
check_PROGRAMS += examples/worlds/worlds
examples_worlds_worlds_SOURCES = examples/worlds/worlds.c
examples_worlds_worlds_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/client
examples_worlds_worlds_LDFLAGS = $(AM_LDFLAGS)
examples_worlds_worlds_LDADD = client/libelastic.la
