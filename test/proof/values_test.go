package proof_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// variable is a variable of a template with a default.
var variable = regexp.MustCompile(`\$\{[A-Z0-9_]+:?[=-]([^}]*)\}`)

// wrong is a value that AWS or Kubernetes may refuse, and why.
type wrong struct {
	class string
	value any
}

// The classes of wrong values.
const (
	unknownID      = "unknown ID"
	otherRegion    = "other region"
	otherPartition = "other partition"
	otherKind      = "other kind"
	outOfRange     = "out of range"
	wrongForm      = "wrong form"
	notExisting    = "not existing"
	tooMany        = "too many"
	contradiction  = "contradicting a neighbour"
	otherVersion   = "not known to this version"
	removed        = "removed"
)

// classesOfText are the wrong values of texts, by the name of the field or its present value.
func classesOfText() []struct {
	names, values string
	class         string
	wrong         []string
} {
	return []struct {
		names, values string
		class         string
		wrong         []string
	}{
		{`(?i)cidr`, `^[0-9.]+/\d+$`, wrongForm, []string{"10.0.1.5/16", "10.0.0.0", "10.0.0.0/33", "300.0.0.0/16", "fd00::/64", "10.0.0.1/32"}},
		{`(?i)cidr`, `^[0-9.]+/\d+$`, outOfRange, []string{"10.0.0.0/8", "10.0.0.0/30", "0.0.0.0/0", "224.0.0.0/16", "127.0.0.0/16", "169.254.0.0/16"}},
		{
			`(?i)cidr`,
			`^[0-9.]+/\d+$`,
			contradiction,
			[]string{"172.31.0.0/24", "10.0.0.0/16", "10.0.0.0/20", "10.0.64.0/18", "10.96.0.0/16", "192.168.0.0/16", "198.19.0.0/16"},
		},
		{
			`(?i)(^|vpc|subnet|group|reservation|gateway|interface|ami|image|host|allocation|endpoint)ids?$`,
			`^(sg|ami|subnet|vpc|cr|h|eni|rtb)-`,
			unknownID,
			[]string{
				"sg-0123456789abcdef9",
				"ami-0123456789abcdef9",
				"subnet-0123456789abcdef9",
				"vpc-0123456789abcdef9",
				"cr-0123456789abcdef9",
				"h-0123456789abcdef9",
				"eni-0123456789abcdef9",
			},
		},
		{`(?i)groups?$|interfaces?$|reservation`, `^$`, unknownID, []string{"sg-0123456789abcdef9", "eni-0123456789abcdef9"}},
		{
			`(?i)arn$|key|provider|polic|boundary|principal`,
			`^arn:`,
			otherPartition,
			[]string{
				"arn:aws-cn:iam::123456789012:role/other",
				"arn:aws-us-gov:iam::aws:policy/ReadOnlyAccess",
				"arn:aws-cn:kms:cn-north-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ac",
			},
		},
		{
			`(?i)arn$|key|provider|polic|boundary|principal`,
			`^arn:`,
			otherKind,
			[]string{
				"arn:aws:s3:::bucket",
				"arn:aws:iam::123456789012:user/ada",
				"arn:aws:sts::123456789012:assumed-role/a/b",
				"arn:aws:iam::aws:policy/ReadOnlyAccess",
			},
		},
		{
			`(?i)arn$|key|provider|polic|boundary|principal`,
			`^arn:`,
			notExisting,
			[]string{
				"arn:aws:iam::123456789012:role/nope",
				"arn:aws:iam::123456789012:policy/nope",
				"arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ac",
				"arn:aws:eks::aws:cluster-access-policy/Nope",
				"alias/nope",
			},
		},
		{
			`(?i)arn$|key|provider|polic|boundary|principal`,
			`^arn:`,
			otherRegion,
			[]string{"arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"},
		},
		{`(?i)zones?$|failureDomain`, `^[a-z]+-[a-z]+-\d[a-z]$`, otherRegion, []string{"eu-west-1a", "us-east-1-bos-1a"}},
		{`(?i)zones?$|failureDomain`, `^[a-z]+-[a-z]+-\d[a-z]$`, notExisting, []string{"us-east-1z", "a"}},
		{`(?i)version$`, `^v?\d+\.\d+`, otherVersion, []string{"v1.20.0", "v1.99.0", "v1.34.99", "v1.27.16", "latest", "1"}},
		{`(?i)instanceType$`, `^[a-z]+\d[a-z]*\.`, notExisting, []string{"t3.hug", "t3"}},
		{`(?i)instanceType$`, `^[a-z]+\d[a-z]*\.`, contradiction, []string{"m6g.large", "t3.nano", "t3.micro", "t2.small", "mac1.metal", "m1.small"}},
		{`(?i)^type$`, `^(gp\d|io\d|st1|sc1)$`, outOfRange, []string{"gp9", "io1", "io2", "gp2", "st1", "sc1", "standard"}},
		{`(?i)price`, ``, wrongForm, []string{"abc", "-1", "0", "1,5", "1e3"}},
		{`(?i)protocol`, ``, wrongForm, []string{"tpc", "256", "-2", "icmp", "HTTPS", "58", "-1"}},
		{`(?i)device`, `^/dev/`, wrongForm, []string{"sda", "/dev/sda1", "/dev/xvda", "/dev/nvme0n1", "/dev/sdzz9", "c:"}},
		{`(?i)permissions|mode$`, `^0?\d{3}$`, wrongForm, []string{"999", "0644 ", "rwx", "77777"}},
		{`(?i)effect`, ``, wrongForm, []string{"NoShedule"}},
		{`(?i)socket`, ``, otherVersion, []string{"/var/run/dockershim.sock", "unix:///var/run/dockershim.sock", "tcp://localhost:1"}},
		{`(?i)size|quantity|memory|cpu|limit`, ``, wrongForm, []string{"7Gigs", "-1"}},
		{`(?i)address|host$|ip$`, ``, wrongForm, []string{"10.0.0.300", "::", "10.0.0.1", "api.example.com", "-bad-.example"}},
		{`(?i)url|endpoint|server`, `^https?:`, wrongForm, []string{"example.com", "ftp://example.com", "https://"}},
		{`(?i)region`, `^[a-z]+-[a-z]+-\d$`, otherRegion, []string{"eu-west-1", "us-east-9", "cn-north-1", "us-gov-west-1"}},
		{
			`(?i)(policyarn|policies)`,
			``,
			otherKind,
			[]string{"arn:aws:iam::aws:policy/AdministratorAccess", "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"},
		},
		{`(?i)groups$`, `^[a-z:-]+$`, otherKind, []string{"system:masters", "system:nodes", "eks:admin"}},
		{`(?i)user`, ``, otherKind, []string{"system:admin", "aws:ada", "eks:ada"}},
		{`(?i)configuration$`, ``, wrongForm, []string{`{"a":`, `{"nonsense": true}`}},
	}
}

