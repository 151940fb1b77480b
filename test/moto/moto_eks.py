"""Adds to moto's EKS what controllers and a second run look at. Without it:
- a cluster has no security group, no VPC, no access configuration and no support
  policy, and reports only those settings of its endpoint that it was given;
- add-ons, access entries and identity providers cannot be listed;
- a node group has no Auto Scaling group, no machines and another version than the
  cluster, always a key for SSH, and does not keep how it is updated and repaired;
- there is no parameter with an image for nodes; here is that of Kubernetes 1.34.

The environment variable MOTO_EKS names a file with the endpoint and the CA (in base64)
of the API server that new clusters report, as JSON. Without the file, the endpoint is
random, as in moto.
"""

import json
import os
import re

from moto.autoscaling.models import autoscaling_backends
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models import ec2_backends
from moto.eks.models import EKSBackend
from moto.eks.responses import EKSResponse
from moto.eks.urls import response, url_paths
from moto.ssm.models import Parameter, ParameterDict

create_cluster = EKSResponse.create_cluster
delete_cluster = EKSBackend.delete_cluster
update_cluster = EKSBackend.update_cluster_config


def create_complete_cluster(self):
    answer = create_cluster(self)
    cluster = self.eks_backend.clusters[self._get_param("name")]
    cluster.access_config = {
        "authenticationMode": "CONFIG_MAP",
        "bootstrapClusterCreatorAdminPermissions": True,
        **(self._get_param("accessConfig") or {}),
    }
    cluster.upgrade_policy = self._get_param("upgradePolicy") or {"supportType": "EXTENDED"}
    cluster.resources_vpc_config = {
        "securityGroupIds": [],
        "endpointPublicAccess": True,
        "endpointPrivateAccess": False,
        "publicAccessCidrs": ["0.0.0.0/0"],
        **{k: v for k, v in cluster.resources_vpc_config.items() if v is not None},
        **cluster_network(ec2_backends[self.current_account][self.region], cluster),
    }
    if os.path.exists(os.environ.get("MOTO_EKS", "")):
        with open(os.environ["MOTO_EKS"], encoding="utf-8") as f:
            server = json.load(f)
        cluster.endpoint, cluster.certificate_authority = server["endpoint"], {"data": server["ca"]}
    return answer


