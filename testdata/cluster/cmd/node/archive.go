//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// descriptor refers to a part of an archive by its digest (descriptor.md of the OCI Image Format Specification).
type descriptor struct {
	MediaType string
	Digest    string
}

// runConfig is the part of an image's configuration that containers need (config.md).
type runConfig struct {
	User       string
	Env        []string
	Entrypoint []string
	Cmd        []string
	WorkingDir string
}

// unpackArchive reads an OCI archive with one image (image-layout.md), and checks the digest of each of its parts.
func unpackArchive(file, folder string) (*image, error) {
	layout, root := filepath.Join(folder, "layout"), filepath.Join(folder, "root")
	archive, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	if err := untar(archive, layout); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(layout, "index.json"))
	if err != nil {
		return nil, err
	}
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("index.json has %d manifests instead of one", len(index.Manifests))
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	if err := readPart(layout, index.Manifests[0], &manifest); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	var config struct{ Config runConfig }
	if err := readPart(layout, manifest.Config, &config); err != nil {
		return nil, fmt.Errorf("the configuration: %w", err)
	}
	for _, layer := range manifest.Layers {
		if err := unpackLayer(layout, layer, root); err != nil {
			return nil, fmt.Errorf("the layer %s: %w", layer.Digest, err)
		}
	}
	if len(config.Config.Entrypoint) == 0 && len(config.Config.Cmd) == 0 {
		return nil, errors.New("it names no program")
	}
	return &image{id: index.Manifests[0].Digest, root: root, run: config.Config}, nil
}

// part returns the content that a descriptor refers to.
func part(layout string, of descriptor) ([]byte, error) {
	digest, found := strings.CutPrefix(of.Digest, "sha256:")
	if !found || digest != filepath.Base(digest) {
		return nil, fmt.Errorf("%q is no SHA-256 digest", of.Digest)
	}
	content, err := os.ReadFile(filepath.Join(layout, "blobs", "sha256", digest))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("it has another digest than %s", of.Digest)
	}
	return content, nil
}

func readPart(layout string, of descriptor, into any) error {
	content, err := part(layout, of)
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

func unpackLayer(layout string, layer descriptor, root string) error {
	content, err := part(layout, layer)
	if err != nil {
		return err
	}
	var reader io.Reader = bytes.NewReader(content)
	if strings.HasSuffix(layer.MediaType, "+gzip") {
		if reader, err = gzip.NewReader(reader); err != nil {
			return err
		}
	}
	return untar(reader, root)
}

// untar writes files, folders and symbolic links into a folder, and none of them outside of it.
func untar(from io.Reader, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := untarOne(archive, header, root); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}

func untarOne(archive *tar.Reader, header *tar.Header, root *os.Root) error {
	name := filepath.Clean(strings.TrimPrefix(header.Name, "/"))
	// A layer deletes a file of an earlier one by a file with this beginning (layer.md).
	if strings.HasPrefix(filepath.Base(name), ".wh.") {
		return errors.New("layers that delete files are not supported")
	}
	if name == "." {
		return nil
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := header.FileInfo().Mode().Perm()
	switch header.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, mode|0o700)
	case tar.TypeSymlink:
		return root.Symlink(header.Linkname, name)
	case tar.TypeReg:
		file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode|0o400)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, archive)
		return errors.Join(err, file.Close())
	default:
		return fmt.Errorf("entries of the type %q are not supported", header.Typeflag)
	}
}
