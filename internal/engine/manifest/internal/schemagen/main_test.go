package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The embedded archive contains the schemas of the modules in go.mod.
func TestArchiveIsCurrent(t *testing.T) {
	files, err := collect(t.Context())
	if err != nil {
		t.Skipf("the module cache has no CRDs: %v", err)
	}
	archive, err := zip.OpenReader("../../crd/schemas.zip")
	require.NoError(t, err)
	defer func() { assert.NoError(t, archive.Close()) }()

	have := map[string]string{}
	for _, f := range archive.File {
		r, err := f.Open()
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		have[f.Name] = string(data)
	}
	require.Len(t, have, len(files))
	for _, f := range files {
		assert.Equal(t, string(f.data), have[f.name], "%s: run schemagen", f.name)
	}
}

// The embedded descriptions are those of the modules in go.mod.
func TestDescriptionsAreCurrent(t *testing.T) {
	files, err := collect(t.Context())
	if err != nil {
		t.Skipf("the module cache has no CRDs: %v", err)
	}
	want, err := describe(files)
	require.NoError(t, err)
	have, err := os.ReadFile("../../crd/descriptions.json.gz")
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, have), "run schemagen")
}
