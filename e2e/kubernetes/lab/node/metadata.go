package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"time"
)

// metadataAddress is the address of the instance metadata service.
const metadataAddress = "169.254.169.254"

// serveMetadata serves what AWS's cloud controller manager reads from the instance metadata service.
// Requests need a token, as with IMDSv2 ("Access instance metadata for an EC2 instance", EC2 user
// guide).
func (i *Instance) serveMetadata(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, "ip", "addr", "add", metadataAddress+"/32", "dev", "lo").
		CombinedOutput(); err != nil &&
		!strings.Contains(string(out), "File exists") {
		return fmt.Errorf("%w: %s", err, out)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(metadataAddress, "80"))
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(i.metadata)}
	go func() { _ = server.Serve(l) }() // as long as the instance runs
	return nil
}

const metadataToken = "lab-token"

func (i *Instance) metadata(w http.ResponseWriter, r *http.Request) {
	const ttl = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	switch {
	case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
		w.Header().Set(ttl, r.Header.Get(ttl))
		_, _ = w.Write([]byte(metadataToken))
		return
	case r.Header.Get("X-Aws-Ec2-Metadata-Token") != metadataToken:
		http.Error(w, "the token is missing", http.StatusUnauthorized)
		return
	}
	const role = "instance"
	credentials, _ := json.Marshal(map[string]string{ // strings can be marshalled
		"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "instance", "SecretAccessKey": "instance", "Token": "instance",
		"LastUpdated": time.Now().UTC().Format(time.RFC3339), "Expiration": time.Now().Add(6 * time.Hour).UTC().Format(time.RFC3339),
	})
	document, _ := json.Marshal(
		map[string]string{"instanceId": i.ID, "region": i.Region, "availabilityZone": i.Zone, "privateIp": i.Address, "version": "2017-09-30"},
	)
	values := map[string]string{
		"/latest/meta-data/instance-id":                      i.ID,
		"/latest/meta-data/local-ipv4":                       i.Address,
		"/latest/meta-data/local-hostname":                   i.Name,
		"/latest/meta-data/placement/availability-zone":      i.Zone,
		"/latest/meta-data/placement/region":                 i.Region,
		"/latest/meta-data/iam/security-credentials/":        role,
		"/latest/meta-data/iam/security-credentials/" + role: string(credentials),
		"/latest/dynamic/instance-identity/document":         string(document),
	}
	value, found := values[r.URL.Path]
	if !found {
		log.Printf("metadata: the lab does not have %s", r.URL.Path)
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(value))
}
