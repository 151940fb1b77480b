package apiserver

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterawsadm/clusterawsadm/internal/regex"
)

// settings checks the settings of a pod that are not about its containers and volumes.
func (c *check) settings(at string, pod *corev1.PodSpec) {
	c.names(at, pod)
	c.keysOf(at, pod)
	c.resolver(at+"dnsConfig.", pod.DNSConfig)
	for i, a := range pod.HostAliases {
		field := fmt.Sprintf("%shostAliases[%d].", at, i)
		c.address(field+"ip", a.IP)
		for j, name := range a.Hostnames {
			c.invalid(fmt.Sprintf("%shostnames[%d]", field, j), name, validation.IsDNS1123Subdomain(name))
		}
	}
	for i, g := range pod.SchedulingGates {
		c.qualified(fmt.Sprintf("%sschedulingGates[%d]", at, i), g.Name)
	}
	for i, g := range pod.ReadinessGates {
		c.qualified(fmt.Sprintf("%sreadinessGates[%d].conditionType", at, i), string(g.ConditionType))
	}
	isOneOf(c, at+"preemptionPolicy", pod.PreemptionPolicy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	between(c, at+"activeDeadlineSeconds", pod.ActiveDeadlineSeconds, 1, math.MaxInt32)
	c.podSecurity(at, pod)
	c.hostUsers(at, pod)
	c.system(at, pod)
}

// keysOf refuses lists of a pod with two items of the same key.
func (c *check) keysOf(at string, pod *corev1.PodSpec) {
	var hosts, secrets, claims, gates []string
	for _, a := range pod.HostAliases {
		hosts = append(hosts, a.IP)
	}
	for _, s := range pod.ImagePullSecrets {
		secrets = append(secrets, s.Name)
	}
	for _, r := range pod.ResourceClaims {
		claims = append(claims, r.Name)
	}
	for _, g := range pod.SchedulingGates {
		gates = append(gates, g.Name)
	}
	c.distinct(at+"hostAliases", hosts)
	c.distinct(at+"schedulingGates", gates)
	c.distinct(at+"imagePullSecrets", secrets)
	c.distinct(at+"resourceClaims", claims)
}

// names checks the names that a pod has, and those of other objects.
func (c *check) names(at string, pod *corev1.PodSpec) {
	if pod.Hostname != "" {
		c.label(at+"hostname", pod.Hostname)
	}
	if pod.Subdomain != "" {
		c.label(at+"subdomain", pod.Subdomain)
	}
	c.subdomain(at+"serviceAccountName", pod.ServiceAccountName)
	c.subdomain(at+"nodeName", pod.NodeName)
	c.subdomain(at+"priorityClassName", pod.PriorityClassName)
	if pod.RuntimeClassName != nil {
		c.invalid(at+"runtimeClassName", *pod.RuntimeClassName, validation.IsDNS1123Subdomain(*pod.RuntimeClassName))
	}
}

// resolver checks the settings of DNS of a pod (validatePodDNSConfig).
func (c *check) resolver(at string, d *corev1.PodDNSConfig) {
	if d == nil {
		return
	}
	const servers, searches, characters = 3, 32, 2048
	c.when(len(d.Nameservers) > servers, at+"nameservers", fmt.Sprintf("are %d, and at most %d are possible", len(d.Nameservers), servers), "remove some")
	c.when(len(d.Searches) > searches, at+"searches", fmt.Sprintf("are %d, and at most %d are possible", len(d.Searches), searches), "remove some")
	c.when(len(strings.Join(d.Searches, " ")) > characters, at+"searches", fmt.Sprintf("have more than %d characters", characters), "remove some")
	for i, server := range d.Nameservers {
		c.address(fmt.Sprintf("%snameservers[%d]", at, i), server)
	}
	for i, search := range d.Searches {
		if search = strings.TrimSuffix(search, "."); search != "" {
			c.invalid(fmt.Sprintf("%ssearches[%d]", at, i), search, validation.IsDNS1123SubdomainWithUnderscore(search))
		}
	}
	for i, o := range d.Options {
		c.need(fmt.Sprintf("%soptions[%d].name", at, i), o.Name)
	}
}

// podSecurity checks the security context of a pod (validatePodSpecSecurityContext).
func (c *check) podSecurity(at string, pod *corev1.PodSpec) {
	c.when(
		yes(pod.ShareProcessNamespace) && pod.HostPID, at+"shareProcessNamespace", "is not possible beside hostPID", "remove one of them",
	)
	s := pod.SecurityContext
	if s == nil {
		return
	}
	at += "securityContext."
	between(c, at+"fsGroup", s.FSGroup, 0, math.MaxInt32)
	between(c, at+"runAsUser", s.RunAsUser, 0, math.MaxInt32)
	between(c, at+"runAsGroup", s.RunAsGroup, 0, math.MaxInt32)
	for i := range s.SupplementalGroups {
		between(c, fmt.Sprintf("%ssupplementalGroups[%d]", at, i), &s.SupplementalGroups[i], 0, math.MaxInt32)
	}
	c.sysctls(at+"sysctls", pod)
	isOneOf(c, at+"fsGroupChangePolicy", s.FSGroupChangePolicy, corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch)
	isOneOf(c, at+"supplementalGroupsPolicy", s.SupplementalGroupsPolicy, corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict)
	isOneOf(c, at+"seLinuxChangePolicy", s.SELinuxChangePolicy, corev1.SELinuxChangePolicyRecursive, corev1.SELinuxChangePolicyMountOption)
	c.seccomp(at+"seccompProfile.", s.SeccompProfile)
	c.appArmor(at+"appArmorProfile.", s.AppArmorProfile)
}

// containerSecurity checks the security context of a container (ValidateSecurityContext).
func (c *check) containerSecurity(at string, s *corev1.SecurityContext, pod *corev1.PodSpec) {
	if s == nil {
		return
	}
	between(c, at+".runAsUser", s.RunAsUser, 0, math.MaxInt32)
	between(c, at+".runAsGroup", s.RunAsGroup, 0, math.MaxInt32)
	isOneOf(c, at+".procMount", s.ProcMount, corev1.DefaultProcMount, corev1.UnmaskedProcMount)
	unmasked := s.ProcMount != nil && *s.ProcMount == corev1.UnmaskedProcMount
	c.when(unmasked && (pod.HostUsers == nil || *pod.HostUsers), at+".procMount", "Unmasked needs hostUsers: false of the pod", "set it, or remove procMount")
	c.seccomp(at+".seccompProfile.", s.SeccompProfile)
	c.appArmor(at+".appArmorProfile.", s.AppArmorProfile)
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		return
	}
	c.when(yes(s.Privileged), at, "is privileged, and allowPrivilegeEscalation is false", "remove one of them")
	if s.Capabilities != nil {
		for _, name := range s.Capabilities.Add {
			c.when(name == "CAP_SYS_ADMIN", at, "adds CAP_SYS_ADMIN, and allowPrivilegeEscalation is false", "remove one of them")
		}
	}
}