def cluster_network(ec2, cluster):
    vpc = ec2.get_subnet(cluster.resources_vpc_config["subnetIds"][0]).vpc_id
    name = f"eks-cluster-sg-{cluster.name}"
    group = ec2.create_security_group(
        name,
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any managed workloads.",
        vpc,
        tags={"Name": name, "aws:eks:cluster-name": cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"},
    )
    return {"vpcId": vpc, "clusterSecurityGroupId": group.id}


def delete_cluster_with_group(self, name):
    cluster = delete_cluster(self, name)
    group = cluster.resources_vpc_config.get("clusterSecurityGroupId")
    if group:
        ec2_backends[self.account_id][self.region_name].delete_security_group(group_id=group)
    return cluster


def update_part_of_cluster(self, name, resources_vpc_config, **kwargs):
    if resources_vpc_config and name in self.clusters:
        given = {k: v for k, v in resources_vpc_config.items() if v is not None}
        resources_vpc_config = {**self.clusters[name].resources_vpc_config, **given}
    return update_cluster(self, name, resources_vpc_config, **kwargs)


EKSResponse.create_cluster = create_complete_cluster
EKSBackend.delete_cluster = delete_cluster_with_group
EKSBackend.update_cluster_config = update_part_of_cluster


def none_of(key):
    return lambda self: ActionResult({key: []})


for operation, path, key in [
    ("list_addons", "addons", "addons"),
    ("list_access_entries", "access-entries", "accessEntries"),
    ("list_identity_provider_configs", "identity-provider-configs", "identityProviderConfigs"),
]:
    setattr(EKSResponse, operation, none_of(key))
    url_paths["{0}/clusters/(?P<name>[^/]+)/" + path + "$"] = response.dispatch


create_group = EKSResponse.create_nodegroup
delete_group = EKSBackend.delete_nodegroup


def create_group_with_machines(self):
    answer = create_group(self)
    cluster = self.eks_backend.clusters[self._get_param("name")]
    group = cluster.nodegroups[self._get_param("nodegroupName")]
    group.version = self._get_param("version") or cluster.version
    group.release_version = self._get_param("releaseVersion") or f"{group.version}.0-20260101"
    group.update_config = self._get_param("updateConfig") or {"maxUnavailable": 1}
    group.node_repair_config = self._get_param("nodeRepairConfig") or {"enabled": False}
    if not self._get_param("remoteAccess"):
        group.remote_access = None
        group.resources.pop("remoteAccessSecurityGroup", None)
    launch(self.current_account, self.region, cluster, group)
    return answer


def image(ec2):
    return next(i for i in ec2.amis.values() if i.name.startswith("amazon-eks-node-"))


def launch(account, region, cluster, group):
    ec2 = ec2_backends[account][region]
    tags = {"eks:cluster-name": cluster.name, "eks:nodegroup-name": group.nodegroup_name}
    instance_tags = [{"Key": k, "Value": v} for k, v in tags.items()]
    template = ec2.create_launch_template(
        f"eks-{group.uuid}",
        "",
        {
            "ImageId": image(ec2).id,
            "InstanceType": group.instance_types[0],
            "TagSpecifications": [{"ResourceType": "instance", "Tags": instance_tags}],
        },
        {"launch-template": dict(tags)},
    )
    tags |= {
        f"k8s.io/cluster-autoscaler/{cluster.name}": "owned",
        "k8s.io/cluster-autoscaler/enabled": "true",
        f"kubernetes.io/cluster/{cluster.name}": "owned",
    }
    name = f"eks-{group.nodegroup_name}-{group.uuid}"
    group.resources["autoScalingGroups"] = [{"name": name}]
    autoscaling_backends[account][region].create_auto_scaling_group(
        name=name,
        availability_zones=[],
        desired_capacity=group.scaling_config["desiredSize"],
        max_size=group.scaling_config["maxSize"],
        min_size=group.scaling_config["minSize"],
        launch_config_name="",
        launch_template={"LaunchTemplateId": template.id, "Version": "1"},
        vpc_zone_identifier=",".join(group.subnets),
        default_cooldown=None,
        health_check_period=None,
        health_check_type=None,
        load_balancers=[],
        target_group_arns=[],
        placement_group=None,
        termination_policies=[],
        tags=[
            {"Key": k, "Value": v, "PropagateAtLaunch": "true", "ResourceId": name, "ResourceType": "auto-scaling-group"}
            for k, v in tags.items()
        ],
    )


def delete_group_with_machines(self, cluster_name, nodegroup_name):
    group = delete_group(self, cluster_name, nodegroup_name)
    autoscaling = autoscaling_backends[self.account_id][self.region_name]
    autoscaling.delete_auto_scaling_group(group.resources["autoScalingGroups"][0]["name"])
    ec2_backends[self.account_id][self.region_name].delete_launch_template(f"eks-{group.uuid}", None)
    return group


EKSResponse.create_nodegroup = create_group_with_machines
EKSBackend.delete_nodegroup = delete_group_with_machines


check_loading_status = ParameterDict._check_loading_status
image_parameter = re.compile(r"/aws/service/eks/optimized-ami/1\.34/amazon-linux-2023/x86_64/standard/recommended/image_id")


def load_images_of_eks(self, key):
    if not image_parameter.fullmatch(str(key)):
        check_loading_status(self, key)
    elif not dict.get(self, key):
        self[key] = [
            Parameter(
                account_id=self.account_id,
                name=key,
                value=image(ec2_backends[self.account_id][self.region_name]).id,
                parameter_type="String",
                description=None,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=utcnow(),
                version=1,
                data_type="text",
            )
        ]


ParameterDict._check_loading_status = load_images_of_eks
