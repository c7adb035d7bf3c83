{{/* Names of objects: RELEASE-COMPONENT, or nameOverride-COMPONENT, in `limit` characters. A name that is cut ends its
first part with a hash of it, so that two releases have no object in common. Call: dict "root" $ "component" "arco-catalog". */}}
{{- define "arco.name" -}}
{{- $base := .root.Values.nameOverride | default .root.Release.Name -}}
{{- $room := int (sub (.limit | default 63) (add (len .component) 1)) -}}
{{- if gt (len $base) $room -}}
{{- $base = printf "%s-%s" (trunc (int (sub $room 9)) $base | trimSuffix "-") (sha256sum $base | trunc 8) -}}
{{- end -}}
{{- printf "%s-%s" $base .component -}}
{{- end }}

{{- define "arco.catalog" -}}{{ include "arco.name" (dict "root" . "component" "arco-catalog") }}{{- end }}
{{- define "arco.delegation" -}}{{ include "arco.name" (dict "root" . "component" "arco-delegation") }}{{- end }}
{{- define "arco.delegationMetrics" -}}{{ include "arco.name" (dict "root" . "component" "arco-delegation-metrics") }}{{- end }}
{{- define "arco.metrics" -}}{{ include "arco.name" (dict "root" . "component" "arco-metrics") }}{{- end }}

{{- define "arco.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "arco.catalog" .) }}
{{- end }}

{{- define "arco.labels" -}}
app.kubernetes.io/name: arco-catalog
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "arco.delegationLabels" -}}
app.kubernetes.io/name: arco-delegation
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "arco.jobLabels" -}}
app.kubernetes.io/name: arco-job
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "arco.metricsLabels" -}}
app.kubernetes.io/name: arco-metrics
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "arco.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What every pod has, before its containers. */}}
{{- define "arco.pod" -}}
serviceAccountName: {{ include "arco.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: 30
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . }}}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{/* What every container has. */}}
{{- define "arco.container" -}}
image: {{ include "arco.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- with .Values.secretName }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end }}

{{/* Where the catalog is, and its key files: for servers and jobs. */}}
{{- define "arco.environment" -}}
- {name: ARCO_STORE, value: {{ required "set store, such as s3://bucket/prefix" .Values.store | quote }}}
- {name: ARCO_WAREHOUSE, value: {{ .Values.warehouse | quote }}}
{{- end }}

{{/* How a purge is delegated: for the catalog's pods and the job that works on tasks. */}}
{{- define "arco.delegate" -}}
{{- if .Values.delegation.clientSecretName }}
- {name: ARCO_PURGE_EXECUTOR, value: delegated}
- {name: ARCO_DELEGATION_URL, value: "https://{{ include "arco.delegation" . }}:8182"}
- {name: ARCO_DELEGATION_CLIENT_CERT, value: /delegation/tls.crt}
- {name: ARCO_DELEGATION_CLIENT_KEY, value: /delegation/tls.key}
- {name: ARCO_DELEGATION_CA, value: /delegation/ca.crt}
{{- end }}
{{- end }}

{{- define "arco.keyFiles" -}}
{{- with .Values.keyFiles }}
{{- if and (not .secretName) (or .tokenKey .vendingKeys) }}{{ fail "keyFiles needs secretName" }}{{- end }}
{{- with .tokenKey }}
- {name: ARCO_TOKEN_KEY_FILE, value: {{ printf "/keys/%s" . | quote }}}
{{- end }}
{{- with .vendingKeys }}
- {name: ARCO_VENDING_KEYS_FILE, value: {{ printf "/keys/%s" . | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "arco.mounts" -}}
- {name: scratch, mountPath: /tmp}
{{- if .Values.keyFiles.secretName }}
- {name: keys, mountPath: /keys, readOnly: true}
{{- end }}
{{- if .Values.delegation.clientSecretName }}
- {name: delegation, mountPath: /delegation, readOnly: true}
{{- end }}
{{- end }}

{{- define "arco.volumes" -}}
- name: scratch
  emptyDir: {}
{{- with .Values.keyFiles.secretName }}
- name: keys
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- with .Values.delegation.clientSecretName }}
- name: delegation
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}
