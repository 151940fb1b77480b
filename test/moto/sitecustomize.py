"""Mends twenty faults of moto 5 in the server that the tests start.

Python imports this module when it starts. Without it:
- a rule for an IP protocol without ports, such as 4 (IP in IP, which Calico
  needs), is answered with an error of the server;
- the conditions of bucket policies are not read, so that "deny everything
  that does not come over TLS" denies everything;
- CloudFormation never deletes managed policies, and so cannot delete the roles
  that they are attached to;
- with permissions enforced, the signature of a GET without a body, such as
  EKS's ListClusters, is held against one over its headers as a body;
- of several instances that one call launches, only the first has the instance
  profile;
- two load balancers may have the same name: AWS answers a repeated request with
  the first one, and another request with an error;
- a Classic Load Balancer has no health check before one is set;
- the target groups of a load balancer without any are an error, not an empty
  list;
- the network interface of a NAT gateway does not say what it belongs to, and
  stays when the gateway is deleted;
- NAT gateways are not filtered by their tags, so that a cluster finds those of
  others;
- the network interfaces that an instance was launched with stay when it is
  terminated;
- it cannot be asked how an update of an EKS cluster or node group went;
- an Auto Scaling group has no default instance warmup;
- an Auto Scaling group has no lifecycle hooks that it was created with;
- a lifecycle hook notifies a queue that nobody has given;
- an Auto Scaling group with a mixed instances policy launches too few
  instances, because shares are rounded down;
- an update of an Auto Scaling group that does not mention the mixed instances
  policy removes it;
- it cannot be asked for instance refreshes, which it cannot start either;
- the versions of a launch template up to "$Latest" cannot be listed;
- the private address of a terminated instance is given to the next one;
- an Auto Scaling group cannot launch instances of any but the first version of
  a launch template with user data.

moto_eks.py does the same for EKS.

The environment variable MOTO_ELASTIC_IPS is the quota of elastic IP addresses; moto
itself has no quotas of EC2.
"""

import inspect
import json
import os

import moto_eks  # noqa: F401
from moto.autoscaling.models import FakeAutoScalingGroup, LifecycleHook
from moto.autoscaling.responses import AutoScalingResponse
from moto.core.responses import ActionResult
from moto.ec2.models import nat_gateways, security_groups
from moto.ec2.models.instances import Instance
from moto.ec2.models.launch_templates import LaunchTemplateVersion
from moto.ec2.models.subnets import Subnet
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.utils import parse_user_data
from moto.eks import responses as eks
from moto.eks import urls as eks_urls
from moto.elb import models as elb
from moto.elbv2 import models as elbv2
from moto.elbv2.exceptions import DuplicateLoadBalancerName, TargetGroupNotFoundError
from moto.iam import access_control
from moto.iam import models as iam
from moto.s3 import models as s3
from moto.servicequotas.models import ServiceQuotasBackend
from moto.utilities.utils import get_partition

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


def delete_policy(cls, resource_name, cloudformation_json, account_id, region_name):
    backend = iam.iam_backends[account_id][get_partition(region_name)]
    policy = backend.get_policy(resource_name)
    for holders in (backend.roles, backend.users, backend.groups):
        for holder in list(holders.values()):
            if resource_name in holder.managed_policies:
                policy.detach_from(holder)
    backend.delete_policy(resource_name)


iam.ManagedPolicy.delete_from_cloudformation_json = classmethod(delete_policy)

delete_role = iam.Role.delete_from_cloudformation_json.__func__


def delete_role_with_policies(cls, resource_name, cloudformation_json, account_id, region_name):
    backend = iam.iam_backends[account_id][get_partition(region_name)]
    for arn in cloudformation_json.get("Properties", {}).get("ManagedPolicyArns", []):
        if arn in backend.get_role(resource_name).managed_policies:
            backend.detach_role_policy(arn, resource_name)
    delete_role(cls, resource_name, cloudformation_json, account_id, region_name)


iam.Role.delete_from_cloudformation_json = classmethod(delete_role_with_policies)


signed = access_control.IAMRequestBase._create_aws_request


def signed_without_body(self):
    if self._method == "GET" and not self._body:
        self._data = {}
    return signed(self)