// sysctls checks parameters of the kernel (validateSysctls).
func (c *check) sysctls(at string, pod *corev1.PodSpec) {
	seen := map[string]bool{}
	for i, s := range pod.SecurityContext.Sysctls {
		field := fmt.Sprintf("%s[%d].name", at, i)
		switch name := strings.ReplaceAll(s.Name, "/", "."); {
		case !regex.Of(`^[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*$`).MatchString(s.Name):
			c.refuse(field, fmt.Sprintf("%q is not the name of a parameter of the kernel", s.Name), "write one such as net.ipv4.tcp_syncookies")
		case seen[s.Name]:
			c.refuse(field, s.Name+" is set twice", "remove one of them")
		case pod.HostNetwork && strings.HasPrefix(name, "net."):
			c.refuse(field, s.Name+" is of the network of the machine, because of hostNetwork", "remove it")
		case pod.HostIPC && regex.Of(`^(kernel\.(shm|msg|sem)|fs\.mqueue\.)`).MatchString(name):
			c.refuse(field, s.Name+" is of the machine, because of hostIPC", "remove it")
		}
		seen[s.Name] = true
	}
}

func (c *check) seccomp(at string, p *corev1.SeccompProfile) {
	if p == nil {
		return
	}
	c.need(at+"type", string(p.Type))
	oneOf(c, at+"type", p.Type, corev1.SeccompProfileTypeRuntimeDefault, corev1.SeccompProfileTypeUnconfined, corev1.SeccompProfileTypeLocalhost)
	c.localProfile(at, p.LocalhostProfile, p.Type == corev1.SeccompProfileTypeLocalhost)
	if p.LocalhostProfile != nil {
		c.inside(at+"localhostProfile", *p.LocalhostProfile)
	}
}

func (c *check) appArmor(at string, p *corev1.AppArmorProfile) {
	if p == nil {
		return
	}
	c.need(at+"type", string(p.Type))
	oneOf(c, at+"type", p.Type, corev1.AppArmorProfileTypeRuntimeDefault, corev1.AppArmorProfileTypeUnconfined, corev1.AppArmorProfileTypeLocalhost)
	c.localProfile(at, p.LocalhostProfile, p.Type == corev1.AppArmorProfileTypeLocalhost)
	if p.LocalhostProfile != nil {
		c.when(strings.TrimSpace(*p.LocalhostProfile) != *p.LocalhostProfile, at+"localhostProfile", "begins or ends with a space", "remove it")
	}
}

