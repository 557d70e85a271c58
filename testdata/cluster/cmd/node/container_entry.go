//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// enterContainer is the argument that has the program become one of a container.
	enterContainer = "enter-container"
	// startFailed is the exit code of one that cannot.
	startFailed = 127
	// entryFile is where it reads what to become.
	entryFile = 3
)

// entry is what a process needs to know to become the program of a container.
type entry struct {
	// Root is an empty folder.
	Root         string
	ReadOnlyRoot bool
	Hostname     string
	Files        map[string]string
	Mounts       []mount
	// Program is the path of the program outside of the container, for a root with folders of the machine.
	Program string
	// Image is the folder with the content of an image instead; the first argument names the program there.
	Image       string
	Arguments   []string
	Environment []string
	Directory   string
}

// mount is a file or a folder from outside that is seen inside.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// ofRuntime are the folders of the machine that every container has.
var ofRuntime = []string{"dev", "sys"}

// ofImage are the folders of the machine that stand for those of an image, where the image is a program alone. What is not
// here, such as the folders of users, is not there in a container.
var ofImage = []string{"bin", "lib", "lib32", "lib64", "libx32", "nix", "sbin", "usr"}

// enter makes a root folder, goes there, and becomes the program. It returns only if that fails.
//
// It runs in namespaces of its own for mounts, processes and the host name, and in the network namespace of its Pod.
func enter() error {
	var entry entry
	file := os.NewFile(entryFile, "entry")
	if err := json.NewDecoder(file).Decode(&entry); err != nil {
		return err
	}
	_ = file.Close()
	if err := unix.Sethostname([]byte(entry.Hostname)); err != nil {
		return fmt.Errorf("the host name: %w", err)
	}
	// What is mounted from here on concerns nobody else.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	program := "/image/" + filepath.Base(entry.Program)
	if err := entry.makeRoot(program); err != nil {
		return err
	}
	if err := unix.Chroot(entry.Root); err != nil {
		return err
	}
	if err := unix.Chdir(entry.Directory); err != nil {
		return fmt.Errorf("%s: %w", entry.Directory, err)
	}
	if entry.Image != "" {
		var err error
		if program, err = entry.find(entry.Arguments[0]); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", program, unix.Exec(program, entry.Arguments, entry.Environment))
}

// find returns the path of a program by the PATH of the container.
func (e *entry) find(program string) (string, error) {
	for _, variable := range e.Environment {
		if path, found := strings.CutPrefix(variable, "PATH="); found {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(program)
}

func (e *entry) makeRoot(program string) error {
	if err := unix.Mount("container", e.Root, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("the root folder: %w", err)
	}
	if e.Image == "" {
		if err := e.lendFolders(program); err != nil {
			return err
		}
	} else if err := os.CopyFS(e.Root, os.DirFS(e.Image)); err != nil {
		return fmt.Errorf("the content of the image: %w", err)
	}
	for _, name := range ofRuntime {
		if err := e.share(name); err != nil {
			return fmt.Errorf("/%s: %w", name, err)
		}
	}
	for _, folder := range []string{"etc", "proc"} {
		if err := os.MkdirAll(filepath.Join(e.Root, folder), 0o755); err != nil {
			return err
		}
	}
	if err := e.write(e.Files); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(e.Root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("/proc: %w", err)
	}
	// A volume may be mounted within another one.
	slices.SortStableFunc(e.Mounts, func(a, b mount) int {
		return strings.Count(filepath.Clean(a.Target), "/") - strings.Count(filepath.Clean(b.Target), "/")
	})
	for _, mount := range e.Mounts {
		if err := e.mount(mount); err != nil {
			return fmt.Errorf("%s: %w", mount.Target, err)
		}
	}
	if e.ReadOnlyRoot {
		return readOnly(e.Root, 0)
	}
	return nil
}

// lendFolders gives a program without an image what most images have, from the machine.
func (e *entry) lendFolders(program string) error {
	for _, name := range ofImage {
		if err := e.share(name); err != nil {
			return fmt.Errorf("/%s: %w", name, err)
		}
	}
	for _, folder := range []string{"etc", "image", "root", "run", "tmp", "var"} {
		if err := os.MkdirAll(filepath.Join(e.Root, folder), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(e.Root, "tmp"), 0o777|os.ModeSticky); err != nil {
		return err
	}
	e.Mounts = append(e.Mounts, mount{Source: e.Program, Target: program, ReadOnly: true})
	if _, err := os.Stat("/etc/ld.so.cache"); err == nil {
		e.Mounts = append(e.Mounts, mount{Source: "/etc/ld.so.cache", Target: "/etc/ld.so.cache", ReadOnly: true})
	}
	return e.write(map[string]string{
		"/etc/group":         "root:x:0:\n",
		"/etc/nsswitch.conf": "hosts: files dns\n",
		"/etc/passwd":        "root:x:0:0::/root:/sbin/nologin\n",
	})
}

func (e *entry) write(files map[string]string) error {
	for path, text := range files {
		if err := os.WriteFile(filepath.Join(e.Root, path), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// share makes a folder of the machine one of the container, if there is one. Links between them stay links.
func (e *entry) share(name string) error {
	source, target := "/"+name, filepath.Join(e.Root, name)
	status, err := os.Lstat(source)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if status.Mode()&os.ModeSymlink != 0 {
		destination, err := os.Readlink(source)
		if err != nil {
			return err
		}
		return os.Symlink(destination, target)
	}
	// An image may have it too.
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if name == "dev" || name == "sys" {
		return nil
	}
	return readOnly(target, unix.AT_RECURSIVE)
}

func (e *entry) mount(mount mount) error {
	target := filepath.Join(e.Root, mount.Target)
	status, err := os.Stat(mount.Source)
	if err != nil {
		return err
	}
	if status.IsDir() {
		err = os.MkdirAll(target, 0o755)
	} else if err = os.MkdirAll(filepath.Dir(target), 0o755); err == nil {
		var file *os.File
		if file, err = os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			err = file.Close()
		}
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(mount.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if mount.ReadOnly {
		return readOnly(target, unix.AT_RECURSIVE)
	}
	return nil
}

// readOnly leaves other properties of a mount as they are, which a user namespace may not take away.
func readOnly(path string, flags uint) error {
	return unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