access_control.IAMRequest._create_aws_request = signed_without_body


run = InstanceResponse.run_instances


def run_with_profiles(self):
    answer = run(self)
    profile = {
        "iam_instance_profile_name": self._get_param("IamInstanceProfile.Name"),
        "iam_instance_profile_arn": self._get_param("IamInstanceProfile.Arn"),
    }
    if any(profile.values()):
        for instance in answer._result.instances[1:]:
            self.ec2_backend.associate_iam_instance_profile(instance.id, **profile)
    return answer


InstanceResponse.run_instances = run_with_profiles

balancer = elbv2.ELBv2Backend.create_load_balancer
parameters = inspect.signature(balancer)


def one_balancer_of_a_name(self, *args, **kwargs):
    given = parameters.bind(self, *args, **kwargs)
    given.apply_defaults()
    wanted = given.arguments
    subnets = wanted["subnet_ids"] + [m["SubnetId"] for m in wanted["subnet_mappings"] or []]
    for other in self.load_balancers.values():
        if other.name == wanted["name"]:
            same = other.scheme == wanted["scheme"] and {s.id for s in other.subnets} == set(subnets)
            if not same:
                raise DuplicateLoadBalancerName()
            return other
    return balancer(self, *args, **kwargs)


elbv2.ELBv2Backend.create_load_balancer = one_balancer_of_a_name


# A new Classic Load Balancer checks the first port of its instances (ELB user guide, "Health checks
# for the instances for your Classic Load Balancer"). The cloud controller manager ends without it.
new_classic = elb.LoadBalancer.__init__


def classic_with_health_check(self, *args, **kwargs):
    new_classic(self, *args, **kwargs)
    if self.listeners:
        self.health_check = elb.FakeHealthCheck("5", "10", "2", "30", f"TCP:{self.listeners[0].instance_port}")


elb.LoadBalancer.__init__ = classic_with_health_check

target_groups = elbv2.ELBv2Backend.describe_target_groups


def no_target_groups(self, load_balancer_arn, target_group_arns, names):
    try:
        return target_groups(self, load_balancer_arn, target_group_arns, names)
    except TargetGroupNotFoundError:
        if load_balancer_arn:
            return []
        raise


elbv2.ELBv2Backend.describe_target_groups = no_target_groups


create_nat = nat_gateways.NatGatewayBackend.create_nat_gateway
delete_nat = nat_gateways.NatGatewayBackend.delete_nat_gateway


def create_nat_with_interface(self, *args, **kwargs):
    gateway = create_nat(self, *args, **kwargs)
    interface = gateway._eni
    interface.interface_type, interface.requester_managed = "nat_gateway", True
    interface.description = f"Interface for NAT Gateway {gateway.id}"
    return gateway


def delete_nat_with_interface(self, nat_gateway_id):
    gateway = delete_nat(self, nat_gateway_id)
    for address in list(self.addresses):
        if address.eni is gateway._eni:
            self.disassociate_address(association_id=address.association_id)
    self.enis.pop(gateway._eni.id, None)
    return gateway


nat_gateways.NatGatewayBackend.create_nat_gateway = create_nat_with_interface
nat_gateways.NatGatewayBackend.delete_nat_gateway = delete_nat_with_interface


prepare_interfaces = Instance.prep_nics


def prepare_own_interfaces(self, nic_spec, *args, **kwargs):
    """AWS deletes those that RunInstances has made, unless it is told not to."""
    for nic in nic_spec:
        if not nic.get("NetworkInterfaceId"):
            nic.setdefault("DeleteOnTermination", True)
    prepare_interfaces(self, nic_spec, *args, **kwargs)


Instance.prep_nics = prepare_own_interfaces


def describe_update(self):
    """Updates of moto succeed at once."""
    return ActionResult({"update": {"id": self._get_param("updateId"), "status": "Successful", "errors": []}})


eks.EKSResponse.describe_update = describe_update
eks_urls.url_paths["{0}/clusters/(?P<name>[^/]+)/updates/(?P<updateId>[^/]+)$"] = eks_urls.response.dispatch


