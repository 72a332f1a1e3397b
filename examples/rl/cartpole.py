# SPDX-License-Identifier: GPL-2.0-or-later
"""What the three programs share: the environment, the policy in numpy, and how they talk.

A pole stands on a cart. Each step pushes the cart to the left or to the right, and gives a reward
of 1 while the pole stands. An episode ends when the pole falls, the cart leaves the track, or after
500 steps. The equations are those of Barto, Sutton and Anderson: Neuronlike adaptive elements that
can solve difficult learning control problems, 1983.
"""

import http.client
import io
import os
import secrets
import urllib.error
import urllib.request

import numpy
from slurm_elastic import roles

LONGEST = 500  # steps of an episode
ACTIONS = 2
OBSERVED = 4  # place and speed of the cart, angle and angular speed of the pole

_GRAVITY, _CART, _POLE, _HALF_LENGTH, _FORCE, _TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
_EDGE, _TILT = 2.4, 12 * numpy.pi / 180


class CartPoles:
    """Several carts at once. state: float64[carts, OBSERVED]; age: int[carts], steps so far."""

    def __init__(self, carts, generator):
        self._generator = generator
        self.state = self._fresh(carts)
        self.age = numpy.zeros(carts, int)

    def _fresh(self, carts):
        return self._generator.uniform(-0.05, 0.05, (carts, OBSERVED))

    def step(self, actions):
        """One step of each cart; actions: int[carts], 0 or 1.

        Returns (fell, full, lengths): bool[carts] for episodes that have failed and for those that
        are full, and the lengths of all that are over. These carts begin anew.
        """
        place, speed, angle, turn = self.state.T
        force = numpy.where(actions == 1, _FORCE, -_FORCE)
        mass = _CART + _POLE
        cos, sin = numpy.cos(angle), numpy.sin(angle)
        push = (force + _POLE * _HALF_LENGTH * turn**2 * sin) / mass
        turns = (_GRAVITY * sin - cos * push) / (_HALF_LENGTH * (4 / 3 - _POLE * cos**2 / mass))
        moves = push - _POLE * _HALF_LENGTH * turns * cos / mass
        self.state = numpy.stack(
            [
                place + _TAU * speed,
                speed + _TAU * moves,
                angle + _TAU * turn,
                turn + _TAU * turns,
            ],
            axis=1,
        )
        self.age += 1
        fell = (abs(self.state[:, 0]) > _EDGE) | (abs(self.state[:, 2]) > _TILT)
        full = ~fell & (self.age >= LONGEST)
        over = fell | full
        lengths = self.age[over].copy()
        self.state[over] = self._fresh(int(over.sum()))
        self.age[over] = 0
        return fell, full, lengths


def forward(weights, name, x):
    """The network "policy" or "value" (learner.py) in numpy. x: float[..., OBSERVED]."""
    for layer in (0, 2):
        x = numpy.tanh(x @ weights[f"{name}.{layer}.weight"].T + weights[f"{name}.{layer}.bias"])
    return x @ weights[f"{name}.4.weight"].T + weights[f"{name}.4.bias"]


# ---- arrays on their way -------------------------------------------------------------------------


def pack(arrays):
    """A dict of arrays as bytes."""
    file = io.BytesIO()
    numpy.savez(file, **arrays)
    return file.getvalue()


def unpack(data):
    """The dict again. Raises ValueError if it is none."""
    try:
        with numpy.load(io.BytesIO(data), allow_pickle=False) as file:
            return dict(file)
    except (OSError, EOFError, KeyError) as error:
        raise ValueError(f"no arrays: {error}") from None


# ---- the coordinator, as learner and collectors see it -------------------------------------------


def _secret_path():
    return os.path.join(os.environ["ELASTIC_SHARED_DIR"], f"secret-{os.environ['SLURM_JOB_ID']}")


def make_secret():
    """The text that all requests carry: other users of the node can connect to the port, too."""
    path = _secret_path()
    draft = f"{path}.{secrets.token_hex(8)}"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(16))
    try:
        os.link(draft, path)  # whole, or not at all
    except FileExistsError:
        pass  # this coordinator has been started again
    finally:
        os.unlink(draft)
    return read_secret()


def read_secret():
    """Raises PermissionError if the file is somebody else's, or others may read it."""
    path = _secret_path()
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), encoding="ascii") as file:
        status = os.fstat(file.fileno())
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"{path} is not this user's alone")
        return file.read()


class Over(Exception):
    """The training is over."""


class Coordinator:
    """The job's coordinator, wherever it runs by now."""

    _opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def __init__(self):
        self._secret = None

    def ask(self, path, arrays=None):
        """GET of path, or POST of arrays. Returns (status, arrays or None); status 0: it is away.

        Raises Over if the coordinator says so.
        """
        try:
            return self._ask(path, arrays)
        except urllib.error.HTTPError as error:
            if error.code == 410:
                raise Over from None
            return error.code, None
        except (OSError, http.client.HTTPException):
            return 0, None

    def _ask(self, path, arrays):
        if self._secret is None:
            self._secret = read_secret()
        (at,) = roles.wait("coordinator", 1, timeout=1)
        request = urllib.request.Request(
            f"http://{at.address}:{at.ports['data']}{path}",
            None if arrays is None else pack(arrays),
            {"Authorization": "Bearer " + self._secret},
        )
        with self._opener.open(request, timeout=30) as answer:
            body = answer.read()
            return answer.status, unpack(body) if body else None
