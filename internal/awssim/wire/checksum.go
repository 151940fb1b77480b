package wire

import (
	"crypto/md5"  //nolint:gosec // a checksum of S3
	"crypto/sha1" //nolint:gosec // a checksum of S3
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"strings"

	"github.com/clusterawsadm/clusterawsadm/internal/awssim/core"
)

// crc64NVMe is the polynomial of the NVM Express specification, reversed.
const crc64NVMe = 0x9a6c9329ac4bc9b5

// checkSums compares the checksums in the headers of a request to S3 with its body, and
// removes them: the simulated S3 does not know them.
func (c *call) checkSums() error {
	if c.service.Metadata.Protocol != "rest-xml" {
		return nil
	}
	if strings.HasPrefix(c.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		if err := c.readChunks(); err != nil {
			return err
		}
	}
	for header, sum := range map[string]hash.Hash{
		"Content-Md5":              md5.New(), //nolint:gosec // a checksum of S3
		"X-Amz-Checksum-Crc32":     crc32.NewIEEE(),
		"X-Amz-Checksum-Crc64nvme": crc64.New(crc64.MakeTable(crc64NVMe)),
		"X-Amz-Checksum-Crc32c":    crc32.New(crc32.MakeTable(crc32.Castagnoli)),
		"X-Amz-Checksum-Sha1":      sha1.New(), //nolint:gosec // a checksum of S3
		"X-Amz-Checksum-Sha256":    sha256.New(),
	} {
		want := c.Header.Get(header)
		if want == "" {
			continue
		}
		_, _ = sum.Write(c.body) // never fails
		if want != base64.StdEncoding.EncodeToString(sum.Sum(nil)) {
			return core.Fail("BadDigest", "the %s of the request is not that of its body", header)
		}
		c.Header.Del(header)
	}
	return nil
}