// localProfile checks whether the file of a profile is set if the type is Localhost, and only then.
func (c *check) localProfile(at string, file *string, local bool) {
	c.when(file == nil && local, at+"localhostProfile", "a value is required", "set it to the file of the profile, or change the type")
	c.when(file != nil && !local, at+"localhostProfile", "is only for the type Localhost", "remove it, or change the type")
}

// hostUsers checks a pod whose users are not those of its machine (validateHostUsers).
func (c *check) hostUsers(at string, pod *corev1.PodSpec) {
	if pod.HostUsers == nil || *pod.HostUsers {
		return
	}
	for _, name := range given(setting{"hostNetwork", pod.HostNetwork}, setting{"hostPID", pod.HostPID}, setting{"hostIPC", pod.HostIPC}) {
		c.refuse(at+name, "is not possible with hostUsers: false", "remove one of them")
	}
}

// system checks the operating system of a pod: some settings are only for Linux, and others only for Windows.
func (c *check) system(at string, pod *corev1.PodSpec) {
	if pod.OS != nil {
		c.need(at+"os.name", string(pod.OS.Name))
		oneOf(c, at+"os.name", pod.OS.Name, corev1.Linux, corev1.Windows)
		switch pod.OS.Name {
		case corev1.Windows:
			c.windows(at, pod)
		case corev1.Linux:
			c.linux(at, pod)
		}
	}
	host, others := 0, 0
	everywhere := pod.SecurityContext != nil && pod.SecurityContext.WindowsOptions != nil && yes(pod.SecurityContext.WindowsOptions.HostProcess)
	for _, of := range append(append([]corev1.Container{}, pod.InitContainers...), pod.Containers...) {
		own := everywhere
		if s := of.SecurityContext; s != nil && s.WindowsOptions != nil && s.WindowsOptions.HostProcess != nil {
			own = *s.WindowsOptions.HostProcess
		}
		if own {
			host++
		} else {
			others++
		}
	}
	c.when(host > 0 && others > 0, strings.TrimSuffix(at, "."), "some containers are hostProcess containers, and others are not", "make all of them the same")
	c.when(host > 0 && !pod.HostNetwork, at+"hostNetwork", "is false, and hostProcess containers use the network of the machine", "set it to true")
}

func (c *check) linux(at string, pod *corev1.PodSpec) {
	const fix = "remove it, or set os.name: windows"
	s := pod.SecurityContext
	c.when(s != nil && s.WindowsOptions != nil, at+"securityContext.windowsOptions", "is not for os.name: linux", fix)
	for i, of := range pod.Containers {
		own := of.SecurityContext
		c.when(own != nil && own.WindowsOptions != nil, fmt.Sprintf("%scontainers[%d].securityContext.windowsOptions", at, i), "is not for os.name: linux", fix)
	}
}

// windows refuses what containers of Windows do not have (validateWindows).
func (c *check) windows(at string, pod *corev1.PodSpec) {
	const what, fix = "is not for os.name: windows", "remove it, or change os.name"
	for _, name := range given(
		setting{"hostUsers", pod.HostUsers != nil}, setting{"hostPID", pod.HostPID}, setting{"hostIPC", pod.HostIPC},
		setting{"shareProcessNamespace", pod.ShareProcessNamespace != nil},
	) {
		c.refuse(at+name, what, fix)
	}
	if s := pod.SecurityContext; s != nil {
		for _, name := range given(
			setting{"appArmorProfile", s.AppArmorProfile != nil}, setting{"seLinuxOptions", s.SELinuxOptions != nil},
			setting{"seccompProfile", s.SeccompProfile != nil}, setting{"fsGroup", s.FSGroup != nil},
			setting{"fsGroupChangePolicy", s.FSGroupChangePolicy != nil}, setting{"sysctls", len(s.Sysctls) > 0},
			setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil},
			setting{"supplementalGroups", s.SupplementalGroups != nil}, setting{"supplementalGroupsPolicy", s.SupplementalGroupsPolicy != nil},
		) {
			c.refuse(at+"securityContext."+name, what, fix)
		}
	}
	for i := range pod.Containers {
		s := pod.Containers[i].SecurityContext
		if s == nil {
			continue
		}
		for _, name := range given(
			setting{"appArmorProfile", s.AppArmorProfile != nil}, setting{"seLinuxOptions", s.SELinuxOptions != nil},
			setting{"seccompProfile", s.SeccompProfile != nil}, setting{"capabilities", s.Capabilities != nil},
			setting{"readOnlyRootFilesystem", s.ReadOnlyRootFilesystem != nil}, setting{"privileged", s.Privileged != nil},
			setting{"allowPrivilegeEscalation", s.AllowPrivilegeEscalation != nil}, setting{"procMount", s.ProcMount != nil},
			setting{"runAsUser", s.RunAsUser != nil}, setting{"runAsGroup", s.RunAsGroup != nil},
		) {
			c.refuse(fmt.Sprintf("%scontainers[%d].securityContext.%s", at, i, name), what, fix)
		}
	}
}
