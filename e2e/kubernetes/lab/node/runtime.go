package node

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerd is the socket where kubeadm looks for a container runtime.
const containerd = "/run/containerd/containerd.sock"

// runtime answers the calls of kubeadm to a container runtime. All images exist, as on
// images for Cluster API.
type runtime struct {
	cri.UnimplementedRuntimeServiceServer
	cri.UnimplementedImageServiceServer
}

// Version implements cri.RuntimeServiceServer.
func (runtime) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{Version: "0.1.0", RuntimeName: "lab", RuntimeVersion: "1", RuntimeApiVersion: "v1"}, nil
}

// Status implements cri.RuntimeServiceServer.
func (runtime) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: []*cri.RuntimeCondition{
		{Type: cri.RuntimeReady, Status: true}, {Type: cri.NetworkReady, Status: true},
	}}}, nil
}

// RuntimeConfig implements cri.RuntimeServiceServer.
func (runtime) RuntimeConfig(context.Context, *cri.RuntimeConfigRequest) (*cri.RuntimeConfigResponse, error) {
	return &cri.RuntimeConfigResponse{}, nil
}

// ListPodSandbox implements cri.RuntimeServiceServer.
func (runtime) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{}, nil
}

// ImageFsInfo implements cri.ImageServiceServer.
func (runtime) ImageFsInfo(context.Context, *cri.ImageFsInfoRequest) (*cri.ImageFsInfoResponse, error) {
	return &cri.ImageFsInfoResponse{}, nil
}

// ImageStatus implements cri.ImageServiceServer.
func (runtime) ImageStatus(_ context.Context, r *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	return &cri.ImageStatusResponse{Image: &cri.Image{Id: r.Image.Image, RepoTags: []string{r.Image.Image}, Size: 1}}, nil
}

// serveRuntime serves it until the context ends.
func serveRuntime(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(containerd), 0o755); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", containerd)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(s, runtime{})
	cri.RegisterImageServiceServer(s, runtime{})
	go func() { _ = s.Serve(l) }() // as long as the instance runs
	return nil
}