// anyText are the wrong values of every text.
func anyText() map[string][]string {
	return map[string][]string{
		wrongForm:   {"Größe", "a b/c:d", "-x_", "x\ny", "UPPER"},
		outOfRange:  {strings.Repeat("x", 70), strings.Repeat("y", 300)},
		notExisting: {"nope"},
	}
}

// wrongValues derives wrong values for a field from its schema, its name and its present value.
func (f field) wrongValues() (out []wrong) {
	add := func(class string, values ...any) {
		for _, v := range values {
			if text(v) != text(f.get()) {
				out = append(out, wrong{class, v})
			}
		}
	}
	now := f.get()
	if now != nil {
		add(removed, nil)
	}
	s := f.schema
	switch {
	case strings.HasSuffix(f.path, "extraArgs") || strings.HasSuffix(f.path, "kubeletExtraArgs"):
		arguments(s, f, add)
	case len(s.Enum) > 0:
		add(contradiction, s.Enum...)
	case s.IntOrString:
		add(wrongForm, "x", "101%", "50%")
		add(outOfRange, 0, -1, 1<<31-1)
	case s.Type == "boolean":
		add(contradiction, true, false)
	case s.Type == "integer" || s.Type == "number":
		add(outOfRange, f.numbers()...)
	case s.Type == "array":
		f.lists(add)
	case s.Additional != nil:
		f.maps(add)
	case s.Type == "string":
		f.texts(add)
	}
	return out
}

// numbers are values at and beyond the limits of numbers that AWS and Kubernetes know. Thousands of
// machines take too long.
func (f field) numbers() (out []any) {
	s := f.schema
	for _, n := range []int64{-1, 0, 1, 2, 7, 33, 51, 101, 2001, 5001, 16001, 65535, 65536, 70000, 100001, 1<<31 - 1} {
		if s.Minimum != nil && float64(n) < *s.Minimum || s.Maximum != nil && float64(n) > *s.Maximum {
			continue // the schema refuses it
		}
		if f.name == "replicas" && n > 60 && n < 5001 {
			continue
		}
		out = append(out, n)
	}
	return out
}

