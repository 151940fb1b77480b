package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// imageDir has the content of images that were unpacked.
const imageDir = "/run/lab/images"

// ctr is the command line of containerd, as far as the script of a restore uses it
// (github.com/containerd/containerd/cmd/ctr/commands/images): the images in the namespace of
// Kubernetes, mounted read-only.
func ctr(args []string) error {
	if len(args) < 3 || !slices.Equal(args[:3], []string{"--namespace", "k8s.io", "images"}) {
		return fmt.Errorf("ctr: the lab does not know how to %q", args)
	}
	switch args = args[3:]; {
	case slices.Equal(args, []string{"list", "-q"}):
		for _, image := range images() {
			if _, err := fmt.Println(image); err != nil {
				return err
			}
		}
		return nil
	case len(args) == 3 && args[0] == "mount":
		return mountImage(args[1], args[2])
	case len(args) == 3 && args[0] == "unmount" && args[1] == "--rm":
		return syscall.Unmount(args[2], syscall.MNT_DETACH) // with the program that is mounted in it
	}
	return fmt.Errorf("ctr: the lab does not know how to %q", args)
}

// images lists the images of etcd. Their tags have a revision.
func images() (all []string) {
	files, _ := filepath.Glob(filepath.Join(programDir, "etcd-v*")) // the pattern is valid
	for _, file := range files {
		all = append(all, "registry.k8s.io/etcd:"+strings.TrimPrefix(filepath.Base(file), "etcd-v")+"-0")
	}
	return all
}

// mountImage mounts an image that has its program in /usr/local/bin, and no shell.
func mountImage(image, target string) error {
	if !slices.Contains(images(), image) {
		return fmt.Errorf("image %q: not found", image)
	}
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("mount target %s is not a directory", target))
	}
	program := filepath.Join(imageDir, strings.ReplaceAll(image, "/", "_"), "usr/local/bin/etcd")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(program, nil, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(findProgram(image, "etcd"), program, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", program, err)
	}
	root := filepath.Join(program, "../../../..")
	if err := syscall.Mount(root, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	_, err := fmt.Println(target)
	return err
}
