//go:build linux

package main

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// content is what a volume holds, by path.
type content map[string]contentFile

type contentFile struct {
	data []byte
	mode fs.FileMode
}

func (c content) equal(other content) bool {
	return maps.EqualFunc(c, other, func(a, b contentFile) bool {
		return a.mode == b.mode && bytes.Equal(a.data, b.data)
	})
}

const (
	dataLink    = "..data"
	dataLinkNew = "..data_tmp"
)

// write makes a folder hold exactly this, as a kubelet does: readers see all of the old files or all of the new ones.
//
// The files lie in a folder of their own, to which the link ..data leads; the volume's entries are links through that
// one. To replace it by another one is a single step.
func (c content) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := os.MkdirTemp(folder, "..version_")
	if err != nil {
		return err
	}
	if err := c.writePlain(data); err != nil {
		_ = os.RemoveAll(data)
		return err
	}
	old, err := os.Readlink(filepath.Join(folder, dataLink))
	if err != nil {
		old = ""
	}
	link := filepath.Join(folder, dataLinkNew)
	_ = os.Remove(link)
	if err := os.Symlink(filepath.Base(data), link); err != nil {
		return err
	}
	if err := os.Rename(link, filepath.Join(folder, dataLink)); err != nil {
		return err
	}
	if err := c.link(folder); err != nil {
		return err
	}
	if old == "" {
		return nil
	}
	return os.RemoveAll(filepath.Join(folder, old))
}

func (c content) writePlain(folder string) error {
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	for path, file := range c {
		target := filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(target, file.data, file.mode); err != nil {
			return err
		}
		// The mask of the process has no say.
		if err := os.Chmod(target, file.mode); err != nil {
			return err
		}
	}
	return nil
}

// link makes the entries of the volume itself, and removes those that nothing stands behind any more.
func (c content) link(folder string) error {
	wanted := map[string]bool{}
	for path := range c {
		first, _, _ := strings.Cut(filepath.Clean(path), "/")
		wanted[first] = true
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if wanted[name] || strings.HasPrefix(name, "..") {
			delete(wanted, name)
			continue
		}
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if err := os.Symlink(filepath.Join(dataLink, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}
