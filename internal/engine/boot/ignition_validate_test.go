package boot

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/flatcar/ignition/config/v2_3/types"
	"github.com/flatcar/ignition/config/validate"
	"github.com/stretchr/testify/require"
)

// Each field that Ignition validates by a method with its name is validated here, too.
func TestEachIgnitionFieldIsValidated(t *testing.T) {
	seen, validated := map[reflect.Type]bool{}, 0
	var visit func(of reflect.Type)
	visit = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || seen[of] {
			return
		}
		seen[of] = true
		zero := reflect.New(of).Elem()
		for _, f := range ignitionFields(zero) {
			_, is := validateField(zero.Interface(), f.name)
			require.Equal(t, zero.MethodByName("Validate"+f.name).IsValid(), is, "%s.%s", of, f.name)
			if is {
				validated++
			}
			visit(f.value.Type())
		}
	}
	visit(reflect.TypeFor[types.Config]())
	require.Greater(t, validated, 20)
}

// What is said of a configuration is what Ignition's package validate says.
func TestIgnitionIsValidatedAsByIgnition(t *testing.T) {
	for _, text := range []string{
		`{"ignition": {"version": "2.3.0"}}`,
		`{"ignition": {"version": "1.0.0"}}`,
		`{"ignition": {"version": "2.3.0", "config": {"append": [{"source": "ftp://x"}, {"source": "http://x", "verification": {"hash": "md5-1"}}]},
		  "security": {"tls": {"certificateAuthorities": [{"source": "gopher://"}]}}}}`,
		`{"ignition": {"version": "2.3.0"}, "storage": {"disks": [{"device": "sda", "partitions": [
		  {"number": 1, "label": "a:b", "guid": "x", "typeGuid": "y", "sizeMiB": 1}, {"number": 1, "label": "a"}]}]}}`,
		`{"ignition": {"version": "2.3.0"}, "storage": {"raid": [{"name": "r", "level": "zero", "devices": ["sda", "/dev/sdb"]}]}}`,
		`{"ignition": {"version": "2.3.0"}, "storage": {"filesystems": [{"name": "f", "path": "x"}, {"name": "g", "mount": {"device": "sda", "format": "fat"}},
		  {"name": "h", "path": "/x", "mount": {"device": "/dev/sda", "format": "ext4", "label": "much longer than sixteen"}}]}}`,
		`{"ignition": {"version": "2.3.0"}, "storage": {"files": [{"path": "etc/x", "mode": 99999, "contents": {"source": "x:y", "compression": "zip"}},
		  {"filesystem": "root", "path": "/x", "append": true, "overwrite": true}],
		  "directories": [{"path": "x", "mode": -1}], "links": [{"filesystem": "root", "path": "/l", "target": ""},
		  {"path": "l", "user": {"id": 1, "name": "u"}}]}}`,
		`{"ignition": {"version": "2.3.0"}, "systemd": {"units": [{"name": "x", "contents": "[Unit"}, 
		  {"name": "y.service", "enable": true, "contents": "[Unit]\nA=b",
		  "dropins": [{"name": "z", "contents": "="}]}]}, "networkd": {"units": [{"name": "n", "contents": "["}, 
		  {"name": "n.network", "dropins": [{"name": "d"}]}]}}`,
		`{"ignition": {"version": "2.3.0"}, "passwd": {"users": [{"name": "u", "create": {}, "uid": 3}]}}`,
	} {
		var config types.Config
		require.NoError(t, json.Unmarshal([]byte(text), &config), text)
		var want, got []string
		for _, e := range validate.ValidateWithoutSource(reflect.ValueOf(config)).Entries {
			want = append(want, e.String())
		}
		for _, e := range validateIgnition(reflect.ValueOf(config)) {
			got = append(got, e.String())
		}
		require.Equal(t, want, got, text)
		t.Logf("%d: %v", len(got), got)
	}
}
