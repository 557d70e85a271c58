//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// A container that crashes is started again after this, and after twice as long each further time, up to the limit.
	// One that ran for long enough starts with the first again. A kubelet is slower by far.
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
	longEnough   = 10 * time.Second
	// How long to wait before looking again for what a container needs and is not there.
	missingPause = 250 * time.Millisecond
)

// container runs the program of a container again and again.
type container struct {
	pod  *pod
	spec *core.Container
	// image is nil for a container that counts as running, without a program.
	image *image
	log   *logFile
	// again says whether it is started again after an exit like this.
	again func(exitCode int32) bool

	mutex   sync.Mutex
	state   core.ContainerState
	last    core.ContainerState
	ready   bool
	started bool
	count   int32
	process *os.Process
	// leaving is closed when it shall not be started again, done when it does not run and will not.
	leaving chan struct{}
	done    chan struct{}
}

func newContainer(pod *pod, spec *core.Container, again func(int32) bool) *container {
	return &container{
		pod:     pod,
		spec:    spec,
		image:   pod.node.images.find(spec.Image),
		log:     pod.node.logs.file(pod.namespace, pod.name, spec.Name),
		again:   again,
		state:   waiting("ContainerCreating", ""),
		leaving: make(chan struct{}),
		done:    make(chan struct{}),
	}
}

// run returns when the container has ended for good.
func (c *container) run(ctx context.Context) {
	defer close(c.done)
	pause := firstPause
	for {
		started := time.Now()
		code, err := c.runOnce(ctx)
		wait := pause
		switch {
		case err != nil:
			c.set(func() { c.state = waiting("CreateContainerError", err.Error()) })
			wait = missingPause
		case !c.again(code) || c.isLeaving():
			return
		case time.Since(started) > longEnough:
			pause, wait = firstPause, firstPause
		}
		if err == nil {
			c.set(func() {
				c.last, c.count = c.state, c.count+1
				c.state = waiting("CrashLoopBackOff", "")
			})
			pause = min(2*pause, longestPause)
		}
		select {
		case <-c.leaving:
			return
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// runOnce starts the program and waits for its end. An error means that it was not started.
func (c *container) runOnce(ctx context.Context) (int32, error) {
	if c.image == nil {
		// Nobody can tell the difference without asking it something.
		c.set(func() {
			c.state = running()
			c.ready, c.started = true, true
		})
		select {
		case <-c.leaving:
		case <-ctx.Done():
		}
		c.ended(0)
		return 0, nil
	}
	command, output, err := c.start(ctx)
	if err != nil {
		return 0, err
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		c.log.copy(output)
	}()
	ofThisRun, stop := context.WithCancel(ctx)
	c.set(func() {
		c.state, c.process = running(), command.Process
		c.started = c.spec.StartupProbe == nil
		c.ready = c.started && c.spec.ReadinessProbe == nil
	})
	if c.isLeaving() {
		// It was asked to leave while there was no process yet to be told.
		stop()
	}
	go c.probe(ofThisRun)
	go func() {
		<-ofThisRun.Done()
		// The end of the node, or of the process, which it does no harm to.
		_ = command.Process.Kill()
	}()
	_ = command.Wait()
	stop()
	<-copied
	code := exitCode(command.ProcessState)
	c.ended(code)
	return code, nil
}

// A state is never changed in place: it may have been reported, and is compared with the next one.
func waiting(reason, message string) core.ContainerState {
	return core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: reason, Message: message}}
}

func running() core.ContainerState {
	return core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}}
}

func (c *container) ended(code int32) {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	c.set(func() {
		terminated := &core.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: meta.Now()}
		if c.state.Running != nil {
			terminated.StartedAt = c.state.Running.StartedAt
		}
		c.state = core.ContainerState{Terminated: terminated}
		c.process, c.ready, c.started = nil, false, false
	})
}

// start starts the program in the Pod's network, and in namespaces of its own for the rest.
func (c *container) start(ctx context.Context) (*exec.Cmd, *os.File, error) {
	entry, err := c.entry()
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(entry.Root, 0o755); err != nil {
		return nil, nil, err
	}
	encoded, err := json.Marshal(entry)
	if err != nil {
		return nil, nil, err
	}
	input, toInput, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer input.Close()
	go func() {
		// If nobody reads it, the process is gone, which is noticed elsewhere.
		_, _ = toInput.Write(encoded)
		_ = toInput.Close()
	}()
	output, toOutput, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer toOutput.Close()
	command := exec.Command("/proc/self/exe", enterContainer)
	command.Env = []string{}
	command.Stdout, command.Stderr = toOutput, toOutput
	command.ExtraFiles = []*os.File{input}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if ctx.Err() != nil {
		_ = output.Close()
		return nil, nil, ctx.Err()
	}
	if err := c.pod.node.spawner.start(c.pod.network.namespace, command); err != nil {
		_ = output.Close()
		return nil, nil, err
	}
	return command, output, nil
}

