package chart_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestPods: no container is root, writes to its image, has capabilities or no limit of memory. Whatever lasts has probes
// and ends as slowly as a worker needs. Secrets and folders that are mounted have a volume, and flags and variables exist.
func TestPods(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		text, err := render(values)
		require.NoError(t, err)
		all := decodeObjects(t, text)
		require.NotContains(t, text, "kind: Secret\n", "secrets are only named")
		for of, pod := range all.pods() {
			of = name + ": " + of
			checkPod(t, of, pod.Spec)
			for _, container := range pod.Spec.Containers {
				checkContainer(t, of, container)
				checkMounts(t, of, container, pod.Spec.Volumes)
				checkArguments(t, of, container)
				if strings.HasPrefix(of, name+": Deployment") {
					checkProbes(t, of, container)
				}
			}
			if strings.HasPrefix(of, name+": Deployment") {
				require.GreaterOrEqual(t, *pod.Spec.TerminationGracePeriodSeconds, int64(30), of)
			}
		}
	}
}

func checkPod(t *testing.T, of string, pod corev1.PodSpec) {
	t.Helper()
	require.True(t, *pod.SecurityContext.RunAsNonRoot, of)
	require.Equal(t, int64(10001), *pod.SecurityContext.RunAsUser, of)
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, of)
	require.False(t, *pod.AutomountServiceAccountToken, of)
	require.False(t, pod.HostNetwork || pod.HostPID || pod.HostIPC, of)
	require.Empty(t, pod.InitContainers, of)
	for _, volume := range pod.Volumes {
		require.Nil(t, volume.HostPath, of)
	}
}

func checkContainer(t *testing.T, of string, container corev1.Container) {
	t.Helper()
	security := container.SecurityContext
	require.False(t, *security.AllowPrivilegeEscalation, of)
	require.True(t, *security.ReadOnlyRootFilesystem, of)
	require.Equal(t, []corev1.Capability{"ALL"}, security.Capabilities.Drop, of)
	require.Empty(t, security.Capabilities.Add, of)
	require.Nil(t, security.Privileged, of)
	require.False(t, container.Resources.Limits.Memory().IsZero(), of)
	require.False(t, container.Resources.Requests.Cpu().IsZero(), of)
	require.Regexp(t, `(:[^/]+|@sha256:.+)$`, container.Image, of)
	for _, variable := range container.Env {
		require.NotRegexp(t, `^(REPRISE_SECRET_KEY|TEMPORAL_API_KEY|REPRISE_AUTH_.*)$`, variable.Name, "%s: a secret is a file", of)
	}
}

func checkProbes(t *testing.T, of string, container corev1.Container) {
	t.Helper()
	ports := map[string]bool{}
	for _, port := range container.Ports {
		ports[port.Name] = true
	}
	require.True(t, ports["metrics"], of)
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe} {
		require.NotNil(t, probe, of)
		if probe.HTTPGet != nil {
			require.True(t, ports[probe.HTTPGet.Port.StrVal], of)
		} else {
			require.True(t, ports[probe.TCPSocket.Port.StrVal], of)
		}
	}
	require.NotEqual(t, container.LivenessProbe.ProbeHandler, container.ReadinessProbe.ProbeHandler, "%s: a server that is away is no reason to restart", of)
}

