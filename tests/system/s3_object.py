#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A second opinion on what is on S3, by boto3: s3_object.py COMMAND ARGUMENT...

    bucket BUCKET             make a bucket
    put BUCKET KEY FILE ...   put objects
    put-many BUCKET KEY N     put N objects KEY0000, KEY0001, ... of one byte each
    get BUCKET KEY            print an object
    status BUCKET KEY         print the status of HTTP for that
    publish BUCKET KEY        let everybody read it, by its ACL
    same BUCKET PREFIX DIR    compare all objects below a prefix with the files of a directory
    keys BUCKET PREFIX        print keys
    remove BUCKET PREFIX      delete all objects below a prefix
    uploads BUCKET            print keys of uploads that were begun and not ended
    policy BUCKET [FILE]      print the policy of a bucket, or make it that of a file
    session BUCKET PREFIX     credentials for this prefix only, as NAME=VALUE lines
    serve SOCKET              do what others ask for, each in a process of its own
    ask SOCKET COMMAND ...    have one of these commands done there

Server and keys are those of the environment. To import boto3 takes ten times as long as most
commands do: who serves has done it once.
"""

import os
import signal
import sys
from _socket import AF_UNIX, CMSG_LEN, SCM_RIGHTS, SOL_SOCKET, socket

MOST = 100_000  # bytes of a command


def import_boto3():
    global boto3, botocore, concurrent, json, pathlib
    import concurrent.futures
    import json
    import pathlib

    import boto3
    import botocore.config
    import botocore.exceptions


def client(name):
    return boto3.client(
        name,
        endpoint_url=os.environ["AWS_ENDPOINT_URL"],
        config=botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        region_name="us-east-1",
        # What boto3 finds by itself it remembers, and the next command may have other keys.
        aws_access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        aws_session_token=os.environ.get("AWS_SESSION_TOKEN"),
    )


def objects(bucket, prefix):
    pages = client("s3").get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=bucket, Prefix=prefix):
        yield from page.get("Contents", [])


def same(bucket, prefix, directory):
    s3 = client("s3")
    there = {each["Key"][len(prefix) :]: each["Key"] for each in objects(bucket, prefix)}
    files = [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]
    here = {str(path.relative_to(directory)): path for path in files}
    wrong = sorted(there.keys() ^ here.keys())
    for name in there.keys() & here.keys():
        if s3.get_object(Bucket=bucket, Key=there[name])["Body"].read() != here[name].read_bytes():
            wrong.append(name)
    if wrong:
        sys.exit(f"differ: {wrong[:10]}")
    print(len(there), "objects")


def status(bucket, key):
    try:
        answer = client("s3").head_object(Bucket=bucket, Key=key)
    except botocore.exceptions.ClientError as error:
        answer = error.response
    print(answer["ResponseMetadata"]["HTTPStatusCode"])


def session(bucket, prefix):
    resources = [f"arn:aws:s3:::{bucket}/{prefix}/*", f"arn:aws:s3:::{bucket}"]
    policy = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Action": ["s3:*"], "Resource": resources[:1]},
            {
                "Effect": "Allow",
                "Action": ["s3:ListBucket"],
                "Resource": resources[1:],
                "Condition": {"StringLike": {"s3:prefix": f"{prefix}/*"}},
            },
        ],
    }
    answer = client("sts").assume_role(
        RoleArn="arn:aws:iam:::role/fit",
        RoleSessionName="fit",
        Policy=json.dumps(policy, separators=(",", ":")),  # a gateway takes a plus for a plus
        DurationSeconds=900,
    )["Credentials"]
    print(f"AWS_ACCESS_KEY_ID={answer['AccessKeyId']}")
    print(f"AWS_SECRET_ACCESS_KEY={answer['SecretAccessKey']}")
    print(f"AWS_SESSION_TOKEN={answer['SessionToken']}")


def do(command, *arguments):
    s3 = client("s3")
    if command == "bucket":
        s3.create_bucket(Bucket=arguments[0])
    elif command == "put":
        for key, file in zip(arguments[1::2], arguments[2::2]):
            s3.put_object(Bucket=arguments[0], Key=key, Body=pathlib.Path(file).read_bytes())
    elif command == "put-many":
        keys = (f"{arguments[1]}{number:04d}" for number in range(int(arguments[2])))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda key: s3.put_object(Bucket=arguments[0], Key=key, Body=b"x"), keys))
    elif command == "get":
        body = s3.get_object(Bucket=arguments[0], Key=arguments[1])["Body"]
        sys.stdout.buffer.write(body.read())
    elif command == "status":
        status(*arguments)
    elif command == "publish":
        s3.put_object_acl(Bucket=arguments[0], Key=arguments[1], ACL="public-read")
    elif command == "same":
        same(*arguments)
    elif command == "keys":
        for each in objects(*arguments):
            print(each["Key"])
    elif command == "remove":
        for each in list(objects(*arguments)):
            s3.delete_object(Bucket=arguments[0], Key=each["Key"])
    elif command == "uploads":
        for each in s3.list_multipart_uploads(Bucket=arguments[0]).get("Uploads", []):
            print(each["Key"])
    elif command == "policy" and len(arguments) == 1:
        print(s3.get_bucket_policy(Bucket=arguments[0])["Policy"])
    elif command == "policy":
        s3.put_bucket_policy(Bucket=arguments[0], Policy=pathlib.Path(arguments[1]).read_text())
    elif command == "session":
        session(*arguments)
    else:
        sys.exit(f"no command {command}")


# ---- one process for many commands ---------------------------------------------------------------


def keys():
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


def ask(path, *words):
    """The command gets our directory, our output, and our keys; ends with its status."""
    there = socket(AF_UNIX)
    there.connect(path)
    here = os.open(".", os.O_PATH)
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in (here, 1, 2))
    there.sendmsg([repr((keys(), words)).encode()], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    there.shutdown(1)
    status = there.recv(1)
    sys.exit(status[0] if status else "no answer")


def answer(there):
    """In a process of its own: does what is asked for, and says how it has ended."""
    import ast
    import traceback

    text, rights, _, _ = there.recvmsg(MOST, CMSG_LEN(12))
    numbers = [rights[0][2][at : at + 4] for at in (0, 4, 8)]
    here, out, err = (int.from_bytes(number, sys.byteorder) for number in numbers)
    os.fchdir(here)
    os.dup2(out, 1)
    os.dup2(err, 2)
    environment, words = ast.literal_eval(text.decode())
    for name in keys():
        del os.environ[name]
    os.environ.update(environment)
    status = 1
    try:
        do(*words)
        sys.stdout.flush()
        status = 0
    except SystemExit as end:
        print(end, file=sys.stderr)
    except Exception:
        traceback.print_exc()
    sys.stderr.flush()
    there.send(bytes([status]))
    os._exit(0)


def serve(path):
    import_boto3()
    # So each command finds them read.
    os.environ.update(
        AWS_ENDPOINT_URL="http://none", AWS_ACCESS_KEY_ID="none", AWS_SECRET_ACCESS_KEY="none"
    )
    client("s3"), client("sts")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listening = socket(AF_UNIX)
    listening.bind(path + ".new")
    listening.listen(8)
    os.rename(path + ".new", path)
    while True:
        number, _ = listening._accept()
        there = socket(AF_UNIX, 1, 0, number)
        if os.fork() == 0:
            answer(there)
        there.close()


command, *arguments = sys.argv[1:]
if command == "ask":
    ask(*arguments)
elif command == "serve":
    serve(*arguments)
else:
    import_boto3()
    do(command, *arguments)
