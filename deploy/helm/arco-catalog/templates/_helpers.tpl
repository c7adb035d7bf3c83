{{- define "arco.labels" -}}
app.kubernetes.io/name: arco-catalog
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
