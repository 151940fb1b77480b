package node

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// cloudConfig is the cloud-config of the image. The modules are those of Cluster API's
// layout, without those that would change this machine (disks, users, clocks, keys).
const cloudConfig = `datasource_list: [NoCloud]
disable_root: false
network: {config: disabled}
cloud_init_modules: [bootcmd, write-files, set_hostname]
cloud_config_modules: [runcmd]
cloud_final_modules: [scripts-per-once, scripts-per-boot, scripts-per-instance, scripts-user]
system_info: {distro: debian, paths: {cloud_dir: /var/lib/cloud, templates_dir: /etc/cloud/templates}}
output: {all: '| tee -a /var/log/cloud-init-output.log'}
`

// cloudImage configures cloud-init as in images for Cluster API: an include that does not
// exist yet is not an error. A file replaces EC2's instance metadata, with the same keys.
func (i *Instance) cloudImage() error {
	others, _ := filepath.Glob("/etc/cloud/cloud.cfg.d/*") // the pattern is valid
	for _, file := range others {
		if !strings.HasSuffix(file, "_logging.cfg") {
			if err := os.Remove(file); err != nil {
				return err
			}
		}
	}
	const packages = "/usr/lib/python3/dist-packages/cloudinit"
	if _, err := os.Stat(packages); err != nil {
		return fmt.Errorf("cloud-init is not installed (apt-get install cloud-init): %w", err)
	}
	metadata := fmt.Sprintf("instance-id: %s\nlocal-hostname: %s\nlocal-ipv4: %s\nplacement: {availability-zone: %s, region: %s}\n",
		i.ID, i.Name, i.Address, i.Zone, i.Region)
	for file, text := range map[string]string{
		packages + "/feature_overrides.py":        "ERROR_ON_USER_DATA_FAILURE = False\n",
		"/etc/cloud/cloud.cfg":                    cloudConfig,
		"/var/lib/cloud/seed/nocloud/meta-data":   metadata,
		"/var/lib/cloud/seed/nocloud/user-data":   string(i.UserData),
		"/var/lib/cloud/seed/nocloud/vendor-data": "",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// cloudInit runs the stages of cloud-init as systemd does. A boothook may restart the
// stage that runs it.
func (s *services) cloudInit(ctx context.Context) error {
	began := time.Now()
	if out, err := exec.CommandContext(ctx, "cloud-init", "init", "--local").CombinedOutput(); err != nil {
		return fmt.Errorf("init --local: %w\n%s", err, out)
	}
	for again := true; again; {
		var err error
		if again, err = s.cloudInitOnce(ctx); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	log.Printf("cloud-init has the user data after %s", time.Since(began).Round(time.Millisecond))
	for _, mode := range []string{"config", "final"} {
		if err := command(ctx, "cloud-init", "modules", "--mode="+mode).Run(); err != nil {
			return fmt.Errorf("modules --mode=%s: %w", mode, err)
		}
	}
	marker, _ := os.ReadFile("/run/cluster-api/bootstrap-success.complete") // the error says why it does not exist
	log.Printf("cloud-init is done after %s; kubeadm says %q", time.Since(began).Round(time.Millisecond), strings.TrimSpace(string(marker)))
	return nil
}

func (s *services) cloudInitOnce(ctx context.Context) (again bool, err error) {
	cmd := command(ctx, "cloud-init", "init")
	if err := cmd.Start(); err != nil {
		return false, err
	}
	s.mu.Lock()
	s.init = cmd.Process.Pid
	s.mu.Unlock()
	err = cmd.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	again, s.init, s.again = s.again, 0, false
	if again {
		return true, nil
	}
	return false, err
}

// restartCloudInit kills the running stage, so that it runs again.
func (s *services) restartCloudInit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.init == 0 {
		return false
	}
	log.Print("cloud-init is restarted")
	s.again = true
	return syscall.Kill(-s.init, syscall.SIGKILL) == nil
}
