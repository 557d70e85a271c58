//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// logs are the files that containers write to, one for each container, whatever becomes of its Pod.
type logs struct {
	folder string
	mutex  sync.Mutex
}

// logFile has a line for each line that was written, with the time before it.
type logFile struct {
	path  string
	mutex sync.Mutex
}

func (l *logs) path(namespace, pod, container string) string {
	// Names of Pods have up to 253 characters, and a file's name no more than 255.
	return filepath.Join(l.folder, namespace, pod, container+".log")
}

func (l *logs) file(namespace, pod, container string) *logFile {
	return &logFile{path: l.path(namespace, pod, container)}
}

// copy writes lines until there are no more.
func (l *logFile) copy(from io.ReadCloser) {
	defer from.Close()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			l.write(line)
		}
		if err != nil {
			return
		}
	}
}

func (l *logFile) write(line string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return
	}
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	defer file.Close()
	if line[len(line)-1] != '\n' {
		line += "\n"
	}
	_, _ = fmt.Fprintf(file, "%s %s", time.Now().UTC().Format(time.RFC3339Nano), line)
}
