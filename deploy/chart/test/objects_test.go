package chart_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// objects are the objects of a chart, decoded strictly: a field that the type does not have is an error, which a server
// and a dry run of a client let pass.
type objects struct {
	deployments []appsv1.Deployment
	jobs        []batchv1.Job
	accounts    []corev1.ServiceAccount
	configs     []corev1.ConfigMap
	services    []corev1.Service
	budgets     []policyv1.PodDisruptionBudget
	policies    []networkingv1.NetworkPolicy
	monitors    []podMonitor
	rules       []prometheusRule
	scaled      []scaledObject
	names       map[string]bool // kind and name
}

// podMonitor, prometheusRule and scaledObject have the fields of the operators' types that the chart uses.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		JobLabel            string               `json:"jobLabel"`
		PodTargetLabels     []string             `json:"podTargetLabels"`
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port string `json:"port"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []struct {
				Alert       string            `json:"alert"`
				Expr        string            `json:"expr"`
				For         string            `json:"for"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef struct {
			Name string `json:"name"`
		} `json:"scaleTargetRef"`
		MinReplicaCount int `json:"minReplicaCount"`
		MaxReplicaCount int `json:"maxReplicaCount"`
		CooldownPeriod  int `json:"cooldownPeriod"`
		Triggers        []struct {
			Type       string            `json:"type"`
			MetricType string            `json:"metricType"`
			Metadata   map[string]string `json:"metadata"`
		} `json:"triggers"`
	} `json:"spec"`
}

// decodeObjects decodes all objects of a rendered text.
func decodeObjects(t *testing.T, text string) *objects {
	t.Helper()
	all := &objects{names: map[string]bool{}}
	for document := range strings.SplitSeq(text, "---\n") {
		var about struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(document), &about), document)
		if about.Kind == "" {
			continue
		}
		require.LessOrEqual(t, len(about.Name), 63, about.Name)
		require.Regexp(t, `^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`, about.Name)
		name := about.Kind + " " + about.Name
		require.False(t, all.names[name], "%s is there twice", name)
		all.names[name] = true
		switch about.APIVersion + " " + about.Kind {
		case "apps/v1 Deployment":
			appendStrictly(t, document, &all.deployments)
		case "batch/v1 Job":
			appendStrictly(t, document, &all.jobs)
		case "v1 ServiceAccount":
			appendStrictly(t, document, &all.accounts)
		case "v1 ConfigMap":
			appendStrictly(t, document, &all.configs)
		case "v1 Service":
			appendStrictly(t, document, &all.services)
		case "policy/v1 PodDisruptionBudget":
			appendStrictly(t, document, &all.budgets)
		case "networking.k8s.io/v1 NetworkPolicy":
			appendStrictly(t, document, &all.policies)
		case "monitoring.coreos.com/v1 PodMonitor":
			appendStrictly(t, document, &all.monitors)
		case "monitoring.coreos.com/v1 PrometheusRule":
			appendStrictly(t, document, &all.rules)
		case "keda.sh/v1alpha1 ScaledObject":
			appendStrictly(t, document, &all.scaled)
		default:
			require.Fail(t, "an object that no test checks", "%s", name)
		}
	}
	return all
}

func appendStrictly[T any](t *testing.T, document string, to *[]T) {
	t.Helper()
	var one T
	require.NoError(t, yaml.UnmarshalStrict([]byte(document), &one), document)
	*to = append(*to, one)
}

// pods are the templates of pods, by the names of their objects.
func (o *objects) pods() map[string]corev1.PodTemplateSpec {
	all := map[string]corev1.PodTemplateSpec{}
	for _, one := range o.deployments {
		all["Deployment "+one.Name] = one.Spec.Template
	}
	for _, one := range o.jobs {
		all["Job "+one.Name] = one.Spec.Template
	}
	return all
}
