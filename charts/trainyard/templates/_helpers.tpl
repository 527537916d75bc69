{{- define "trainyard.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end }}

{{- define "trainyard.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains (include "trainyard.name" .) .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "trainyard.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "trainyard.selector" -}}
app.kubernetes.io/name: {{ include "trainyard.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "trainyard.labels" -}}
{{ include "trainyard.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: trainyard
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "trainyard.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "trainyard.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end }}

{{- define "trainyard.subject" -}}
- kind: ServiceAccount
  name: {{ include "trainyard.serviceAccount" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* (list IMAGE ROOT): repository with digest, or tag, or the chart's appVersion */ -}}
{{- define "trainyard.image" -}}
{{- $image := index . 0 -}}
{{- if or (contains ":" (base $image.repository)) (contains "@" $image.repository) -}}
{{- fail (printf "the image repository '%s' holds a tag or a digest: give them as tag and digest beside it" $image.repository) -}}
{{- end -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default (index . 1).Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end }}

{{- define "trainyard.leaseNamespace" -}}
{{- default .Release.Namespace .Values.leaderElection.namespace -}}
{{- end }}

{{- define "trainyard.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "trainyard.podSecurityContext" -}}
runAsNonRoot: true
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- /* What the operator does with jobs, in the namespaces it serves. Every verb is one it uses. */ -}}
{{- define "trainyard.rules" -}}
{{- if .Values.trainjob.enabled }}
- apiGroups: [trainyard.dev]
  resources: [trainjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [trainyard.dev]
  resources: [trainjobs/status]
  verbs: [patch]
- apiGroups: [trainyard.dev]
  resources: [trainjobs/finalizers]
  verbs: [update]
{{- end }}
{{- if .Values.tfjob.enabled }}
- apiGroups: [kubeflow.org]
  resources: [tfjobs]
  verbs: [get, list, watch, delete]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/status]
  verbs: [patch]
- apiGroups: [kubeflow.org]
  resources: [tfjobs/finalizers]
  verbs: [update]
{{- end }}
- apiGroups: [""]
  resources: [pods]
  verbs: [create, get, list, watch, delete, patch]
- apiGroups: [""]
  resources: [services]
  verbs: [create, get, list, watch, delete, patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
- apiGroups: [""]
  resources: [secrets]
  verbs: [create, patch]
{{- if .Values.trainjob.enabled }}
- apiGroups: [""]
  resources: [configmaps]
  verbs: [create, get, list, watch, patch]
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get]
- apiGroups: [apps]
  resources: [deployments]
  verbs: [create, get, patch, delete]
{{- if .Values.networkPolicy.jobs }}
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [create, get, list, watch, patch]
{{- end }}
{{- end }}
{{- with .Values.gangScheduler }}
- apiGroups: [{{ ternary "scheduling.volcano.sh" "scheduling.x-k8s.io" (eq . "volcano") }}]
  resources: [podgroups]
  verbs: [create, get, patch, delete]
{{- end }}
{{- end }}
