//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// testPod is part of the name of an image that every node has.
const testPod = "test-pod"

// images names the program that stands for an image by a part of the image's name.
type images map[string]string

// String and Set make it a flag.
func (i images) String() string { return fmt.Sprint(map[string]string(i)) }

func (i images) Set(text string) error {
	name, program, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("an image is given as NAME=PROGRAM")
	}
	program, err := filepath.Abs(program)
	if err != nil {
		return err
	}
	if status, err := os.Stat(program); err != nil {
		return err
	} else if status.Mode()&0o111 == 0 || status.IsDir() {
		return fmt.Errorf("%s is no program", program)
	}
	i[name] = program
	return nil
}

// addTestPod makes the program that tests of the node use one of every node: it lies beside this one.
func (i images) addTestPod() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	i[testPod] = filepath.Join(filepath.Dir(self), testPod)
	return nil
}

// program is that of the longest name that is part of the image's, or nothing.
func (i images) program(image string) string {
	longest := ""
	for name := range i {
		if strings.Contains(image, name) && len(name) > len(longest) {
			longest = name
		}
	}
	return i[longest]
}
