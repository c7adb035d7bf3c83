{{- define "arco.labels" -}}
app.kubernetes.io/name: arco-catalog
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "arco.delegationLabels" -}}
app.kubernetes.io/name: arco-delegation
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
