// Command cataloggen generates the archive of instance types and their zones that the
// simulated EC2 embeds. Its source is the folder moto/ec2/resources of the Python package
// moto, which contains answers of DescribeInstanceTypes and DescribeInstanceTypeOfferings.
// Run it in the root of the repository:
//
//	go run ./internal/awssim/ec2/internal/cataloggen FOLDER
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/clusterawsadm/clusterawsadm/test/awsmodel"
)

const target = "internal/awssim/ec2/catalog.zip"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cataloggen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return errors.New("the argument is the folder moto/ec2/resources")
	}
	names, lines, err := readTypes(args[0])
	if err != nil {
		return err
	}
	zones, err := readZones(args[0], names)
	if err != nil {
		return err
	}
	offerings, err := json.Marshal(zones)
	if err != nil {
		return err
	}
	archive, err := pack(map[string][]byte{"types.jsonl": lines, "zones.json": offerings})
	if err != nil {
		return err
	}
	return os.WriteFile(target, archive, 0o600)
}

// readTypes returns the sorted names of the instance types, and one line of JSON for each.
func readTypes(folder string) (names []string, lines []byte, err error) {
	var all map[string]json.RawMessage
	if err := awsmodel.Read(filepath.Join(folder, "instance_types.json.gz"), &all); err != nil {
		return nil, nil, err
	}
	names = slices.Sorted(maps.Keys(all))
	var out bytes.Buffer
	for _, name := range names {
		if err := json.Compact(&out, all[name]); err != nil {
			return nil, nil, err
		}
		out.WriteByte('\n')
	}
	return names, out.Bytes(), nil
}

// zone is an availability zone: its ID, and a bit for each instance type that it offers, in
// the order of the names.
type zone struct {
	ID    string
	Types []byte
}

// readZones returns the zones of all regions by name. The listings by zone and by ID are of
// one account; a name and an ID belong together if they offer the same types.
func readZones(folder string, names []string) (map[string]zone, error) {
	zones := map[string]zone{}
	offerings := filepath.Join(folder, "instance_type_offerings")
	files, err := filepath.Glob(filepath.Join(offerings, "availability-zone", "*.json.gz"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		byName, err := readOfferings(file, names)
		if err != nil {
			return nil, err
		}
		byID, err := readOfferings(filepath.Join(offerings, "availability-zone-id", filepath.Base(file)), names)
		if err != nil {
			return nil, err
		}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			for _, id := range slices.Sorted(maps.Keys(byID)) {
				if bytes.Equal(byName[name], byID[id]) {
					zones[name] = zone{id, byName[name]}
					delete(byID, id)
					break
				}
			}
			if zones[name].ID == "" {
				return nil, fmt.Errorf("no ID of zone %s has its instance types", name)
			}
		}
	}
	return zones, nil
}

// readOfferings returns the bits of each location.
func readOfferings(file string, names []string) (map[string][]byte, error) {
	var all []struct{ InstanceType, Location string }
	if err := awsmodel.Read(file, &all); err != nil {
		return nil, err
	}
	bits := map[string][]byte{}
	for _, o := range all {
		n, ok := slices.BinarySearch(names, o.InstanceType)
		if !ok {
			return nil, fmt.Errorf("%s: %s is not described", file, o.InstanceType)
		}
		if bits[o.Location] == nil {
			bits[o.Location] = make([]byte, (len(names)+7)/8)
		}
		bits[o.Location][n/8] |= 1 << (n % 8)
	}
	return bits, nil
}

// pack writes a zip archive that is the same for the same files.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