create_group = AutoScalingResponse.create_auto_scaling_group
update_group = AutoScalingResponse.update_auto_scaling_group


def keep_warmup(self):
    warmup = self._get_int_param("DefaultInstanceWarmup")
    if warmup is not None:
        name = self._get_param("AutoScalingGroupName")
        self.autoscaling_backend.autoscaling_groups[name].default_instance_warmup = warmup


def create_complete_group(self):
    answer = create_group(self)
    keep_warmup(self)
    for hook in self._get_params().get("LifecycleHookSpecificationList", []):
        self.autoscaling_backend.create_lifecycle_hook(
            name=hook["LifecycleHookName"],
            as_name=self._get_param("AutoScalingGroupName"),
            transition=hook["LifecycleTransition"],
            timeout=int(hook.get("HeartbeatTimeout", 3600)),
            result=hook.get("DefaultResult"),
        )
    return answer


def update_complete_group(self):
    answer = update_group(self)
    keep_warmup(self)
    return answer


def describe_no_instance_refreshes(self):
    return ActionResult({"InstanceRefreshes": []})


AutoScalingResponse.create_auto_scaling_group = create_complete_group
AutoScalingResponse.update_auto_scaling_group = update_complete_group
AutoScalingResponse.describe_instance_refreshes = describe_no_instance_refreshes

hook = LifecycleHook.__init__


def hook_without_queue(self, *args, **kwargs):
    hook(self, *args, **kwargs)
    self.role_arn = self.notification_target_arn = None


LifecycleHook.__init__ = hook_without_queue

set_capacity = FakeAutoScalingGroup.set_desired_capacity
update = FakeAutoScalingGroup.update


def set_whole_capacity(self, new_capacity):
    policy, self.mixed_instances_policy = self.mixed_instances_policy, None
    try:
        set_capacity(self, new_capacity)
    finally:
        self.mixed_instances_policy = policy


def update_with_policy(self, **kwargs):
    policy = self.mixed_instances_policy
    update(self, **kwargs)
    if not (kwargs.get("mixed_instances_policy") or kwargs["launch_template"] or kwargs["launch_config_name"]):
        self.mixed_instances_policy = policy


FakeAutoScalingGroup.set_desired_capacity = set_whole_capacity
FakeAutoScalingGroup.update = update_with_policy


get_number = LaunchTemplates._get_int_param


def get_number_of_version(self, name, *args, **kwargs):
    if name == "MaxVersion" and self._get_param(name) == "$Latest":
        return None
    return get_number(self, name, *args, **kwargs)


LaunchTemplates._get_int_param = get_number_of_version


def parsed_user_data(self):
    data = self.data.get("UserData")  # of the first version, moto has parsed it
    return parse_user_data(data) if isinstance(data, (str, bytes)) else data


LaunchTemplateVersion.user_data = property(parsed_user_data)


describe_nat_gateways = nat_gateways.NatGatewayBackend.describe_nat_gateways


def describe_tagged_nat_gateways(self, filters, nat_gateway_ids):
    wanted = {f.removeprefix("tag:"): values for f, values in (filters or {}).items() if f.startswith("tag:")}
    found = []
    for gateway in describe_nat_gateways(self, filters, nat_gateway_ids):
        tags = {t["key"]: t["value"] for t in gateway.get_tags()}
        if all(tags.get(key) in values for key, values in wanted.items()):
            found.append(gateway)
    return found


nat_gateways.NatGatewayBackend.describe_nat_gateways = describe_tagged_nat_gateways

get_quota = ServiceQuotasBackend.get_service_quota


def get_known_quota(self, service_code, quota_code):
    addresses = os.environ.get("MOTO_ELASTIC_IPS")
    if addresses and quota_code == "L-0263D0A3":
        return {"ServiceCode": service_code, "QuotaCode": quota_code, "Value": float(addresses)}
    return get_quota(self, service_code, quota_code)


ServiceQuotasBackend.get_service_quota = get_known_quota


def del_subnet_ip(self, ip):
    self._subnet_ips.pop(ip, None)


# AWS chooses any free address of the subnet, so that a new instance rarely has that of a terminated one.
Subnet.del_subnet_ip = del_subnet_ip
