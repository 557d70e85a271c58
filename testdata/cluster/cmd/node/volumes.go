//go:build linux

package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes are the folders that containers of one Pod mount.
type volumes struct {
	node   *node
	pod    *core.Pod
	folder string
	// written is what the volumes hold that follow their sources.
	written map[string]content
	tokens  map[string]token
}

// token is one of a service account, and when to ask for another one.
type token struct {
	text  string
	renew time.Time
}

func (v *volumes) path(name string) string { return filepath.Join(v.folder, name) }

// refresh makes every volume what its sources are now. A required source that is missing is an error, and all volumes
// that were there before stay as they were.
func (v *volumes) refresh(ctx context.Context) error {
	for _, volume := range v.pod.Spec.Volumes {
		wanted, err := v.content(ctx, &volume)
		if err != nil {
			return fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		if wanted == nil {
			if err := os.MkdirAll(v.path(volume.Name), 0o777); err != nil {
				return err
			}
			continue
		}
		if written, there := v.written[volume.Name]; there && written.equal(wanted) {
			continue
		}
		if err := wanted.write(v.path(volume.Name)); err != nil {
			return fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		v.written[volume.Name] = wanted
	}
	return nil
}

// content of a volume that has sources, nothing for one that belongs to the Pod.
func (v *volumes) content(ctx context.Context, volume *core.Volume) (content, error) {
	switch {
	case volume.EmptyDir != nil:
		return nil, nil
	case volume.Secret != nil:
		source := volume.Secret
		found := content{}
		err := v.secret(found, source.SecretName, source.Items, optional(source.Optional), mode(source.DefaultMode))
		return found, err
	case volume.ConfigMap != nil:
		source := volume.ConfigMap
		found := content{}
		err := v.configMap(found, source.Name, source.Items, optional(source.Optional), mode(source.DefaultMode))
		return found, err
	case volume.DownwardAPI != nil:
		found := content{}
		return found, v.downward(found, volume.DownwardAPI.Items, mode(volume.DownwardAPI.DefaultMode))
	case volume.Projected != nil:
		return v.projected(ctx, volume.Name, volume.Projected)
	}
	return nil, fmt.Errorf("this kind of volume is not supported by the node of the test cluster")
}

func (v *volumes) projected(ctx context.Context, name string, volume *core.ProjectedVolumeSource) (content, error) {
	found, mode := content{}, mode(volume.DefaultMode)
	for _, source := range volume.Sources {
		var err error
		switch {
		case source.ServiceAccountToken != nil:
			var text string
			text, err = v.token(ctx, name, source.ServiceAccountToken)
			found[source.ServiceAccountToken.Path] = contentFile{[]byte(text), mode}
		case source.Secret != nil:
			err = v.secret(found, source.Secret.Name, source.Secret.Items, optional(source.Secret.Optional), mode)
		case source.ConfigMap != nil:
			err = v.configMap(found, source.ConfigMap.Name, source.ConfigMap.Items, optional(source.ConfigMap.Optional), mode)
		case source.DownwardAPI != nil:
			err = v.downward(found, source.DownwardAPI.Items, mode)
		default:
			err = fmt.Errorf("this projected source is not supported by the node of the test cluster")
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (v *volumes) secret(into content, name string, items []core.KeyToPath, optional bool, mode fs.FileMode) error {
	secret, err := v.node.secrets.Secrets(v.pod.Namespace).Get(name)
	if err != nil {
		return unlessOptional(err, optional)
	}
	return into.add(secret.Data, items, optional, mode)
}

func (v *volumes) configMap(into content, name string, items []core.KeyToPath, optional bool, mode fs.FileMode) error {
	configMap, err := v.node.configMaps.ConfigMaps(v.pod.Namespace).Get(name)
	if err != nil {
		return unlessOptional(err, optional)
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, text := range configMap.Data {
		data[key] = []byte(text)
	}
	return into.add(data, items, optional, mode)
}

func (v *volumes) downward(into content, items []core.DownwardAPIVolumeFile, mode fs.FileMode) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return fmt.Errorf("resources of a container are not known to the node of the test cluster")
		}
		text, err := field(v.pod, item.FieldRef.FieldPath, nil)
		if err != nil {
			return err
		}
		into[item.Path] = contentFile{[]byte(text), modeOr(item.Mode, mode)}
	}
	return nil
}

// token asks for another one when four fifths of the last one's time are over.
func (v *volumes) token(ctx context.Context, volume string, source *core.ServiceAccountTokenProjection) (string, error) {
	key := volume + "/" + source.Path
	if old, there := v.tokens[key]; there && time.Now().Before(old.renew) {
		return old.text, nil
	}
	request := &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authentication.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	accounts := v.node.client.CoreV1().ServiceAccounts(v.pod.Namespace)
	answer, err := accounts.CreateToken(ctx, v.pod.Spec.ServiceAccountName, request, meta.CreateOptions{})
	if err != nil {
		return "", err
	}
	valid := time.Until(answer.Status.ExpirationTimestamp.Time)
	v.tokens[key] = token{text: answer.Status.Token, renew: time.Now().Add(valid * 4 / 5)}
	return answer.Status.Token, nil
}

// add puts in all keys, or those that items name.
func (c content) add(data map[string][]byte, items []core.KeyToPath, optional bool, mode fs.FileMode) error {
	if len(items) == 0 {
		for key, value := range data {
			c[key] = contentFile{value, mode}
		}
	}
	for _, item := range items {
		value, there := data[item.Key]
		if !there && !optional {
			return fmt.Errorf("there is no key %q", item.Key)
		}
		if path := filepath.Clean(item.Path); filepath.IsAbs(path) || strings.HasPrefix(path, "..") {
			return fmt.Errorf("the path %q leads out of the volume", item.Path)
		}
		if there {
			c[item.Path] = contentFile{value, modeOr(item.Mode, mode)}
		}
	}
	return nil
}

func optional(optional *bool) bool { return optional != nil && *optional }

func mode(mode *int32) fs.FileMode { return modeOr(mode, 0o644) }

func modeOr(mode *int32, otherwise fs.FileMode) fs.FileMode {
	if mode == nil {
		return otherwise
	}
	return fs.FileMode(*mode) & fs.ModePerm
}
