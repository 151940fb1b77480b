module sigs.k8s.io/cluster-api-provider-aws/v2/bootstrap/eks/oracle

go 1.26.0

require sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
