//go:build linux

package main

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	errs "k8s.io/apimachinery/pkg/api/errors"
)

// path is what is searched for programs in most images.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment of a container, as a Pod's author gives it and every container has it.
func (n *node) environment(pod *core.Pod, container *core.Container, image *image, address netip.Addr) (map[string]string, error) {
	found := map[string]string{
		"PATH":                          path,
		"HOME":                          "/root",
		"HOSTNAME":                      pod.Name,
		"KUBERNETES_SERVICE_HOST":       kubernetesAddress.String(),
		"KUBERNETES_SERVICE_PORT":       "443",
		"KUBERNETES_SERVICE_PORT_HTTPS": "443",
	}
	maps.Copy(found, image.environment())
	for _, from := range container.EnvFrom {
		values, err := n.all(pod.Namespace, &from)
		if err != nil {
			return nil, err
		}
		for name, value := range values {
			found[from.Prefix+name] = value
		}
	}
	for _, variable := range container.Env {
		value, there, err := n.value(pod, &variable, address)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", variable.Name, err)
		}
		if there {
			found[variable.Name] = expand(value, found)
		}
	}
	return found, nil
}

func (n *node) all(namespace string, from *core.EnvFromSource) (map[string]string, error) {
	if source := from.ConfigMapRef; source != nil {
		configMap, err := n.configMaps.ConfigMaps(namespace).Get(source.Name)
		if err != nil {
			return nil, unlessOptional(err, optional(source.Optional))
		}
		return configMap.Data, nil
	}
	if source := from.SecretRef; source != nil {
		secret, err := n.secrets.Secrets(namespace).Get(source.Name)
		if err != nil {
			return nil, unlessOptional(err, optional(source.Optional))
		}
		values := map[string]string{}
		for key, value := range secret.Data {
			values[key] = string(value)
		}
		return values, nil
	}
	return nil, nil
}

// value of a variable, and whether it is there at all.
func (n *node) value(pod *core.Pod, variable *core.EnvVar, address netip.Addr) (string, bool, error) {
	from := variable.ValueFrom
	switch {
	case from == nil:
		return variable.Value, true, nil
	case from.FieldRef != nil:
		value, err := field(pod, from.FieldRef.FieldPath, &address)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		configMap, err := n.configMaps.ConfigMaps(pod.Namespace).Get(ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, optional(ref.Optional))
		}
		value, there := configMap.Data[ref.Key]
		return value, there, unlessThere(there || optional(ref.Optional), ref.Key)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		secret, err := n.secrets.Secrets(pod.Namespace).Get(ref.Name)
		if err != nil {
			return "", false, unlessOptional(err, optional(ref.Optional))
		}
		value, there := secret.Data[ref.Key]
		return string(value), there, unlessThere(there || optional(ref.Optional), ref.Key)
	}
	return "", false, fmt.Errorf("this source is not supported by the node of the test cluster")
}

func unlessThere(there bool, key string) error {
	if there {
		return nil
	}
	return fmt.Errorf("there is no key %q", key)
}

func unlessOptional(err error, optional bool) error {
	if optional && errs.IsNotFound(err) {
		return nil
	}
	return err
}

// field of a Pod, as the downward API names it. The address is known to variables only.
func field(pod *core.Pod, path string, address *netip.Addr) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "metadata.labels":
		return pairs(pod.Labels), nil
	case "metadata.annotations":
		return pairs(pod.Annotations), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.hostIPs":
		return nodeAddress.String(), nil
	}
	if address != nil && (path == "status.podIP" || path == "status.podIPs") {
		return address.String(), nil
	}
	for prefix, values := range map[string]map[string]string{"labels": pod.Labels, "annotations": pod.Annotations} {
		if key, found := strings.CutPrefix(path, "metadata."+prefix+"['"); found {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("the field %s is not known to the node of the test cluster", path)
}

func pairs(values map[string]string) string {
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, fmt.Sprintf("%s=%q", key, values[key]))
	}
	return strings.Join(lines, "\n")
}

// expand replaces $(NAME) where there is such a variable; $$ stands for a dollar sign.
func expand(text string, variables map[string]string) string {
	var done strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		done.WriteString(before)
		if !found {
			return done.String()
		}
		if rest, escaped := strings.CutPrefix(after, "$"); escaped {
			done.WriteByte('$')
			text = rest
			continue
		}
		if rest, opened := strings.CutPrefix(after, "("); opened {
			if name, rest, closed := strings.Cut(rest, ")"); closed {
				if value, there := variables[name]; there {
					done.WriteString(value)
				} else {
					done.WriteString("$(" + name + ")")
				}
				text = rest
				continue
			}
		}
		done.WriteByte('$')
		text = after
	}
}
