// Package etcd takes snapshots of etcd, checks them, and prepares them for a new control
// plane. It speaks the HTTP API that etcd serves beside gRPC
// (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway), and knows the format of etcd's
// database as etcdutl does (go.etcd.io/etcd/etcdutl/v3/snapshot).
package etcd
