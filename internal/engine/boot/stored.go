package boot

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	infrav1 "sigs.k8s.io/cluster-api-provider-aws/v2/api/v1beta2"
)

// FetchOf returns where the script in the user data of Boothook fetches bootstrap data; ok is
// false if the user data has no such script.
func FetchOf(userData []byte) (f Fetch, ok bool) {
	setting := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `='([^']*)'$`).FindSubmatch(userData)
		if m == nil {
			return ""
		}
		return string(m[1])
	}
	f = Fetch{Backend: Backend(setting("BACKEND")), Prefix: setting("PREFIX"), Region: setting("REGION"), Keep: setting("KEEP") == "yes"}
	f.Chunks, _ = strconv.Atoi(setting("CHUNKS")) // without any, there is no script
	return f, f.Prefix != "" && f.Chunks > 0
}

// Join joins the chunks of Chunks.
func Join(b Backend, chunks [][]byte) ([]byte, error) {
	data := bytes.Join(chunks, nil)
	if b == ParameterStore {
		var err error
		if data, err = base64.StdEncoding.DecodeString(string(data)); err != nil {
			return nil, fmt.Errorf("bootstrap data: %w", err)
		}
	}
	return Decompress(data)
}

// Decompress returns user data as it was before Fit.
func Decompress(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(r)
	}
	if err != nil {
		return nil, fmt.Errorf("compressed data: %w", err)
	}
	return data, nil
}

// IgnitionSource returns from where a small configuration, as that of IgnitionPointer, makes
// Ignition load another one; "" for others.
func IgnitionSource(data []byte) string {
	var config ignConfig
	if json.Unmarshal(data, &config) != nil {
		return ""
	}
	for _, s := range append(config.Ignition.Config.Append, config.Ignition.Config.Merge...) {
		if len(config.Storage.Files) == 0 {
			return s.Source
		}
	}
	return ""
}

// PointerSpec returns the settings of the machine from which IgnitionPointer has made a
// configuration.
func PointerSpec(data []byte) *infrav1.Ignition {
	var config ignConfig
	if json.Unmarshal(data, &config) != nil {
		return nil
	}
	meta := config.Ignition
	spec := &infrav1.Ignition{StorageType: infrav1.IgnitionStorageTypeOptionClusterObjectStore, Version: strings.TrimSuffix(meta.Version, ".0")}
	if p := meta.Proxy; p != nil {
		spec.Proxy = &infrav1.IgnitionProxy{}
		if p.HTTPProxy != "" {
			spec.Proxy.HTTPProxy = &p.HTTPProxy
		}
		if p.HTTPSProxy != "" {
			spec.Proxy.HTTPSProxy = &p.HTTPSProxy
		}
		for _, host := range p.NoProxy {
			spec.Proxy.NoProxy = append(spec.Proxy.NoProxy, infrav1.IgnitionNoProxy(host))
		}
	}
	for _, ca := range meta.Security.TLS.CertificateAuthorities {
		if spec.TLS == nil {
			spec.TLS = &infrav1.IgnitionTLS{}
		}
		spec.TLS.CASources = append(spec.TLS.CASources, infrav1.IgnitionCASource(ca.Source))
	}
	return spec
}
