package diagnose

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestShortLine(t *testing.T) {
	assert.Equal(t, "a [31mb", shortLine(" a\x1b[31mb\r"), "nothing that moves a terminal")
}

func TestUserDataForm(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write([]byte("#cloud-config\n"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	encode := base64.StdEncoding.EncodeToString
	for sent, want := range map[string]string{
		"": "is missing",
		encode([]byte("## template: jinja\n#cloud-config\n")):        "",
		encode([]byte("MIME-Version: 1.0\n")):                        "",
		encode([]byte(`{"ignition":{}}`)):                            "",
		encode(packed.Bytes()):                                       "",
		encode(packed.Bytes()[:12]):                                  "is damaged: it starts like gzip, but cannot be decompressed",
		encode([]byte(encode([]byte("#cloud-config\n")))):            "was encoded as base64 twice",
		encode([]byte("write_files:\n- path: /etc/x\n  content: y")): "is neither a cloud-config, a script, a MIME message nor an Ignition configuration",
		"#cloud-config": "is not base64",
	} {
		_, wrong := userDataForm(sent)
		assert.Equal(t, want, wrong, sent)
	}
}
