#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A second opinion on what is on S3, by boto3: s3_object.py COMMAND ARGUMENT...

    bucket BUCKET             make a bucket
    put BUCKET KEY FILE ...   put objects
    put-many BUCKET KEY N     put N objects KEY0000, KEY0001, ... of one byte each
    get BUCKET KEY            print an object
    same BUCKET PREFIX DIR    compare all objects below a prefix with the files of a directory
    keys BUCKET PREFIX        print keys
    remove BUCKET PREFIX      delete all objects below a prefix
    uploads BUCKET            print keys of uploads that were begun and not ended
    policy BUCKET [FILE]      print the policy of a bucket, or make it that of a file
    session BUCKET PREFIX     credentials for this prefix only, as NAME=VALUE lines

Server and keys are those of the environment.
"""

import concurrent.futures
import json
import os
import pathlib
import sys

import boto3
import botocore.config

ENDPOINT = os.environ["AWS_ENDPOINT_URL"]
CONFIG = botocore.config.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1})


def client(name):
    return boto3.client(name, endpoint_url=ENDPOINT, config=CONFIG, region_name="us-east-1")


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


def main(command, *arguments):
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


main(*sys.argv[1:])
