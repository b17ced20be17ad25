{{/* Names are as long as Kubernetes allows for labels, 63 characters: one that would be changed or cut ends with a part of
its hash, so that no two are the same. */}}
{{- define "reprise.name" -}}
{{- $plain := regexReplaceAll "[^a-z0-9-]" (lower .) "-" -}}
{{- if or (ne $plain .) (gt (len $plain) 54) -}}
{{- printf "%s-%s" (trunc 45 $plain | trimSuffix "-") (sha256sum . | trunc 8) -}}
{{- else -}}
{{- $plain -}}
{{- end -}}
{{- end }}

{{- define "reprise.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "reprise.name" .Release.Name) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "reprise.labels" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | quote }}
{{- end }}

{{/* Variables of all programs. The argument is a map of root and env, the variables of one program. */}}
{{- define "reprise.env" -}}
- name: TEMPORAL_ADDRESS
  value: {{ .root.Values.temporal.address | quote }}
- name: TEMPORAL_NAMESPACE
  value: {{ .root.Values.temporal.namespace | quote }}
{{- if .root.Values.temporal.apiKey.name }}
- name: TEMPORAL_API_KEY_FILE
  value: /etc/reprise/api-key/{{ .root.Values.temporal.apiKey.key }}
{{- end }}
{{- if and .root.Values.secretKey.name .keyed }}
- name: REPRISE_SECRET_KEY_FILE
  value: /etc/reprise/secret-key/{{ .root.Values.secretKey.key }}
{{- end }}
{{- range $name, $value := mergeOverwrite (dict) .root.Values.env (.env | default dict) }}
{{- if and (eq $name "REPRISE_PAYLOAD_STORE") (hasPrefix "file:" $value) }}
{{- fail "env: REPRISE_PAYLOAD_STORE is a folder, which would be another one in each pod; use a bucket" }}
{{- end }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{/* Mounts and volumes of Secrets, each in a folder of its own, so that the cluster updates the files when a Secret changes.
The argument is as of reprise.env, with connections and callers, each {name, key}. */}}
{{- define "reprise.mounts" -}}
{{- if .root.Values.temporal.apiKey.name }}
- {name: api-key, mountPath: /etc/reprise/api-key, readOnly: true}
{{- end }}
{{- if and .root.Values.secretKey.name .keyed }}
- {name: secret-key, mountPath: /etc/reprise/secret-key, readOnly: true}
{{- end }}
{{- if (.connections | default dict).name }}
- {name: connections, mountPath: /etc/reprise/connections, readOnly: true}
{{- end }}
{{- if (.callers | default dict).name }}
- {name: callers, mountPath: /etc/reprise/callers, readOnly: true}
{{- end }}
{{- if .playbooks }}
- {name: playbooks, mountPath: /etc/reprise/playbooks, readOnly: true}
{{- end }}
- {name: scratch, mountPath: /tmp}
{{- end }}

{{- define "reprise.volumes" -}}
{{- if .root.Values.temporal.apiKey.name }}
- name: api-key
  secret: {secretName: {{ .root.Values.temporal.apiKey.name | quote }}, items: [{key: {{ .root.Values.temporal.apiKey.key | quote }}, path: {{ .root.Values.temporal.apiKey.key | quote }}}]}
{{- end }}
{{- if and .root.Values.secretKey.name .keyed }}
- name: secret-key
  secret: {secretName: {{ .root.Values.secretKey.name | quote }}, items: [{key: {{ .root.Values.secretKey.key | quote }}, path: {{ .root.Values.secretKey.key | quote }}}]}
{{- end }}
{{- with .connections }}{{- if .name }}
- name: connections
  secret: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]}
{{- end }}{{- end }}
{{- with .callers }}{{- if .name }}
- name: callers
  secret: {secretName: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: {{ .key | quote }}}]}
{{- end }}{{- end }}
{{- with .playbooks }}
- name: playbooks
  configMap: {name: {{ . | quote }}}
{{- end }}
- {name: scratch, emptyDir: {}}
{{- end }}

{{/* What pods of all programs have in common. */}}
{{- define "reprise.pod" -}}
serviceAccountName: {{ include "reprise.serviceAccount" . }}
{{ include "reprise.podSecurity" . }}
{{- end }}

{{- define "reprise.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "reprise.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* The name of a worker's objects. The argument is a list of root and worker, or of root, worker and build. */}}
{{- define "reprise.workerName" -}}
{{- $root := index . 0 -}}{{- $worker := index . 1 -}}
{{- if eq (len .) 3 -}}
{{- include "reprise.name" (printf "%s-%s-%s" $root.Release.Name $worker.name (index . 2).id) -}}
{{- else -}}
{{- include "reprise.name" (printf "%s-%s" $root.Release.Name $worker.name) -}}
{{- end -}}
{{- end }}

{{- define "reprise.starterImage" -}}
{{- required "starterImage is needed for serve and for the jobs setup and replay" .Values.starterImage -}}
{{- end }}