// texts adds the wrong values of a text.
func (f field) texts(add func(string, ...any)) {
	now, _ := f.get().(string)
	typed := false
	for _, c := range classesOfText() {
		named := regexp.MustCompile(c.names).MatchString(f.name)
		if !named && (c.values == "" || now == "" || !regexp.MustCompile(c.values).MatchString(now)) {
			continue
		}
		typed = true
		for _, w := range c.wrong {
			add(c.class, w)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(anyText())) {
		for i, w := range anyText()[class] {
			if !typed || i < 2 {
				add(class, w)
			}
		}
	}
}

// most is more than the items that AWS permits in most lists, and the tags of a resource.
const most = 60

// lists adds an item twice, too many items, and the wrong values of items.
func (f field) lists(add func(string, ...any)) {
	present, _ := f.get().([]any)
	items := f.schema.Items
	if items == nil {
		return
	}
	item := items.some(f.name, 0)
	if len(present) > 0 {
		item = present[0]
	}
	add(contradiction, append(slices.Clone(present), item), append(slices.Clone(present), item, item))
	var many []any
	for i := range most {
		many = append(many, numbered(item, i))
	}
	add(tooMany, many)
	if items.Type == "string" && len(items.Enum) == 0 {
		one := field{name: f.name, schema: items, get: func() any {
			if len(present) > 0 {
				return present[0]
			}
			return nil
		}}
		one.texts(func(class string, values ...any) {
			for _, v := range values {
				add(class, []any{v})
			}
		})
	}
}

// numbered changes the texts of a value, so that a list has different items.
func numbered(v any, i int) any {
	switch v := v.(type) {
	case string:
		if at := strings.Index(v, "10.0."); at == 0 {
			return fmt.Sprintf("10.0.%d.0/24", i)
		}
		return fmt.Sprintf("%s%d", v, i)
	case map[string]any:
		out := maps.Clone(v)
		for _, name := range []string{"name", "id", "key", "namespace", "cidrBlock", "path", "principalARN", "deviceName"} {
			if x, ok := out[name]; ok {
				out[name] = numbered(x, i)
			}
		}
		return out
	}
	return v
}

// maps adds wrong keys, wrong values and too many entries.
func (f field) maps(add func(string, ...any)) {
	present, _ := f.get().(map[string]any)
	with := func(k string, v any) map[string]any {
		m := maps.Clone(present)
		if m == nil {
			m = map[string]any{}
		}
		m[k] = v
		return m
	}
	item := f.schema.Additional.some(f.name, 0)
	many := maps.Clone(present)
	if many == nil {
		many = map[string]any{}
	}
	for i := range most {
		many[fmt.Sprintf("k%d", i)] = item
	}
	add(tooMany, many)
	for _, key := range []string{"aws:x", "kubernetes.io/x", "node-role.kubernetes.io/x", "a b", "Größe*", strings.Repeat("k", 130), "Name"} {
		add(wrongForm, with(key, item))
	}
	if f.schema.Additional.Type == "string" {
		add(wrongForm, with("key", "Größe*"), with("key", "a b"), with("key", "a;b"))
		add(outOfRange, with("key", strings.Repeat("v", 260)))
	}
	if f.schema.Additional.Type == "boolean" {
		for _, gate := range []string{"NoSuchGate", "EtcdLearnerMode", "ControlPlaneKubeletLocalMode", "RootlessControlPlane", "IPv6DualStack"} {
			add(otherVersion, with(gate, true), with(gate, false))
		}
	}
}

// arguments adds arguments that a component does not have, or has no more, and wrong values.
func arguments(s *schema, f field, add func(string, ...any)) {
	for _, a := range [][2]string{
		{"nonsense-flag", "x"},
		{"cloud-provider", "aws"},
		{"cloud-provider", "external"},
		{"cloud-provider", "gce"},
		{"cloud-config", "/etc/kubernetes/cloud.conf"},
		{"feature-gates", "NoSuchGate=true"},
		{"feature-gates", "CSIMigrationAWS=true"},
		{"feature-gates", "nonsense"},
		{"feature-gates", "AllAlpha=true"},
		{"enable-admission-plugins", "PodSecurityPolicy"},
		{"enable-admission-plugins", "NodeRestriction,Nope"},
		{"disable-admission-plugins", "SecurityContextDeny"},
		{"runtime-config", "policy/v1beta1=true"},
		{"runtime-config", "api/all=true"},
		{"runtime-config", "nonsense=true"},
		{"network-plugin", "cni"},
		{"container-runtime", "remote"},
		{"container-runtime-endpoint", "unix:///var/run/dockershim.sock"},
		{"pod-infra-container-image", "x"},
		{"port", "10251"},
		{"insecure-port", "0"},
		{"address", "0.0.0.0"},
		{"enable-dynamic-provisioning", "true"},
		{"experimental-cluster-signing-duration", "1h"},
		{"pod-eviction-timeout", "1m"},
		{"node-labels", "node-role.kubernetes.io/worker="},
		{"register-with-taints", "a=b:NoShedule"},
		{"v", "many"},
		{"max-pods", "x"},
		{"node-ip", "not-an-ip"},
		{"service-node-port-range", "1-2-3"},
		{"audit-log-maxage", "x"},
		{"cgroup-driver", "none"},
		{"allow-privileged", "perhaps"},
	} {
		if s.Type == "array" {
			present, _ := f.get().([]any)
			var kept []any
			for _, x := range present {
				if m, _ := x.(map[string]any); m["name"] != a[0] {
					kept = append(kept, x)
				}
			}
			add(otherVersion, append(kept, map[string]any{"name": a[0], "value": a[1]}))
			continue
		}
		present, _ := f.get().(map[string]any)
		m := maps.Clone(present)
		if m == nil {
			m = map[string]any{}
		}
		m[a[0]] = a[1]
		add(otherVersion, m)
	}
}

// text writes a value in one line.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}
