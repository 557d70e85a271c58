//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// testPod is part of the name of an image that every node has.
const testPod = "test-pod"

// image is a program that runs among folders of the machine, or the content of an OCI archive, which runs alone.
type image struct {
	// id is the path of the file, or the digest of an archive that is unpacked.
	id string
	// program is the path of a program; it is empty for an archive.
	program string
	// root is the folder with the content of an archive.
	root string
	// run is the configuration of an archive.
	run runConfig
}

// arguments of a container, with the name of the program first.
func (i *image) arguments(command, arguments []string) []string {
	switch {
	case i.program != "" && len(command) == 0:
		// The program of a file is always the same one, by whatever name it is called.
		command = []string{filepath.Base(i.program)}
	case len(command) == 0:
		command = i.run.Entrypoint
		if len(arguments) == 0 {
			arguments = i.run.Cmd
		}
	}
	return slices.Concat(command, arguments)
}

// environment of every container of the image, which the Pod may override.
func (i *image) environment() map[string]string {
	found := map[string]string{}
	for _, variable := range i.run.Env {
		name, value, _ := strings.Cut(variable, "=")
		found[name] = value
	}
	return found
}

// images has an image for a part of the names that Pods call it by.
type images map[string]*image

// String and Set make it a flag.
func (i images) String() string {
	files := map[string]string{}
	for name, image := range i {
		files[name] = image.id
	}
	return fmt.Sprint(files)
}

func (i images) Set(text string) error {
	name, file, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("an image is given as NAME=FILE")
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	status, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case status.IsDir():
		return fmt.Errorf("%s is a folder", file)
	case filepath.Ext(file) == ".tar":
		i[name] = &image{id: file}
	case status.Mode()&0o111 == 0:
		return fmt.Errorf("%s is no program", file)
	default:
		i[name] = &image{id: file, program: file}
	}
	return nil
}

// addTestPod makes the program that tests of the node use one of every node: it lies beside this one.
func (i images) addTestPod() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := filepath.Join(filepath.Dir(self), testPod)
	i[testPod] = &image{id: program, program: program}
	return nil
}

// unpack reads the archives, each into a folder of its own below this one.
func (i images) unpack(folder string) error {
	for name, image := range i {
		if image.program != "" {
			continue
		}
		unpacked, err := unpackArchive(image.id, filepath.Join(folder, filepath.Base(image.id)))
		if err != nil {
			return fmt.Errorf("the image %s: %w", image.id, err)
		}
		i[name] = unpacked
	}
	return nil
}

// find returns the image with the longest name that is part of this one, or nil.
func (i images) find(wanted string) *image {
	longest := ""
	for name := range i {
		if strings.Contains(wanted, name) && len(name) > len(longest) {
			longest = name
		}
	}
	return i[longest]
}
