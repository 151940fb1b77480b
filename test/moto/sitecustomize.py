"""Mends two faults of moto 5 in the server that the tests start.

Python imports this module when it starts. Without it:
- a rule for an IP protocol without ports, such as 4 (IP in IP, which Calico
  needs), is answered with an error of the server;
- the conditions of bucket policies are not read, so that "deny everything
  that does not come over TLS" denies everything.
"""

import inspect
import json

from moto.ec2.models import security_groups
from moto.s3 import models as s3

rule = security_groups.SecurityGroupRule.__init__
names = inspect.signature(rule)


def rule_without_ports(self, *args, **kwargs):
    given = names.bind(self, *args, **kwargs)
    ports = [given.arguments.get(p) for p in ("from_port", "to_port")]
    for p in ("from_port", "to_port"):
        if given.arguments.get(p) is None:
            given.arguments[p] = "-1"
    rule(*given.args, **given.kwargs)
    if None in ports:
        self.from_port = self.to_port = None


security_groups.SecurityGroupRule.__init__ = rule_without_ports

permission = s3.FakeBucket.get_permission


def permission_without_conditions(self, action, resource):
    policy = self.policy
    if policy is None:
        return permission(self, action, resource)
    document = json.loads(policy)
    document["Statement"] = [s for s in document["Statement"] if "Condition" not in s]
    self.policy = json.dumps(document).encode()
    try:
        return permission(self, action, resource)
    finally:
        self.policy = policy


s3.FakeBucket.get_permission = permission_without_conditions
