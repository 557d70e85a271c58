{{/* The name of an object: a base name, and the suffix of this installation. */}}
{{- define "pingsix.controller" -}}
pingsix-gateway-controller{{ .Values.nameSuffix }}
{{- end }}

{{/* The name of the Lease, after which other objects are named. */}}
{{- define "pingsix.lease" -}}
{{ index .Values.controller.options "PINGSIX_GATEWAY_LEADER_LEASE" | default (print "pingsix-io-gateway-controller" .Values.nameSuffix) }}
{{- end }}

{{/* The Secret of the feed's authority. */}}
{{- define "pingsix.authority" -}}
{{ index .Values.controller.options "PINGSIX_GATEWAY_FEED_AUTHORITY_SECRET" | default "pingsix-gateway-feed-authority" }}
{{- end }}

{{- define "pingsix.feed" -}}
pingsix-gateway-feed{{ .Values.nameSuffix }}
{{- end }}

{{- define "pingsix.feedUrl" -}}
{{- $hasTls := or .Values.feed.authority (hasKey .Values.controller.options "PINGSIX_GATEWAY_FEED_TLS_CERT") -}}
{{ ternary "https" "http" $hasTls }}://{{ include "pingsix.feed" . }}.{{ .Release.Namespace }}.svc:2379
{{- end }}

{{- define "pingsix.labels" -}}
app.kubernetes.io/name: pingsix-gateway-controller
{{- end }}

{{/* The options of the controller, as environment variables. */}}
{{- define "pingsix.options" -}}
{{- if and .Values.nameSuffix (eq .Values.controller.name "pingsix.io/gateway-controller") }}
{{- fail "nameSuffix is for a second installation, which needs a controller.name of its own" }}
{{- end }}
{{- $options := dict "PINGSIX_GATEWAY_LOG_FORMAT" "json" "PINGSIX_GATEWAY_RESPONDER" "127.0.0.1:8089" }}
{{- if .Values.feed.authority }}
{{- $_ := set $options "PINGSIX_GATEWAY_FEED_AUTHORITY_SECRET" (include "pingsix.authority" .) }}
{{- else if or .Values.feed.names .Values.feed.clients }}
{{- fail "feed.names and feed.clients need feed.authority" }}
{{- end }}
{{- if and .Values.nameSuffix .Values.feed.authority }}
{{- $_ := set $options "PINGSIX_GATEWAY_FEED_AUTHORITY_SERVICE" (include "pingsix.feed" .) }}
{{- end }}
{{- if ne .Values.controller.name "pingsix.io/gateway-controller" }}
{{- $_ := set $options "PINGSIX_GATEWAY_CONTROLLER_NAME" .Values.controller.name }}
{{- end }}
{{- if or .Values.nameSuffix (hasKey $options "PINGSIX_GATEWAY_CONTROLLER_NAME") }}
{{- /* Another controller name makes another name of the Lease, and the roles name it. */}}
{{- $_ := set $options "PINGSIX_GATEWAY_LEADER_LEASE" (include "pingsix.lease" .) }}
{{- end }}
{{- with .Values.controller.watchNamespaces }}
{{- $_ := set $options "PINGSIX_GATEWAY_WATCH_NAMESPACES" (join "," .) }}
{{- end }}
{{- with .Values.dataPlanes }}
{{- if .enabled }}
{{- $_ := set $options "PINGSIX_GATEWAY_FEED_ENDPOINT" (include "pingsix.feedUrl" $) }}
{{- end }}
{{- with .image }}{{ $_ := set $options "PINGSIX_GATEWAY_DATA_PLANE_IMAGE" . }}{{ end }}
{{- with .sidecarImage }}{{ $_ := set $options "PINGSIX_GATEWAY_DATA_PLANE_SIDECAR_IMAGE" . }}{{ end }}
{{- end }}
{{- with .Values.feed.names }}
{{- $_ := set $options "PINGSIX_GATEWAY_FEED_AUTHORITY_NAMES" (join "," .) }}
{{- end }}
{{- $clients := list }}
{{- range $client := .Values.feed.clients }}
{{- range $client.dataPlanes }}
{{- $clients = append $clients (print . "=" $client.secret) }}
{{- end }}
{{- end }}
{{- with $clients }}
{{- $_ := set $options "PINGSIX_GATEWAY_FEED_AUTHORITY_CLIENTS" (join "," .) }}
{{- end }}
{{- range $name, $value := .Values.controller.options }}
{{- /* A whole number of a file is a float64, whose text may have an exponent. */}}
{{- $isWhole := and (kindIs "float64" $value) (eq (printf "%v" (floor $value)) (printf "%v" $value)) }}
{{- $_ := set $options $name (ternary (printf "%.0f" (float64 $value)) (toString $value) $isWhole) }}
{{- end }}
{{- toYaml $options }}
{{- end }}

{{/* A binding of a role to the account of the controller: root, kind and name of the role, and the namespace, if any. */}}
{{- define "pingsix.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ if .namespace }}RoleBinding{{ else }}ClusterRoleBinding{{ end }}
metadata:
  name: {{ .name }}
  {{- with .namespace }}
  namespace: {{ . | quote }}
  {{- end }}
  labels:
    {{- include "pingsix.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "pingsix.controller" .root }}
    namespace: {{ .root.Release.Namespace | quote }}
{{- end }}
