// Command componenttable writes the table of what the components of Kubernetes know in each minor
// version: flags, feature gates, admission plugins, cloud providers, plugins of the scheduler, kinds of configuration files and fields of
// the kubelet's configuration. It downloads the Go modules of Kubernetes and parses their source code. It runs none of that code.
//
//	go run ./hack/componenttable >internal/engine/components/table.txt
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// releases are the newest patch releases that the Go module proxy has.
func releases() []string {
	return []string{"27.16", "28.15", "29.6", "30.14", "31.14", "32.13", "33.13", "34.4", "35.4", "36.3", "37.2"}
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run writes a line for each thing: component, sort, name, and a mark for each release, which is
// "-" where the release does not have it.
func run() error {
	marks, oldest := map[string][]string{}, ""
	for i, release := range releases() {
		minor, _, _ := strings.Cut(release, ".")
		if oldest == "" {
			oldest = minor
		}
		found, err := read(release)
		if err != nil {
			return fmt.Errorf("1.%s: %w", release, err)
		}
		for name, mark := range found {
			for len(marks[name]) < i {
				marks[name] = append(marks[name], "-")
			}
			marks[name] = append(marks[name], mark)
		}
	}
	fmt.Printf("# What the components of Kubernetes know, for each minor version from 1.%s on; \"-\": not known.\n", oldest)
	fmt.Printf("# Made by hack/componenttable from the Go modules of 1.%s.\n", strings.Join(releases(), ", 1."))
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		row := marks[name]
		for len(row) < len(releases()) {
			row = append(row, "-")
		}
		fmt.Println(name, strings.Join(row, ""))
	}
	return nil
}

// modules are the folders of the modules of a release.
type modules map[string]string

// download returns the folders of the modules that have flags and feature gates.
func download(release string) (modules, error) {
	out := modules{}
	for name, major := range map[string]string{
		"kubernetes": "1", "apiserver": "0", "component-base": "0", "cloud-provider": "0", "controller-manager": "0", "apiextensions-apiserver": "0", "client-go": "0", "kube-aggregator": "0",
		"kubelet": "0", "kube-scheduler": "0", "pod-security-admission": "0",
	} {
		dir, err := downloadModule("k8s.io/"+name, "v"+major, release)
		if err != nil {
			return nil, fmt.Errorf("k8s.io/%s: %w", name, err)
		}
		out["k8s.io/"+name] = dir
	}
	return out, nil
}

// downloadModule downloads a module, and returns its folder. If the Go module proxy does not have that patch release, it is the newest older one
// that the proxy has.
func downloadModule(name, major, release string) (dir string, err error) {
	minor, text, _ := strings.Cut(release, ".")
	patch, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	for ; patch >= 0; patch-- {
		var raw []byte
		wanted := fmt.Sprintf("%s@%s.%s.%d", name, major, minor, patch)
		raw, err = exec.Command("go", "mod", "download", "-json", wanted).Output() //nolint:gosec,noctx // fixed words; a tool for developers
		var module struct{ Dir, Error string }
		if parsed := json.Unmarshal(raw, &module); err == nil {
			err = parsed
		}
		if module.Error != "" {
			err = errors.New(module.Error)
		}
		if err == nil {
			return module.Dir, nil
		}
	}
	return "", err
}

// read returns what a release has: "component sort name", and its mark.
func read(release string) (map[string]string, error) {
	found := map[string]string{}
	m, err := download(release)
	if err != nil {
		return nil, err
	}
	for component, folders := range flagFolders() {
		flags, err := m.flags(folders)
		if err != nil {
			return nil, err
		}
		for name, mark := range flags {
			found[component+" flag "+name] = mark
		}
	}
	sorts := map[string]func() (map[string]string, error){
		"components gate": func() (map[string]string, error) { return m.gates(release) }, "kubeadm gate": m.kubeadmGates,
		"kube-apiserver admission": m.admission, "components cloud-provider": m.cloudProviders,
		"kubelet field": m.kubeletFields, "kube-scheduler plugin": m.schedulerPlugins,
	}
	for component, folders := range kindFolders() {
		sorts[component+" kind"] = func() (map[string]string, error) { return m.kinds(folders) }
	}
	for sort, of := range sorts {
		rows, err := of()
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 && !strings.HasSuffix(sort, "cloud-provider") {
			return nil, fmt.Errorf("no %s was found", sort)
		}
		for name, mark := range rows {
			found[sort+" "+name] = mark
		}
	}
	return found, nil
}
