package ec2

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// catalogArchive holds the answers of AWS about instance types and their zones, of May
// 2026. internal/cataloggen generates it.
//
//go:embed catalog.zip
var catalogArchive []byte

// listing is the content of the archive.
type listing struct {
	names     []string // of instance types, sorted
	lines     []string // their descriptions in JSON
	zones     map[string]listedZone
	zoneNames []string // sorted
	common    []byte   // the types in nearly all zones

	described sync.Map // instanceType by name, when it was decoded
}

// listedZone is an availability zone, with a bit for each instance type that it offers.
type listedZone struct {
	ID    string
	Types []byte
}

// instanceType is an instance type.
type instanceType struct {
	name string
	info types.InstanceTypeInfo
}

// listings reads the archive when it is first needed.
//
//nolint:gochecknoglobals // caches a pure function of the embedded archive
var listings = sync.OnceValue(func() *listing {
	archive, err := zip.NewReader(bytes.NewReader(catalogArchive), int64(len(catalogArchive)))
	if err != nil {
		panic(fmt.Sprintf("catalog of instance types: %v", err))
	}
	l := &listing{lines: strings.Split(strings.TrimSpace(string(member(archive, "types.jsonl"))), "\n")}
	if err := json.Unmarshal(member(archive, "zones.json"), &l.zones); err != nil {
		panic(fmt.Sprintf("catalog of instance types: %v", err))
	}
	l.zoneNames = slices.Sorted(maps.Keys(l.zones))
	for _, line := range l.lines {
		_, rest, _ := strings.Cut(line, `"InstanceType":"`)
		name, _, _ := strings.Cut(rest, `"`)
		l.names = append(l.names, name)
	}
	l.common = l.commonTypes()
	return l
})

func member(archive *zip.Reader, name string) []byte {
	f, err := archive.Open(name)
	if err != nil {
		panic(fmt.Sprintf("catalog of instance types: %v", err))
	}
	data, err := io.ReadAll(f)
	if err != nil {
		panic(fmt.Sprintf("catalog of instance types: %v", err))
	}
	return data
}

// commonTypes returns the instance types that nine of ten zones offer: they are assumed for
// a region without listings.
func (l *listing) commonTypes() []byte {
	common := make([]byte, (len(l.names)+7)/8)
	for n := range l.names {
		zones := 0
		for _, z := range l.zones {
			zones += int(z.Types[n/8] >> (n % 8) & 1)
		}
		if zones*10 >= len(l.zones)*9 {
			common[n/8] |= 1 << (n % 8)
		}
	}
	return common
}

// offers reports whether an availability zone offers an instance type.
func (l *listing) offers(zone, name string) bool {
	n, ok := slices.BinarySearch(l.names, name)
	if !ok {
		return false
	}
	bits := l.common
	if z, ok := l.zones[zone]; ok {
		bits = z.Types
	}
	return bits[n/8]>>(n%8)&1 == 1
}

// archived returns the instance type of the archive with that name, in whatever region.
func archived(name string) (instanceType, bool) {
	l := listings()
	n, ok := slices.BinarySearch(l.names, name)
	if !ok {
		return instanceType{}, false
	}
	if t, ok := l.described.Load(name); ok {
		return t.(instanceType), true
	}
	t := instanceType{name: name}
	if err := json.Unmarshal([]byte(l.lines[n]), &t.info); err != nil {
		panic(fmt.Sprintf("instance type %s: %v", name, err))
	}
	l.described.Store(name, t)
	return t, true
}

// vcpus returns the number of vCPUs.
func (t instanceType) vcpus() int {
	if t.info.VCpuInfo == nil {
		return 0
	}
	return int(aws.ToInt32(t.info.VCpuInfo.DefaultVCpus))
}

// SizeOf returns the vCPUs and the memory in MiB of an instance type; 0 if it does not exist.
func (svc *Service) SizeOf(name string) (cpus, memory int) {
	t, ok := archived(name)
	if !ok || t.info.MemoryInfo == nil {
		return 0, 0
	}
	return t.vcpus(), int(aws.ToInt64(t.info.MemoryInfo.SizeInMiB))
}

// architectures returns the architectures of the processor.
func (t instanceType) architectures() []types.ArchitectureType {
	if t.info.ProcessorInfo == nil {
		return nil
	}
	return t.info.ProcessorInfo.SupportedArchitectures
}
