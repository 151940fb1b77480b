package runcommand

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Unpack returns the files of the archive that Files prints, by their names there.
func Unpack(archive []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the archive is damaged: %w", err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil { // the archive is in memory
			return nil, fmt.Errorf("the archive is damaged: %w", err)
		}
	}
}