func (c *container) entry() (*entry, error) {
	pod := c.pod.object()
	variables, err := c.pod.node.environment(pod, c.spec, c.image, c.pod.network.address)
	if err != nil {
		return nil, err
	}
	arguments := c.image.arguments(c.spec.Command, c.spec.Args)
	for index, argument := range arguments {
		arguments[index] = expand(argument, variables)
	}
	entry := &entry{
		Root:      filepath.Join(c.pod.folder, "containers", c.spec.Name),
		Hostname:  pod.Name[:min(len(pod.Name), 63)],
		Files:     c.pod.files(),
		Program:   c.image.program,
		Image:     c.image.root,
		Arguments: arguments,
		Directory: "/",
	}
	if c.image.run.WorkingDir != "" {
		entry.Directory = c.image.run.WorkingDir
	}
	if c.spec.WorkingDir != "" {
		entry.Directory = c.spec.WorkingDir
	}
	if context := c.spec.SecurityContext; context != nil && context.ReadOnlyRootFilesystem != nil {
		entry.ReadOnlyRoot = *context.ReadOnlyRootFilesystem
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		entry.Environment = append(entry.Environment, name+"="+variables[name])
	}
	for _, at := range c.spec.VolumeMounts {
		source, fromSources, err := c.pod.volume(at.Name)
		if err != nil {
			return nil, err
		}
		subPath := at.SubPath
		if at.SubPathExpr != "" {
			subPath = expand(at.SubPathExpr, variables)
		}
		if subPath != "" {
			if source, err = filepath.EvalSymlinks(filepath.Join(source, subPath)); err != nil {
				return nil, err
			}
		}
		entry.Mounts = append(entry.Mounts, mount{Source: source, Target: at.MountPath, ReadOnly: at.ReadOnly || fromSources})
	}
	return entry, nil
}

// stop has the container end within a time: after what it does before, it is asked, and made to in the end.
func (c *container) stop(grace time.Duration) {
	deadline := time.Now().Add(grace)
	c.mutex.Lock()
	if !c.leavingLocked() {
		close(c.leaving)
	}
	process := c.process
	c.mutex.Unlock()
	if process != nil && grace > 0 {
		c.preStop(deadline)
		_ = process.Signal(syscall.SIGTERM)
	}
	select {
	case <-c.done:
		return
	case <-time.After(time.Until(deadline)):
	}
	c.kill()
	<-c.done
}

// kill ends what runs now.
func (c *container) kill() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.process != nil {
		_ = c.process.Kill()
	}
}

// preStop is over at the deadline at the latest, or when the container has ended by itself.
func (c *container) preStop(deadline time.Time) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	handler := c.spec.Lifecycle.PreStop
	ctx, stop := context.WithDeadline(context.Background(), deadline)
	defer stop()
	switch {
	case handler.Sleep != nil:
		select {
		case <-time.After(time.Duration(handler.Sleep.Seconds) * time.Second):
		case <-ctx.Done():
		case <-c.done:
		}
	case handler.HTTPGet != nil:
		if err := c.httpGet(ctx, handler.HTTPGet); err != nil {
			c.pod.say("preStop of %s: %v", c.spec.Name, err)
		}
	default:
		c.pod.say("preStop of %s is of a kind that the node of the test cluster does not know", c.spec.Name)
	}
}

func (c *container) isLeaving() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.leavingLocked()
}

func (c *container) leavingLocked() bool {
	select {
	case <-c.leaving:
		return true
	default:
		return false
	}
}

// set changes what is known of the container, and has that reported.
func (c *container) set(change func()) {
	c.mutex.Lock()
	change()
	c.mutex.Unlock()
	c.pod.changed()
}

func (c *container) status() core.ContainerStatus {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	started := c.started
	imageID := ""
	if c.image != nil {
		imageID = c.image.id
	}
	status := core.ContainerStatus{
		Name:                 c.spec.Name,
		State:                c.state,
		LastTerminationState: c.last,
		Ready:                c.ready,
		Started:              &started,
		RestartCount:         c.count,
		Image:                c.spec.Image,
		ImageID:              imageID,
	}
	if c.state.Running != nil {
		status.ContainerID = fmt.Sprintf("process://%s/%s/%d", c.pod.uid, c.spec.Name, c.count)
	}
	return status
}

func exitCode(state *os.ProcessState) int32 {
	if state == nil {
		return startFailed
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int32(128 + status.Signal())
	}
	return int32(state.ExitCode())
}