// checkMounts: each mount has its volume and each volume its mount, and each file of an argument or a variable is in a
// mount.
func checkMounts(t *testing.T, of string, container corev1.Container, volumes []corev1.Volume) {
	t.Helper()
	var folders []string
	items := map[string]string{} // file of each volume's folder
	for _, mount := range container.VolumeMounts {
		at := slices.IndexFunc(volumes, func(volume corev1.Volume) bool { return volume.Name == mount.Name })
		require.GreaterOrEqual(t, at, 0, "%s: %s", of, mount.Name)
		require.Empty(t, mount.SubPath, "%s: a file by itself does not change with its Secret", of)
		require.Equal(t, volumes[at].EmptyDir == nil, mount.ReadOnly, "%s: %s", of, mount.Name)
		folders = append(folders, mount.MountPath)
		if secret := volumes[at].Secret; secret != nil {
			require.Len(t, secret.Items, 1, of)
			items[mount.MountPath+"/"+secret.Items[0].Path] = mount.Name
		}
	}
	require.Len(t, container.VolumeMounts, len(volumes), of)
	used := slices.Clone(container.Args)
	for _, variable := range container.Env {
		used = append(used, "--"+variable.Name+"="+variable.Value)
	}
	for _, arg := range used {
		_, value, _ := strings.Cut(arg, "=")
		if !strings.HasPrefix(value, "/") {
			continue
		}
		delete(items, value)
		require.True(t, slices.ContainsFunc(folders, func(folder string) bool { return value == folder || strings.HasPrefix(value, folder+"/") }), "%s: %s", of, arg)
	}
	require.Empty(t, items, "%s: files that nothing reads", of)
}

var (
	flagHeading     = regexp.MustCompile("(?m)^\\| `--([a-z-]+)|^### `?--([a-z-]+)")
	variableHeading = regexp.MustCompile("(?m)^## `([A-Z_]+)`")
)

// readPage returns a page of the reference, or the part of it below a heading.
func readPage(t *testing.T, page, heading string) string {
	t.Helper()
	data, err := os.ReadFile("../../../docs/reference/" + page)
	require.NoError(t, err)
	_, text, found := strings.Cut(string(data), heading)
	require.True(t, found, heading)
	if heading != "" {
		text, _, _ = strings.Cut(text, "\n## ")
	}
	return text
}

// checkArguments: flags and variables are those of the reference.
func checkArguments(t *testing.T, of string, container corev1.Container) {
	t.Helper()
	page := readPage(t, "worker.md", "")
	if container.Name != "worker" {
		require.Contains(t, []string{"serve", "setup", "replay"}, container.Args[0], of)
		page = readPage(t, "commands.md", "## starter "+container.Args[0]+"\n")
	}
	var flags []string
	for _, match := range flagHeading.FindAllStringSubmatch(page, -1) {
		flags = append(flags, match[1]+match[2])
	}
	for _, arg := range container.Args {
		if name, is := strings.CutPrefix(arg, "--"); is {
			name, _, _ = strings.Cut(name, "=")
			require.Contains(t, flags, name, of)
		}
	}
	var known []string
	for _, match := range variableHeading.FindAllStringSubmatch(readPage(t, "configuration.md", ""), -1) {
		known = append(known, match[1])
	}
	for _, variable := range container.Env {
		if variable.Name != "GOMEMLIMIT" && variable.Name != "TEMPORAL_NAMESPACE" {
			require.Contains(t, known, variable.Name, of)
		}
	}
}

// TestSelectors: whatever selects pods selects those of one Deployment, or all of the release, and never none.
func TestSelectors(t *testing.T) {
	t.Parallel()
	for name, values := range cases(t) {
		text, err := render(values)
		require.NoError(t, err)
		all := decodeObjects(t, text)
		chosen := func(by map[string]string) (n int) {
			require.NotEmpty(t, by)
			for _, pod := range all.pods() {
				matches := true
				for label, value := range by {
					matches = matches && pod.Labels[label] == value
				}
				if matches {
					n++
				}
			}
			return n
		}
		for _, one := range all.deployments {
			require.Equal(t, 1, chosen(one.Spec.Selector.MatchLabels), "%s: %s", name, one.Name)
		}
		require.Len(t, all.budgets, len(all.deployments), name)
		for _, one := range all.budgets {
			require.Equal(t, 1, chosen(one.Spec.Selector.MatchLabels), "%s: %s", name, one.Name)
		}
		for _, one := range all.services {
			require.Equal(t, 1, chosen(one.Spec.Selector), "%s: %s", name, one.Name)
		}
		for _, one := range all.policies {
			require.Equal(t, len(all.pods()), chosen(one.Spec.PodSelector.MatchLabels), name)
		}
		for _, one := range all.monitors {
			require.Equal(t, len(all.pods()), chosen(one.Spec.Selector.MatchLabels), name)
			require.Equal(t, "metrics", one.Spec.PodMetricsEndpoints[0].Port)
		}
		require.Len(t, all.accounts, 1)
		for of, pod := range all.pods() {
			if account := pod.Spec.ServiceAccountName; account != "" {
				require.True(t, all.names["ServiceAccount "+account], of)
			} else {
				require.Contains(t, of, "Job ", "hooks run before the account is made")
			}
		}
	}
}

