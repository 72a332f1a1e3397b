# SPDX-License-Identifier: GPL-2.0-or-later
"""A program of DI-engine for tests: it listens where one would, and says who it is."""

import os
import socket

role = os.environ["ELASTIC_ROLE"]
port = int(os.environ[f"{role.upper()}_PORT"])
if "KUBERNETES_AGGREGATOR_URL" in os.environ and role == "learner":
    port += int(os.environ["RANK"])  # as its learners do
names = "KUBERNETES_POD_NAME", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "START_RANK"
said = " ".join(os.environ.get(name, "-") for name in names)
listener = socket.create_server(("", port))
while True:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(f"{said} {os.environ.get('KUBERNETES_AGGREGATOR_URL', '-')}\n".encode())