// TestBuilds: each build has a Deployment, which says to the worker what it is, and is scaled by its own figures: never
// to none, and not by what waits alone.
func TestBuilds(t *testing.T) {
	t.Parallel()
	text, err := render(cases(t)["full"])
	require.NoError(t, err)
	all := decodeObjects(t, text)
	require.Len(t, all.deployments, 4) // two builds, a worker that is none, serve
	require.Len(t, all.scaled, 2)
	for _, one := range all.scaled {
		at := slices.IndexFunc(all.deployments, func(of appsv1.Deployment) bool { return of.Name == one.Spec.ScaleTargetRef.Name })
		require.GreaterOrEqual(t, at, 0)
		deployment := all.deployments[at]
		require.Nil(t, deployment.Spec.Replicas, "an upgrade of the chart would undo the scaling")
		require.GreaterOrEqual(t, one.Spec.MinReplicaCount, 1)
		backlog, busy := one.Spec.Triggers[0].Metadata, one.Spec.Triggers[1].Metadata
		args := deployment.Spec.Template.Spec.Containers[0].Args
		require.Contains(t, args, "--build="+backlog["workerDeploymentBuildId"])
		require.Contains(t, args, "--deployment="+backlog["workerDeploymentName"])
		require.Contains(t, args, "--task-queue="+backlog["taskQueue"])
		require.Contains(t, busy["query"], `reprise_attempts_in_flight{reprise_dev_worker="`+deployment.Name+`"}`)
		require.Equal(t, deployment.Name, deployment.Spec.Template.Labels["reprise.dev/worker"])
		require.Contains(t, all.monitors[0].Spec.PodTargetLabels, "reprise.dev/worker")
	}
	metrics := readPage(t, "metrics.md", "")
	for _, metric := range []string{"reprise_attempts_in_flight", "reprise_attempts_max"} {
		require.Contains(t, metrics, "## `"+metric+"`")
	}
}

// TestHooks: search attributes are added before anything else, and the replay of an upgrade comes after them, once, with
// the new starter.
func TestHooks(t *testing.T) {
	t.Parallel()
	text, err := render(cases(t)["full"])
	require.NoError(t, err)
	all := decodeObjects(t, text)
	require.Len(t, all.jobs, 2)
	hooks, weights := map[string]string{}, map[string]string{}
	for _, job := range all.jobs {
		container := job.Spec.Template.Spec.Containers[0]
		hooks[container.Name], weights[container.Name] = job.Annotations["helm.sh/hook"], job.Annotations["helm.sh/hook-weight"]
		require.Equal(t, "registry.example.com/reprise-starter:v0.2.0", container.Image)
		if container.Name == "replay" {
			require.Zero(t, *job.Spec.BackoffLimit)
		}
	}
	require.Equal(t, map[string]string{"setup": "pre-install,pre-upgrade", "replay": "pre-upgrade"}, hooks)
	require.Less(t, weights["setup"], weights["replay"])
}

// TestRules: the alerts are those of the documentation.
func TestRules(t *testing.T) {
	t.Parallel()
	text, err := render(cases(t)["full"])
	require.NoError(t, err)
	rules := decodeObjects(t, text).rules
	require.Len(t, rules, 1)
	documented, err := os.ReadFile("../../../docs/operations/alerts.yaml")
	require.NoError(t, err)
	require.Len(t, rules[0].Spec.Groups, 1)
	require.Equal(t, strings.Count(string(documented), "- alert: "), len(rules[0].Spec.Groups[0].Rules))
	for _, rule := range rules[0].Spec.Groups[0].Rules {
		require.Contains(t, string(documented), "- alert: "+rule.Alert+"\n")
		require.NotEmpty(t, rule.Expr)
	}
}
